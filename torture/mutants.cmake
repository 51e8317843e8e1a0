# Bugs that the attack must see: patches of the engine, shared with the simulation, and of the SQLite store. How they
# are linked is in testing/mutants.cmake. A run ends as soon as a promise is seen broken.
if(NOT COMMAND simba_plant OR NOT TARGET simba_sqlite)
  return()
endif()
file(GLOB _patches CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/mutants/*.patch)
foreach(_shared is_owner_until_the_next_poll message_asserts_ownership)
  list(APPEND _patches ${PROJECT_SOURCE_DIR}/testing/mutants/${_shared}.patch)
endforeach()
foreach(_patch ${_patches})
  simba_plant(${_patch} _name _mutated)
  simba_add_program(NAME simba_tortured_${_name} SOURCES ${_torture} ${_mutated} DEPS ${_deps})
  add_test(NAME torture/Planted.${_name}
    COMMAND simba_tortured_${_name} --store sqlite --seconds 150 --must-break)
  set_tests_properties(torture/Planted.${_name} PROPERTIES LABELS cpu TIMEOUT 300)
endforeach()
