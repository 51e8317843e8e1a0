simba_add_test(NAME lease_table_test SOURCES lease_table_test.cc DEPS simba::memory LABELS unit WHOLE)
