# The public classes, with real threads and the real clock.
simba_add_test(NAME ticks_test SOURCES ticks_test.cc DEPS simba::core LABELS unit WHOLE)
set(_more_locker_tests locker_trouble_test.cc)
set(_more_contend_service_tests contend_service_end_test.cc)
foreach(name lock_manager locker contend_service retrieval_service scheduler client fork)
  simba_add_test(NAME ${name}_test SOURCES ${name}_test.cc ${_more_${name}_tests} DEPS simba::core simba::fakes simba::memory LABELS sleeping TIMEOUT 180)
endforeach()
simba_add_test(NAME stress_test SOURCES stress_test.cc DEPS simba::core simba::memory LABELS cpu TIMEOUT 240)
