# A unity build compiles a folder's sources as one: with two cores the whole takes half as long. Presets
# choose it (CMAKE_UNITY_BUILD). Three kinds of sources are compiled alone: those whose helpers have the names
# of a neighbour's, those with flags of their own, and generated ones.

# compile_alone(TARGET SOURCE...) keeps sources, relative to the root, out of the unity build of a target.
function(compile_alone target)
  if(TARGET ${target})
    list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/)
    set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target}
                                PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# all_alone(TARGET...) does so with all sources of targets.
function(all_alone)
  foreach(target IN LISTS ARGN)
    if(TARGET ${target})
      set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
    endif()
  endforeach()
endfunction()

all_alone(syncopate_wire_messages syncopate_report_events syncopate_contract_cases contract_tests mpi_contract_tests)
# The library and its C++ headers have classes of the same names.
compile_alone(loop_tests tests/torch/loops/module_jobs.cpp tests/support/program_coordinator.cpp)
# What a test compiles again, with one line more in a list, must not come from the library, too.
all_alone(extension_tests codec_extension_tests network_extension_tests reducer_extension_tests)
compile_alone(syncopate_codec src/codec/codec.cpp)
compile_alone(syncopate_collective src/collective/reducer.cpp)
compile_alone(syncopate_scheme src/scheme/scheme_spec.cpp)
compile_alone(syncopate_spec src/spec/networks.cpp)
compile_alone(syncopate_torch torch/models/registry.cpp)
# A program gets a library's object files as a whole. What knows control messages is apart from the rest, so
# that `syncopate` needs no protobuf (process_command_line_test).
compile_alone(syncopate_cli_bench cli/bench/sizes.cpp)
compile_alone(syncopate_pacer src/pacer/pacer.cpp src/pacer/pacer_control.cpp)
compile_alone(syncopate_report src/report/recorder.cpp src/report/summary.cpp src/report/job_trace.cpp
              src/report/scalar_log.cpp src/report/event_file.cpp)
compile_alone(syncopate_runtime src/runtime/control_link.cpp src/runtime/job_view.cpp)
compile_alone(syncopate_telemetry src/telemetry/member_status.cpp)
compile_alone(syncopate_transport_mpi src/transport/mpi/module_file.cpp)
# They are there to be compiled alone.
all_alone(style_headers_plain style_headers_torch)

compile_alone(config_tests tests/unit/config/toml_table_test.cpp)
compile_alone(codec_tests tests/unit/codec/error_feedback_test.cpp
              tests/unit/codec/momentum_correction_test.cpp)
compile_alone(optim_tests tests/unit/optim/update_rule_test.cpp)
compile_alone(pacer_tests tests/unit/pacer/pacer_test.cpp)
compile_alone(membership_tests tests/unit/membership/liveness_test.cpp
              tests/unit/membership/wait_policy_test.cpp)
compile_alone(report_tests tests/unit/report/run_folder_test.cpp)
compile_alone(server_tests tests/unit/server/ssp_bound_test.cpp)
compile_alone(train_tests tests/unit/train/evaluation_progress_test.cpp)
compile_alone(scheme_tests tests/unit/scheme/round_tracker_test.cpp)
compile_alone(spec_tests tests/unit/spec/dependent_options_test.cpp)
compile_alone(sim_tests tests/sim/sim_network_test.cpp tests/sim/transfer_times_test.cpp)

# CMake's own unity sources include the others by absolute paths: to the compiler's cache, those of each clone of
# the repository are other ones.
# unite(TARGET) replaces the sources of a target by one that includes them, with paths relative to its own.
function(unite target)
  get_target_property(folder ${target} SOURCE_DIR)
  get_target_property(sources ${target} SOURCES)
  set(includes)
  set(others)
  foreach(source IN LISTS sources)
    set(path ${source})
    cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY ${folder})
    set(alone FALSE)
    foreach(property SKIP_UNITY_BUILD_INCLUSION HEADER_FILE_ONLY GENERATED COMPILE_OPTIONS COMPILE_DEFINITIONS)
      get_source_file_property(value ${path} TARGET_DIRECTORY ${target} ${property})
      if(value)
        set(alone TRUE)
      endif()
    endforeach()
    if(alone OR NOT path MATCHES "[.]cpp$")
      list(APPEND others ${source})
    else()
      list(APPEND includes ${path})
    endif()
  endforeach()
  list(LENGTH includes count)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  if(count GREATER 1)
    get_target_property(place ${target} BINARY_DIR)
    set(place ${place}/unity)
    set(text "")
    foreach(path IN LISTS includes)
      cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${place})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    file(CONFIGURE OUTPUT ${place}/${target}.cpp CONTENT "${text}" @ONLY)
    set_target_properties(${target} PROPERTIES SOURCES "${others};${place}/${target}.cpp")
  endif()
endfunction()

# unite_all(FOLDER) does so with all targets of a folder and those below it that ask for it.
function(unite_all folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(asked ${target} UNITY_BUILD)
    if(asked AND NOT type STREQUAL UTILITY AND NOT type STREQUAL INTERFACE_LIBRARY)
      unite(${target})
    endif()
  endforeach()
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(each IN LISTS below)
    unite_all(${each})
  endforeach()
endfunction()

unite_all(${PROJECT_SOURCE_DIR})
