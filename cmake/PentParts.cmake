# One static library a part, named pent_PART, linked with exactly the parts that tools/layers.txt allows.
add_library(pent_flags INTERFACE)
target_include_directories(pent_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
target_compile_options(pent_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -fno-math-errno
                       $<$<BOOL:${PENT_WERROR}>:-Werror>)
# ccache needs to see a precompiled header's name, not its absolute path in the preprocessed text.
target_compile_options(pent_flags INTERFACE -fpch-preprocess)
target_link_libraries(pent_flags INTERFACE Threads::Threads fmt::fmt)
# mold links in a tenth of a second; older compilers do not know it.
include(CheckLinkerFlag)
check_linker_flag(CXX "-fuse-ld=mold" PENT_HAS_MOLD)
if(PENT_HAS_MOLD)
  target_link_options(pent_flags INTERFACE -fuse-ld=mold)
endif()
if(PENT_SANITIZE)
  # The first finding ends the program. A null pointer ends it anyway, and its checks cost a third of the compile time.
  target_compile_options(pent_flags INTERFACE -fsanitize=${PENT_SANITIZE} -fno-sanitize=null
                         -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(pent_flags INTERFACE -fsanitize=${PENT_SANITIZE})
endif()

# Gives a program the options of the sanitizers it is built with.
function(pent_sanitizer_options target)
  if(PENT_SANITIZE)
    set(source "${CMAKE_SOURCE_DIR}/tools/sanitizers/options.cpp")
    target_sources(${target} PRIVATE "${source}")
    set_source_files_properties("${source}" PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_DEFINITIONS
                                "PENT_SANITIZERS_DIR=\"${CMAKE_SOURCE_DIR}/tools/sanitizers\"")
  endif()
endfunction()

# The parts whose headers may name at::Tensor. They share one precompiled header.
set(PENT_TORCH_PARTS comm cuda precision ops parallel model checkpoint convert infer train cli)

# Third-party libraries a part stands on.
set(PENT_EXTERN_base nlohmann_json::nlohmann_json spdlog::spdlog xxhash)
set(PENT_EXTERN_data pcre2-8 utf8proc)

# train's event_file.cpp with the messages that protoc makes: a library of its own, for libtorch's headers bring those of
# an older protobuf. protobuf-lite is linked in, so that nothing of it is mistaken for libtorch's when a program starts.
function(pent_event_file)
  set(Protobuf_USE_STATIC_LIBS ON)
  find_package(Protobuf REQUIRED)
  set(folder "${CMAKE_BINARY_DIR}/messages")
  file(MAKE_DIRECTORY "${folder}")
  set(name penteract/train/tensorboard)
  # protobuf_generate puts its output into another folder from one CMake to the next.
  add_custom_command(OUTPUT "${folder}/${name}.pb.cc" "${folder}/${name}.pb.h"
                     COMMAND protobuf::protoc "--cpp_out=${folder}" -I "${CMAKE_SOURCE_DIR}/src" ${name}.proto
                     DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}.proto" WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}/src" VERBATIM)
  add_library(pent_event_file STATIC "${CMAKE_SOURCE_DIR}/src/penteract/train/event_file.cpp"
              "${folder}/${name}.pb.cc" "${folder}/${name}.pb.h")
  # What protoc writes is not held to our warnings.
  set_source_files_properties("${folder}/${name}.pb.cc" PROPERTIES COMPILE_OPTIONS -w)
  target_include_directories(pent_event_file SYSTEM PRIVATE "${folder}")
  target_link_libraries(pent_event_file PRIVATE pent_flags pent_base protobuf::libprotobuf-lite)
  target_link_libraries(pent_train PRIVATE pent_event_file)
endfunction()

function(pent_use_pch target)
  if(NOT TARGET pent_pch)
    file(WRITE "${CMAKE_BINARY_DIR}/pent_pch.cpp" "")
    add_library(pent_pch STATIC "${CMAKE_BINARY_DIR}/pent_pch.cpp")
    target_link_libraries(pent_pch PUBLIC pent_flags Libtorch::cpu)
    # By name, not by path: the text that is compiled is the same in every clone.
    target_include_directories(pent_pch PRIVATE "${CMAKE_SOURCE_DIR}/cmake")
    target_precompile_headers(pent_pch PRIVATE <penteract_pch.h>)
  endif()
  target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}/cmake")
  target_precompile_headers(${target} REUSE_FROM pent_pch)
endfunction()

# Without PENT_CUDA the part cuda is the stub not_built.cpp; with it, all but the stub. Changes the list `variable`.
function(pent_cuda_sources variable)
  if(PENT_CUDA)
    list(FILTER ${variable} EXCLUDE REGEX "/cuda/not_built\\.cpp$")
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/penteract/cuda/*.cu")
    pent_cuda_objects(objects ${kernels})
    list(APPEND ${variable} ${objects})
  else()
    list(FILTER ${variable} INCLUDE REGEX "/cuda/not_built\\.cpp$")
  endif()
  set(${variable} ${${variable}} PARENT_SCOPE)
endfunction()

function(pent_parts)
  file(STRINGS "${CMAKE_SOURCE_DIR}/tools/layers.txt" lines REGEX "^[a-z]+:")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tools/layers.txt")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^[a-z]+" part "${line}")
    string(REGEX REPLACE "^[a-z]+: *" "" deps "${line}")
    separate_arguments(deps)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/penteract/${part}/*.cpp")
    list(FILTER sources EXCLUDE REGEX "(cli/main|train/event_file)\\.cpp$")
    if(part STREQUAL cuda)
      pent_cuda_sources(sources)
    endif()
    if(NOT sources)
      continue()
    endif()
    add_library(pent_${part} STATIC ${sources})
    target_link_libraries(pent_${part} PUBLIC pent_flags ${PENT_EXTERN_${part}})
    foreach(dep IN LISTS deps)
      if(TARGET pent_${dep})
        target_link_libraries(pent_${part} PUBLIC pent_${dep})
      endif()
    endforeach()
    if(part IN_LIST PENT_TORCH_PARTS)
      target_link_libraries(pent_${part} PUBLIC Libtorch::cpu)
      pent_use_pch(pent_${part})
    endif()
    if(part STREQUAL cuda AND PENT_CUDA)
      target_link_libraries(pent_cuda PRIVATE cuda_headers PUBLIC libtorch_cuda)
    endif()
    if(part STREQUAL train)
      pent_event_file()
    endif()
  endforeach()
endfunction()
