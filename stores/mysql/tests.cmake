# simba::contract and simba::servers are made later, in testing/: links are looked up at the end.
if(SIMBA_BUILD_TESTS)
  simba_add_test(NAME mysql_unit_test SOURCES failure_test.cc mysql_url_test.cc
    DEPS simba::mysql simba::kit simba::servers mariadb LABELS unit WHOLE)
  simba_add_test(NAME mysql_contract_test SOURCES mysql_contract_test.cc
    DEPS simba::contract simba::mysql simba::servers mariadb LABELS sleeping TIMEOUT 240)
  target_compile_definitions(mysql_contract_test PRIVATE "SIMBA_DOCS=\"${PROJECT_SOURCE_DIR}/docs\"")
  # On a server that all cases share, or that of SIMBA_TEST_MYSQL_URL.
  simba_add_test(NAME mysql_store_test
    SOURCES mutex_table_test.cc mysql_bell_test.cc mysql_jvm_test.cc mysql_store_test.cc mysql_token_test.cc
            mysql_trouble_test.cc mysql_fixture.cc
            ../kit/fixture.cc ../kit/sql_store_test.cc ../kit/sql_trouble_test.cc
    DEPS simba::mysql simba::kit simba::servers mariadb LABELS sleeping TIMEOUT 120)
  # The steps on the table are named as those of the fixture are.
  set_source_files_properties(mutex_table_test.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  # With servers that are killed, read only, behind TLS, in another time zone, or three.
  simba_add_test(NAME mysql_server_test
    SOURCES galera_test.cc mariadb_replica_test.cc mysql_cost_test.cc mysql_server_test.cc mysql_fixture.cc ../kit/fixture.cc ../kit/sql_server_test.cc
    DEPS simba::mysql simba::kit simba::servers mariadb LABELS sleeping TIMEOUT 240)
  foreach(_test mysql_store_test mysql_server_test)
    target_compile_definitions(${_test} PRIVATE SIMBA_SQL_FIXTURE="stores/mysql/mysql_fixture.h")
  endforeach()
  target_compile_definitions(mysql_server_test PRIVATE "SIMBA_SHIFT_CLOCK=\"$<TARGET_FILE:simba_shift_clock>\"")
  add_dependencies(mysql_server_test simba_shift_clock)
  foreach(_test mysql_unit_test mysql_contract_test mysql_store_test mysql_server_test)
    target_include_directories(${_test} PRIVATE ${SIMBA_MARIADB_INCLUDE})
  endforeach()
endif()
