# Where includes begin.
get_filename_component(SYNCOPATE_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)

# syncopate_folder(NAME [LINKS target...]) makes one static library, syncopate_NAME, of the sources
# of the current folder and of its subfolders that have no CMakeLists.txt of their own.
function(syncopate_folder name)
  cmake_parse_arguments(FOLDER "" "" "LINKS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp)
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    if(folder AND EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/CMakeLists.txt)
      list(REMOVE_ITEM sources ${source})
    endif()
  endforeach()
  add_library(syncopate_${name} STATIC ${sources})
  target_include_directories(syncopate_${name} PUBLIC ${SYNCOPATE_ROOT}/src ${SYNCOPATE_ROOT})
  target_link_libraries(syncopate_${name} PUBLIC ${FOLDER_LINKS} PRIVATE syncopate_warnings)
endfunction()
