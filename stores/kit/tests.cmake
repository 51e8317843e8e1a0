simba_add_test(NAME watchers_test SOURCES watchers_test.cc DEPS simba::kit LABELS unit WHOLE)
