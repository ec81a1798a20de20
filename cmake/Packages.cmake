# Debian packages by CPack (script/package): the programs, the shared library, and what other projects build with.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR Syncopate)
set(CPACK_PACKAGE_CONTACT "The Syncopate developers")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL programs mpi libraries development python)
if(NOT TARGET syncopate-mpi-openmpi AND NOT TARGET syncopate-mpi-mpich)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME syncopate)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION "${PROJECT_DESCRIPTION}: command line")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SUGGESTS "gnuplot-nox, dataset-fashion-mnist, syncopate-mpi")

# Apart, so that nobody else has to install both libraries of MPI.
set(CPACK_DEBIAN_MPI_PACKAGE_NAME syncopate-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_COMPONENT_MPI_DESCRIPTION "${PROJECT_DESCRIPTION}: transport for Open MPI and MPICH")
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "syncopate (= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_LIBRARIES_PACKAGE_NAME libsyncopate${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARIES_DESCRIPTION "${PROJECT_DESCRIPTION}: shared library")
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_GENERATE_SHLIBS ON)

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libsyncopate-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "${PROJECT_DESCRIPTION}: headers for C, C++ and libtorch")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libsyncopate${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS libtorch-dev)
# An empty list of libraries is no error for headers alone.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-syncopate-torch)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "${PROJECT_DESCRIPTION}: training scripts in Python")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "libsyncopate${PROJECT_VERSION_MAJOR} (>= ${PROJECT_VERSION}), python3 (>= 3.9), python3-torch")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS syncopate)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
install(FILES ${PROJECT_SOURCE_DIR}/python/syncopate_backend.py DESTINATION lib/python3/dist-packages COMPONENT python)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/syncopate_torch DESTINATION lib/python3/dist-packages COMPONENT python
        FILES_MATCHING PATTERN *.py PATTERN *.pyi PATTERN py.typed PATTERN __pycache__ EXCLUDE)

foreach(package python:python3-syncopate-torch programs:syncopate mpi:syncopate-mpi libraries:libsyncopate${PROJECT_VERSION_MAJOR} development:libsyncopate-dev)
  string(REPLACE ":" ";" package ${package})
  list(GET package 0 component)
  list(GET package 1 name)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright DESTINATION share/doc/${name} COMPONENT ${component})
endforeach()

include(CPack)
