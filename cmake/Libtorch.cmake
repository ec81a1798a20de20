# Finds the libtorch that Syncopate is built with: the system's, or one in a folder of its own, such as
# that of PyPI's torch (script/build --torch pip).
set(SYNCOPATE_LIBTORCH "" CACHE PATH
    "Folder with the include, lib and share of a libtorch; empty for the one of the system")

# libtorch's CMake files look for the rest of their package and would find Debian's: CMake searches
# the system's folders after these prefixes alone. Nothing else may be found in that folder.
if(SYNCOPATE_LIBTORCH)
  set(libtorch_config ${SYNCOPATE_LIBTORCH}/share/cmake/Torch/TorchConfig.cmake)
  if(NOT EXISTS ${libtorch_config})
    message(FATAL_ERROR "SYNCOPATE_LIBTORCH: expected the folder of a libtorch, found no ${libtorch_config}; "
                        "script/build --torch pip installs one")
  endif()
  list(PREPEND CMAKE_PREFIX_PATH ${SYNCOPATE_LIBTORCH})
endif()
# Syncopate::torch refers to libtorch's targets, and a project that adds Syncopate to its build links it in directories
# that see global ones alone.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(Torch REQUIRED)
unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
if(SYNCOPATE_LIBTORCH)
  list(POP_FRONT CMAKE_PREFIX_PATH)
endif()

# own_headers(INCLUDE FOLDER): a source finds FOLDER in the directory INCLUDE, not among libtorch's headers,
# which bring other versions of libraries that Syncopate links and are searched before the system's.
function(own_headers include folder)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/own-headers)
  file(CREATE_LINK ${include}/${folder} ${PROJECT_BINARY_DIR}/own-headers/${folder} SYMBOLIC)
endfunction()

if(SYNCOPATE_LIBTORCH)
  get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  own_headers(${fmt_include} fmt)
  own_headers(${Protobuf_INCLUDE_DIRS} google)
  list(PREPEND TORCH_INCLUDE_DIRS ${PROJECT_BINARY_DIR}/own-headers)
  # An installed program loads this libtorch from where it is now. CMake's own option for this leaves out a
  # folder below the sources, as that of script/build is.
  file(REAL_PATH ${SYNCOPATE_LIBTORCH}/lib SYNCOPATE_INSTALL_RPATH)
endif()
message(STATUS "libtorch ${Torch_VERSION} in ${TORCH_INSTALL_PREFIX}")
