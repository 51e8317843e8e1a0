# simba::contract and simba::servers are made later, in testing/: links are looked up at the end.
if(SIMBA_BUILD_TESTS)
  simba_add_test(NAME postgres_unit_test SOURCES failure_test.cc postgres_url_test.cc
    DEPS simba::postgres simba::kit PostgreSQL::PostgreSQL LABELS unit WHOLE)
  simba_add_test(NAME postgres_contract_test SOURCES postgres_contract_test.cc
    DEPS simba::contract simba::postgres simba::servers PostgreSQL::PostgreSQL LABELS sleeping TIMEOUT 120)
  target_compile_definitions(postgres_contract_test PRIVATE "SIMBA_DOCS=\"${PROJECT_SOURCE_DIR}/docs\"")
  # On a server that all cases share, or that of SIMBA_TEST_POSTGRES_URL.
  simba_add_test(NAME postgres_store_test
    SOURCES postgres_store_test.cc postgres_trouble_test.cc postgres_fixture.cc
            ../kit/fixture.cc ../kit/sql_store_test.cc ../kit/sql_trouble_test.cc
    DEPS simba::postgres simba::kit simba::servers PostgreSQL::PostgreSQL LABELS sleeping TIMEOUT 120)
  # With servers that are killed, promoted, and put behind a pooler or TLS.
  simba_add_test(NAME postgres_server_test
    SOURCES postgres_server_test.cc postgres_fixture.cc ../kit/fixture.cc ../kit/sql_server_test.cc
    DEPS simba::postgres simba::kit simba::servers PostgreSQL::PostgreSQL LABELS sleeping)
  foreach(_test postgres_store_test postgres_server_test)
    target_compile_definitions(${_test} PRIVATE SIMBA_SQL_FIXTURE="stores/postgres/postgres_fixture.h")
  endforeach()
endif()
