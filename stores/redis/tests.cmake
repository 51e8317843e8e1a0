# simba::contract and simba::servers are made later, in testing/: links are looked up at the end.
if(SIMBA_BUILD_TESTS)
  simba_add_test(NAME redis_unit_test SOURCES redis_hearsay_test.cc redis_link_test.cc redis_unit_test.cc
    DEPS simba::redis simba::kit hiredis OpenSSL::SSL LABELS unit WHOLE)
  target_compile_definitions(redis_unit_test PRIVATE "SIMBA_REDIS_PAGE=\"${PROJECT_SOURCE_DIR}/docs/redis.md\"")
  simba_add_test(NAME redis_contract_test SOURCES redis_contract_test.cc redis_fixture.cc
    DEPS simba::contract simba::redis simba::kit simba::servers hiredis OpenSSL::SSL LABELS sleeping TIMEOUT 120)
  target_compile_definitions(redis_contract_test PRIVATE "SIMBA_DOCS=\"${PROJECT_SOURCE_DIR}/docs\"")
  simba_add_test(NAME redis_topology_contract_test SOURCES redis_topology_contract_test.cc
    DEPS simba::contract simba::redis simba::servers LABELS sleeping TIMEOUT 300 WEIGHT 2 WHOLE)
  # On a server that all cases share, or that of SIMBA_TEST_REDIS_URL; the last three with servers that are killed,
  # followed, moved, and put behind TLS.
  simba_add_test(NAME redis_store_test
    SOURCES redis_jvm_test.cc redis_rights_test.cc redis_store_test.cc redis_trouble_test.cc redis_wake_test.cc
            redis_replicas_test.cc redis_restart_test.cc redis_server_test.cc redis_fixture.cc
    DEPS simba::redis simba::kit simba::servers hiredis OpenSSL::SSL LABELS sleeping)
  target_compile_definitions(redis_store_test PRIVATE "SIMBA_SHIFT_CLOCK=\"$<TARGET_FILE:simba_shift_clock>\"")
  add_dependencies(redis_store_test simba_shift_clock)
  simba_add_test(NAME redis_topology_test SOURCES redis_cluster_test.cc redis_sentinel_test.cc redis_fixture.cc
    DEPS simba::redis simba::kit simba::servers hiredis OpenSSL::SSL LABELS sleeping TIMEOUT 240 WEIGHT 2)
  if(SIMBA_SANITIZE)  # what takes long to build is built when it is named
    set_target_properties(redis_contract_test redis_topology_contract_test redis_store_test redis_topology_test
      PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endif()
