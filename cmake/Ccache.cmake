# ccache in front of the compiler, where it is installed. Paths are rewritten relative to the build folder and the
# folder itself is not hashed, so that another clone and another build folder beside it hit as well.
find_program(CCACHE ccache)
if(CCACHE)
  # The sloppiness: a precompiled header is compared by content, not by its time.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=/ CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
endif()
