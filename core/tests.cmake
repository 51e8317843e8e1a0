foreach(name bell options contend_period contender_id values utf8 deadlines strand retired batcher)
  simba_add_test(NAME ${name}_test SOURCES ${name}_test.cc DEPS simba::core LABELS unit WHOLE)
endforeach()
foreach(name async store_checks complaints event lock_manager_beat lock_manager_strategy try_lock)
  simba_add_test(NAME ${name}_test SOURCES ${name}_test.cc DEPS simba::core simba::fakes simba::memory LABELS unit WHOLE)
endforeach()
simba_add_test(NAME contention_test
  SOURCES contention_test.cc contention_chain_test.cc contention_end_test.cc contention_hold_test.cc contention_stop_test.cc
  DEPS simba::core simba::fakes LABELS unit WHOLE)
simba_add_test(NAME engine_test
  SOURCES engine_test.cc engine_ambiguity_test.cc engine_company_test.cc engine_end_test.cc engine_odds_test.cc
  DEPS simba::core simba::fakes simba::memory LABELS unit WHOLE)
# It comes in between of the locks that are taken.
if(TARGET try_lock_test)
  target_link_options(try_lock_test PRIVATE -Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_unlock)
endif()
simba_add_test(NAME thread_executor_test SOURCES thread_executor_test.cc thread_end_test.cc DEPS simba::core LABELS unit WHOLE)
