simba_add_test(NAME watchers_test SOURCES watchers_test.cc DEPS simba::kit LABELS unit WHOLE)
simba_add_test(NAME kit_test SOURCES backoff_test.cc claims_test.cc shortened_test.cc url_test.cc DEPS simba::kit LABELS unit WHOLE)
# Threads that wait for each other, and processes.
simba_add_test(NAME kit_thread_test SOURCES per_process_test.cc pool_test.cc reader_test.cc shared_log_test.cc DEPS simba::kit LABELS sleeping)
