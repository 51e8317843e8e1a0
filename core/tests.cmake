simba_add_test(NAME values_test
  SOURCES batcher_test.cc bell_test.cc contend_period_test.cc contender_id_test.cc deadlines_test.cc options_test.cc
          retired_test.cc strand_test.cc ticks_test.cc utf8_test.cc values_test.cc
  DEPS simba::core LABELS unit WHOLE)
simba_add_test(NAME parts_test
  SOURCES async_test.cc complaints_test.cc event_test.cc lock_manager_beat_test.cc lock_manager_strategy_test.cc
          store_checks_test.cc
  DEPS simba::core simba::fakes simba::memory LABELS unit WHOLE)
simba_add_test(NAME contention_test
  SOURCES contention_test.cc contention_chain_test.cc contention_end_test.cc contention_hold_test.cc contention_stop_test.cc
  DEPS simba::core simba::fakes LABELS unit WHOLE)
simba_add_test(NAME engine_test
  SOURCES engine_test.cc engine_ambiguity_test.cc engine_company_test.cc engine_end_test.cc engine_odds_test.cc
  DEPS simba::core simba::fakes simba::memory LABELS unit WHOLE)
# They come in between of the locks that are taken.
simba_add_test(NAME close_test SOURCES close_test.cc DEPS simba::core simba::fakes simba::memory LABELS unit WHOLE)
simba_see_locks(close_test)
simba_add_test(NAME try_lock_test SOURCES try_lock_test.cc DEPS simba::core simba::fakes simba::memory LABELS unit WHOLE)
simba_see_locks(try_lock_test)
simba_add_test(NAME thread_executor_test SOURCES thread_executor_test.cc thread_end_test.cc DEPS simba::core LABELS unit WHOLE)
