# The public classes, with real threads and the real clock.
simba_add_test(NAME api_test
  SOURCES client_test.cc contend_service_end_test.cc contend_service_test.cc fork_test.cc lock_manager_test.cc
          locker_test.cc locker_trouble_test.cc retrieval_service_test.cc scheduler_test.cc
  DEPS simba::core simba::fakes simba::memory LABELS sleeping TIMEOUT 180)
# Its clock is not the one of the others.
simba_add_test(NAME suspend_test SOURCES suspend_test.cc DEPS simba::core simba::fakes simba::memory LABELS sleeping)
simba_add_test(NAME stress_test SOURCES stress_test.cc DEPS simba::core simba::memory LABELS cpu TIMEOUT 240)
