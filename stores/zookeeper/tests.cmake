simba_add_test(NAME zookeeper_unit_test
  SOURCES latch_test.cc nodes_test.cc places_test.cc session_lease_test.cc zookeeper_url_test.cc
  DEPS simba::zookeeper simba::kit
  LABELS unit WHOLE)

# On real servers. simba::contract and simba::servers are made later, in testing/: links are looked up at the end. Not
# under the thread sanitizer: it cannot see into the driver, and finds the one buffer that all of its handles share.
if(SIMBA_BUILD_TESTS AND NOT SIMBA_SANITIZE STREQUAL thread)
  simba_add_test(NAME zookeeper_contract_test SOURCES zookeeper_contract_test.cc zookeeper_fixture.cc
    DEPS simba::contract simba::zookeeper simba::kit simba::servers zookeeper_mt LABELS sleeping TIMEOUT 120 WEIGHT 2)
  target_compile_definitions(zookeeper_contract_test PRIVATE THREADED "SIMBA_DOCS=\"${PROJECT_SOURCE_DIR}/docs\"")

  simba_add_test(NAME ensemble_contract_test SOURCES ensemble_contract_test.cc
    DEPS simba::contract simba::zookeeper simba::servers LABELS sleeping TIMEOUT 300 WEIGHT 2 WHOLE)

  # Java beside ours: Curator's contender, and a tool for the server's files. Compiled where that is possible; what
  # needs it is skipped where not.
  set(_jars /usr/share/java/curator-recipes.jar:/usr/share/java/zookeeper.jar:/usr/share/java/zookeeper-jute.jar)
  set(_classes "")
  find_program(SIMBA_JAVAC javac)
  if(SIMBA_JAVAC AND EXISTS /usr/share/java/curator-recipes.jar AND EXISTS /usr/share/java/zookeeper.jar)
    set(_classes ${CMAKE_CURRENT_BINARY_DIR}/classes)
    add_custom_command(OUTPUT ${_classes}/CuratorContender.class ${_classes}/SetCount.class
      COMMAND ${SIMBA_JAVAC} -cp ${_jars} -d ${_classes} ${CMAKE_CURRENT_SOURCE_DIR}/CuratorContender.java
              ${CMAKE_CURRENT_SOURCE_DIR}/SetCount.java
      DEPENDS CuratorContender.java SetCount.java)
    add_custom_target(zookeeper_classes DEPENDS ${_classes}/CuratorContender.class)
  endif()
  simba_add_program(NAME zookeeper_contender SOURCES zookeeper_contender.cc DEPS simba::zookeeper)

  simba_add_test(NAME zookeeper_crowd_test SOURCES zookeeper_crowd_test.cc zookeeper_fixture.cc
    DEPS simba::zookeeper simba::kit simba::servers zookeeper_mt LABELS cpu)
  target_compile_definitions(zookeeper_crowd_test PRIVATE THREADED)
  simba_add_test(NAME zookeeper_store_test
    SOURCES curator_test.cc ensemble_test.cc zookeeper_cut_test.cc zookeeper_fault_test.cc zookeeper_session_test.cc
            zookeeper_store_test.cc zookeeper_tls_test.cc zookeeper_fixture.cc
    DEPS simba::zookeeper simba::kit simba::servers zookeeper_mt LABELS sleeping TIMEOUT 180 WEIGHT 2)  # they take turns
  target_compile_definitions(zookeeper_store_test PRIVATE THREADED  # shows the driver's blocking calls
    SIMBA_CONTENDER="$<TARGET_FILE:zookeeper_contender>" SIMBA_JAVA_CLASSES="${_classes}")
  add_dependencies(zookeeper_store_test zookeeper_contender)
  if(_classes)
    add_dependencies(zookeeper_store_test zookeeper_classes)
  endif()
endif()
