# The contract suite on this store. simba::contract is made later, in testing/: links are looked up at the end.
if(SIMBA_BUILD_TESTS AND TARGET simba_sqlite)
  simba_add_test(NAME sqlite_contract_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/sqlite_contract_test.cc
    DEPS simba::contract simba::sqlite LABELS sleeping TIMEOUT 120)
endif()
