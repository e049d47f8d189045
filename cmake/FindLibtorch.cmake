# The libtorch of PyPI's wheel, CPU part only: torch_cpu and c10 (find_package(Torch) wants a CUDA toolkit).
# LIBTORCH_SITE names the site-packages folder that holds torch/ and nvidia/cu13/.
if(NOT LIBTORCH_SITE)
  file(GLOB _sites "${CMAKE_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages")
  if(_sites)
    list(GET _sites 0 LIBTORCH_SITE)
  endif()
endif()
set(_torch "${LIBTORCH_SITE}/torch")
if(NOT EXISTS "${_torch}/include/ATen/core/Tensor.h")
  message(FATAL_ERROR "libtorch is not at ${_torch}: run ./dev setup, or pass -DLIBTORCH_SITE=<site-packages>")
endif()
set(Libtorch_FOUND TRUE)

# The wheel carries the headers of another fmt than the system's, with which spdlog and the parts without libtorch are
# built. A folder that holds only the system's fmt comes first.
find_path(_system_fmt NAMES fmt/core.h REQUIRED NO_CACHE)
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/system-fmt")
file(CREATE_LINK "${_system_fmt}/fmt" "${CMAKE_BINARY_DIR}/system-fmt/fmt" SYMBOLIC)

add_library(libtorch INTERFACE)
add_library(Libtorch::cpu ALIAS libtorch)
target_include_directories(libtorch SYSTEM INTERFACE
  "${CMAKE_BINARY_DIR}/system-fmt" "${_torch}/include" "${_torch}/include/torch/csrc/api/include")
target_link_libraries(libtorch INTERFACE "${_torch}/lib/libtorch_cpu.so" "${_torch}/lib/libc10.so")
target_link_options(libtorch INTERFACE
  "-Wl,-rpath,${_torch}/lib" "-Wl,-rpath,${LIBTORCH_SITE}/nvidia/cu13/lib"
  "-Wl,-rpath-link,${_torch}/lib" "-Wl,-rpath-link,${LIBTORCH_SITE}/nvidia/cu13/lib")
