# What every target is compiled with, and nothing that only one of them needs.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
# Line tables are enough for a backtrace; full debug information doubles the time of a build.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
# With its default GCC spends a tenth of its time looking for memory to free, most of it in precompiled headers, where there
# is none.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(--param=ggc-min-heapsize=1000000)
endif()
# It links a program in a quarter of the time of the default linker. Not a library: it exports what others hide.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold SYNCOPATE_LINKS_WITH_GOLD)
if(SYNCOPATE_LINKS_WITH_GOLD)
  string(APPEND CMAKE_EXE_LINKER_FLAGS " -fuse-ld=gold")
endif()

find_program(SYNCOPATE_CCACHE ccache)
if(SYNCOPATE_CCACHE)
  # ccache refuses precompiled headers unless told that their definitions and times may differ. It takes the included
  # files from what the compiler writes for Ninja, instead of preprocessing each source once more. It sees
  # paths inside the base folder as relative ones, so that other clones and presets use the same objects. The scripts, pip
  # and a plain `cmake --build` all get the folder from here. A CCACHE_BASEDIR of the user's own replaces it.
  set(SYNCOPATE_CCACHE_BASE ${PROJECT_SOURCE_DIR})
  if(DEFINED ENV{CCACHE_BASEDIR})
    set(SYNCOPATE_CCACHE_BASE $ENV{CCACHE_BASEDIR})
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${SYNCOPATE_CCACHE_BASE} CCACHE_NOHASHDIR=1 ${SYNCOPATE_CCACHE})
endif()

# clang refuses a precompiled header once the time of one of its files differs, which ccache does not look at, so with
# clang only headers of the system are precompiled.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(SYNCOPATE_PRECOMPILES_OWN_HEADERS ON)
endif()

add_library(syncopate_warnings INTERFACE)
target_compile_options(syncopate_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion)
if(PROJECT_IS_TOP_LEVEL)
  target_compile_options(syncopate_warnings INTERFACE -Werror)
  # GCC has refused a precompiled header that it had just written. It then reads the headers themselves.
  target_compile_options(syncopate_warnings INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-error=invalid-pch>)
endif()
