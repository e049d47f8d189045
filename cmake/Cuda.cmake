# What the CUDA build has beside the CPU build: libtorch_cuda.so with the libraries under it, and nvcc for the .cu files,
# all from the wheels of tools/requirements-cuda.txt. Not CMake's CUDA language, which wants a whole toolkit, and not
# find_package(Torch). Objects of all other parts are compiled as in the CPU build.
set(PENT_CUDA_ARCHITECTURES 90a CACHE STRING "Devices that the kernels are compiled for, as in sm_90a")
set(_nvidia "${LIBTORCH_SITE}/nvidia")
set(PENT_NVCC "${_nvidia}/cu13/bin/nvcc")
foreach(_file IN ITEMS "${PENT_NVCC}" "${_nvidia}/cu13/nvvm/bin/cicc" "${_nvidia}/cu13/include/crt/host_config.h"
                       "${_nvidia}/nccl/lib/libnccl.so.2" "${_nvidia}/cudnn/lib/libcudnn.so.9")
  if(NOT EXISTS "${_file}")
    message(FATAL_ERROR "${_file} is not there: ./dev build --cuda installs it (tools/requirements-cuda.txt)")
  endif()
endforeach()

# Headers for the sources that speak to CUDA; nothing else gets these flags.
add_library(cuda_headers INTERFACE)
target_include_directories(cuda_headers SYSTEM INTERFACE "${_nvidia}/cu13/include" "${_nvidia}/nccl/include")

# libtorch_cuda.so registers its kernels when it is loaded and no symbol of it need be used: it is linked all the same.
add_library(libtorch_cuda INTERFACE)
target_link_libraries(libtorch_cuda INTERFACE
  "${_torch}/lib/libtorch_cuda.so" "${_torch}/lib/libc10_cuda.so"
  "${_nvidia}/cu13/lib/libcudart.so.13" "${_nvidia}/nccl/lib/libnccl.so.2")
target_link_options(libtorch_cuda INTERFACE "-Wl,--no-as-needed")
foreach(_folder cu13 nccl cudnn cusparselt nvshmem)
  target_link_options(libtorch_cuda INTERFACE
    "-Wl,-rpath,${_nvidia}/${_folder}/lib" "-Wl,-rpath-link,${_nvidia}/${_folder}/lib")
endforeach()

# Compiles .cu files into objects and names them in `out`. Their include path has src/ and CUDA, nothing of ATen.
function(pent_cuda_objects out)
  set(flags -std=c++20 -O3 -ccbin "${CMAKE_CXX_COMPILER}" -I "${CMAKE_SOURCE_DIR}/src"
      --compiler-options=-Wall,-fno-math-errno)
  foreach(architecture IN LISTS PENT_CUDA_ARCHITECTURES)
    list(APPEND flags -gencode "arch=compute_${architecture},code=sm_${architecture}")
  endforeach()
  if(PENT_WERROR)
    list(APPEND flags --Werror all-warnings --compiler-options=-Werror)
  endif()
  set(objects)
  foreach(source IN LISTS ARGN)
    file(RELATIVE_PATH name "${CMAKE_SOURCE_DIR}/src" "${source}")
    set(object "${CMAKE_BINARY_DIR}/cuda/${name}.o")
    get_filename_component(folder "${object}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    add_custom_command(OUTPUT "${object}"
                       # Relative names: the list of headers that ccache keeps then fits every clone.
                       COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${PENT_NVCC}" ${flags} -MD -MF "cuda/${name}.o.d"
                               -MT "cuda/${name}.o" -c "${source}" -o "cuda/${name}.o"
                       MAIN_DEPENDENCY "${source}" DEPENDS "${PENT_NVCC}" DEPFILE "${object}.d"
                       WORKING_DIRECTORY "${CMAKE_BINARY_DIR}" COMMENT "nvcc ${name}" VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
