# Each planted bug is a patch to a source file, or to two where one guards the other. Copies of these are patched and
# linked in front of the library, so that everything else is the library's own; the simulation must find the bug within a thousand seeds, by a promise
# that the patch names: "Breaks: P1,P1b" above it, and "Kind: push" where it takes another store than rows without hints.
if(NOT SIMBA_BUILD_TESTS OR SIMBA_SANITIZE)
  return()
endif()
find_program(PATCH_PROGRAM patch REQUIRED)

# simba_plant(PATCH NAME MUTATED): the patch's name, and the patched copies that the build will make.
function(simba_plant patch name mutated)
  get_filename_component(bug ${patch} NAME_WE)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/mutants/${bug})
  file(STRINGS ${patch} sources REGEX "^\\+\\+\\+ b/")
  list(TRANSFORM sources REPLACE "^\\+\\+\\+ b/" "")
  set(copying)
  foreach(source ${sources})
    list(APPEND copying COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/${source} ${folder}/${source})
  endforeach()
  list(TRANSFORM sources PREPEND ${folder}/ OUTPUT_VARIABLE copies)
  list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/)
  add_custom_command(OUTPUT ${copies}
    ${copying}
    COMMAND ${PATCH_PROGRAM} --quiet --fuzz=0 --no-backup-if-mismatch -p1 -d ${folder} -i ${patch}
    DEPENDS ${patch} ${sources}
    COMMENT "Planting ${bug}"
    VERBATIM)
  set(${name} ${bug} PARENT_SCOPE)
  set(${mutated} ${copies} PARENT_SCOPE)
endfunction()

file(GLOB _patches CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/mutants/*.patch)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_patches})
foreach(_patch ${_patches})
  simba_plant(${_patch} _name _mutated)
  file(STRINGS ${_patch} _breaks REGEX "^Breaks: ")
  file(STRINGS ${_patch} _kind REGEX "^Kind: ")
  if(NOT _breaks)
    message(FATAL_ERROR "${_patch} does not say which promise it breaks; add a line like \"Breaks: P1,P1b\" above the patch")
  endif()
  string(REPLACE "Breaks: " "" _breaks ${_breaks})
  string(REPLACE "Kind: " "" _kind "${_kind}")
  if(NOT _kind)
    set(_kind lease)
  endif()
  simba_add_program(NAME simba_mutant_${_name} SOURCES $<TARGET_OBJECTS:simba_simulate_main> ${_mutated} DEPS simba::simulation)
  add_test(NAME testing/Mutant.${_name}
    COMMAND simba_mutant_${_name} --kind ${_kind} --seeds 1000 --must-break ${_breaks})
  set_tests_properties(testing/Mutant.${_name} PROPERTIES LABELS cpu TIMEOUT 120)
endforeach()
