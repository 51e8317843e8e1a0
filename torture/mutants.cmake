# Bugs that the attack must see: patches of the engine, shared with the simulation, and of the SQLite store. How they
# are linked is in testing/mutants.cmake. A run ends as soon as a promise is seen broken.
if(NOT COMMAND simba_plant OR NOT TARGET simba_sqlite)
  return()
endif()
file(GLOB _patches CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/mutants/*.patch)
foreach(_shared is_owner_until_the_next_poll message_asserts_ownership)
  list(APPEND _patches ${PROJECT_SOURCE_DIR}/testing/mutants/${_shared}.patch)
endforeach()
# Which promise each breaks.
set(_breaks_expired_lease_stays P6)
set(_breaks_release_that_frees_nothing LIN)
set(_breaks_very_late_takeover P6)
set(_breaks_token_drawn_when_asked P3)
set(_breaks_token_stays P2)
set(_breaks_wire_ids_repeat P2)
set(_breaks_late_stop_request P4)
set(_breaks_no_stop_request P4)
set(_breaks_released_twice P4)
# No promise, but clients meet errors without a cause.
set(_breaks_some_takes_are_corrupt error)
set(_breaks_callback_throws error)
# No promise, but clients end badly.
set(_breaks_dies_at_the_end end)
set(_breaks_throws_no_error_of_ours end)
# What is seen at the end of a run.
set(_seconds_expired_lease_stays 6)
set(_seconds_very_late_takeover 1)
set(_seconds_dies_at_the_end 1)
# As much as the short runs have.
set(_slack_very_late_takeover 20)
foreach(_patch ${_patches})
  simba_plant(${_patch} _name _mutated)
  simba_add_program(NAME simba_tortured_${_name} SOURCES ${_torture} ${_mutated} DEPS ${_deps})
  set(_breaks P1)
  set(_seconds 150)
  set(_slack 1)
  foreach(_setting breaks seconds slack)
    if(DEFINED _${_setting}_${_name})
      set(_${_setting} ${_${_setting}_${_name}})
    endif()
  endforeach()
  add_test(NAME torture/Planted.${_name}
    COMMAND simba_tortured_${_name} --store sqlite --seconds ${_seconds} --slack ${_slack} --must-break ${_breaks})
  set_tests_properties(torture/Planted.${_name} PROPERTIES LABELS attack TIMEOUT 300)
endforeach()
# Wrong answers of the store are seen in the calls too, whatever the looks show.
foreach(_name token_stays unconditional_release upsert_without_its_where)
  add_test(NAME torture/PlantedCalls.${_name}
    COMMAND simba_tortured_${_name} --store sqlite --seconds 150 --slack 1 --must-break LIN)
  set_tests_properties(torture/PlantedCalls.${_name} PROPERTIES LABELS attack TIMEOUT 300)
endforeach()
# It is the store that says so.
set_tests_properties(torture/Planted.some_takes_are_corrupt PROPERTIES FAIL_REGULAR_EXPRESSION "  errors +none")
# It is no error of a call: only who reads the log sees it.
set_tests_properties(torture/Planted.callback_throws PROPERTIES FAIL_REGULAR_EXPRESSION "asked the store, and|was thrown")
# What comes late is a matter of time, what never comes one of safety.
set_tests_properties(torture/Planted.late_stop_request PROPERTIES FAIL_REGULAR_EXPRESSION "never told|safety +broken")
set_tests_properties(torture/Planted.no_stop_request PROPERTIES FAIL_REGULAR_EXPRESSION "safety +no promise broken")
# All that it breaks is late: only who compares the answers sees it.
set_tests_properties(torture/Planted.release_that_frees_nothing PROPERTIES FAIL_REGULAR_EXPRESSION "  (P1b?|P2|P3|R4|P6) +torture-")
# Nothing else is wrong with it: only who compares the order of the owners sees it.
set_tests_properties(torture/Planted.token_drawn_when_asked PROPERTIES FAIL_REGULAR_EXPRESSION "  (P1b?|P2|P4|R4|P6) +torture-|  end +client")
