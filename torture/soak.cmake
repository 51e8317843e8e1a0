# The long load. A short run is a test, and so is one with leaks that it has to see.
simba_add_program(NAME simba_soak SOURCES soak_main.cc $<TARGET_OBJECTS:simba_own_servers> DEPS simba_soaking ${_deps})
add_dependencies(simba_soak simba_shift_clock)
if(NOT TARGET simba_sqlite)
  return()
endif()
set(_few --store sqlite --clients 4 --mutexes 20)
add_test(NAME torture/Soak.sqlite COMMAND simba_soak ${_few} --seconds 12
  --picture ${CMAKE_CURRENT_BINARY_DIR}/soak.svg --json ${CMAKE_CURRENT_BINARY_DIR}/soak.json)
set_tests_properties(torture/Soak.sqlite PROPERTIES LABELS cpu TIMEOUT 180 PROCESSORS 2)
add_test(NAME torture/Soak.SeesEveryLeak COMMAND simba_soak ${_few} --seconds 12 --must-leak)
set_tests_properties(torture/Soak.SeesEveryLeak PROPERTIES LABELS cpu TIMEOUT 180 PROCESSORS 2)
