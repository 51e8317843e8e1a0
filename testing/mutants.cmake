# Each planted bug is a patch to one source file. A copy of that file is patched and linked in front of the library,
# so that everything else is the library's own; the simulation must find the bug within a thousand seeds.
if(NOT SIMBA_BUILD_TESTS OR SIMBA_SANITIZE)
  return()
endif()
find_program(PATCH_PROGRAM patch REQUIRED)

file(GLOB _patches CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/mutants/*.patch)
foreach(_patch ${_patches})
  get_filename_component(_name ${_patch} NAME_WE)
  file(STRINGS ${_patch} _target_line REGEX "^\\+\\+\\+ b/")
  string(REPLACE "+++ b/" "" _source ${_target_line})
  set(_mutated ${CMAKE_CURRENT_BINARY_DIR}/mutants/${_name}/${_source})
  add_custom_command(OUTPUT ${_mutated}
    COMMAND ${PATCH_PROGRAM} --quiet --fuzz=0 --output=${_mutated} ${PROJECT_SOURCE_DIR}/${_source} ${_patch}
    DEPENDS ${_patch} ${PROJECT_SOURCE_DIR}/${_source}
    COMMENT "Planting ${_name}"
    VERBATIM)
  get_filename_component(_folder ${_mutated} DIRECTORY)
  file(MAKE_DIRECTORY ${_folder})
  simba_add_program(NAME simba_mutant_${_name} SOURCES $<TARGET_OBJECTS:simba_simulate_main> ${_mutated} DEPS simba::simulation)
  add_test(NAME testing/Mutant.${_name}
    COMMAND simba_mutant_${_name} --kind lease --seeds 1000 --must-break yes)
  set_tests_properties(testing/Mutant.${_name} PROPERTIES LABELS cpu TIMEOUT 120)
endforeach()
