# Each planted bug is a patch to one source file. A copy of that file is patched and linked in front of the library,
# so that everything else is the library's own; the simulation must find the bug within a thousand seeds.
if(NOT SIMBA_BUILD_TESTS OR SIMBA_SANITIZE)
  return()
endif()
find_program(PATCH_PROGRAM patch REQUIRED)

# simba_plant(PATCH NAME MUTATED): the patch's name, and the patched copy that the build will make.
function(simba_plant patch name mutated)
  get_filename_component(bug ${patch} NAME_WE)
  file(STRINGS ${patch} target_line REGEX "^\\+\\+\\+ b/")
  string(REPLACE "+++ b/" "" source ${target_line})
  set(copy ${CMAKE_CURRENT_BINARY_DIR}/mutants/${bug}/${source})
  add_custom_command(OUTPUT ${copy}
    COMMAND ${PATCH_PROGRAM} --quiet --fuzz=0 --output=${copy} ${PROJECT_SOURCE_DIR}/${source} ${patch}
    DEPENDS ${patch} ${PROJECT_SOURCE_DIR}/${source}
    COMMENT "Planting ${bug}"
    VERBATIM)
  get_filename_component(folder ${copy} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  set(${name} ${bug} PARENT_SCOPE)
  set(${mutated} ${copy} PARENT_SCOPE)
endfunction()

file(GLOB _patches CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/mutants/*.patch)
foreach(_patch ${_patches})
  simba_plant(${_patch} _name _mutated)
  simba_add_program(NAME simba_mutant_${_name} SOURCES $<TARGET_OBJECTS:simba_simulate_main> ${_mutated} DEPS simba::simulation)
  add_test(NAME testing/Mutant.${_name}
    COMMAND simba_mutant_${_name} --kind lease --seeds 1000 --must-break yes)
  set_tests_properties(testing/Mutant.${_name} PROPERTIES LABELS cpu TIMEOUT 120)
endforeach()
