# Adds the program of docs/guides/cpp.md, "Your own loop", to the sources of loop_tests, which run it.
set(page ${CMAKE_SOURCE_DIR}/docs/guides/cpp.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
file(READ ${page} text)
string(FIND "${text}" "\n## Your own loop\n" section)
string(SUBSTRING "${text}" ${section} -1 text)
string(FIND "${text}" "```cpp\n" begin)
math(EXPR begin "${begin} + 7")
string(SUBSTRING "${text}" ${begin} -1 text)
string(FIND "${text}" "```\n" end)
string(SUBSTRING "${text}" 0 ${end} text)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/own_loop_snippet.cpp CONTENT "${text}" @ONLY)
target_sources(loop_tests PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/own_loop_snippet.cpp)
set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/own_loop_snippet.cpp
                            PROPERTIES COMPILE_DEFINITIONS main=own_loop_main SKIP_UNITY_BUILD_INCLUSION ON
                                       SKIP_PRECOMPILE_HEADERS ON)
