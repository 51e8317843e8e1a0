# simba::contract and simba::servers are made later, in testing/: links are looked up at the end.
if(SIMBA_BUILD_TESTS)
  simba_add_test(NAME mongodb_unit_test SOURCES mongodb_unit_test.cc
    DEPS simba::mongodb simba::kit mongo::mongoc_shared LABELS unit WHOLE)
  # On a replica set of one that all cases share, or the servers of SIMBA_TEST_MONGODB_URL.
  simba_add_test(NAME mongodb_contract_test SOURCES mongodb_contract_test.cc
    DEPS simba::contract simba::mongodb simba::servers simba_mongodb_server LABELS sleeping TIMEOUT 120)
  simba_add_test(NAME mongodb_store_test
    SOURCES mongodb_store_test.cc mongodb_java_test.cc mongodb_lock_manager_test.cc mongodb_race_test.cc mongodb_fixture.cc ../kit/fixture.cc
    DEPS simba::mongodb simba::kit simba::servers simba_mongodb_server LABELS sleeping TIMEOUT 240)
  # With servers that are killed, cut off and told to fail.
  simba_add_test(NAME mongodb_server_test SOURCES mongodb_server_test.cc mongodb_tls_test.cc mongodb_fixture.cc ../kit/fixture.cc
    DEPS simba::mongodb simba::kit simba::servers simba_mongodb_server LABELS sleeping TIMEOUT 120)
  # Three of them, started once for all cases.
  simba_add_test(NAME mongodb_set_test SOURCES mongodb_set_test.cc mongodb_fixture.cc ../kit/fixture.cc
    DEPS simba::mongodb simba::kit simba::servers simba_mongodb_server LABELS sleeping TIMEOUT 300 WEIGHT 3 WHOLE)
  simba_add_test(NAME mongodb_set_contract_test SOURCES mongodb_set_contract_test.cc
    DEPS simba::contract simba::mongodb simba::servers simba_mongodb_server LABELS sleeping TIMEOUT 300 WEIGHT 3 WHOLE)
  target_compile_definitions(mongodb_contract_test PRIVATE "SIMBA_DOCS=\"${PROJECT_SOURCE_DIR}/docs\"")
  target_compile_definitions(mongodb_server_test PRIVATE "SIMBA_DOCS=\"${PROJECT_SOURCE_DIR}/docs\"")
endif()
