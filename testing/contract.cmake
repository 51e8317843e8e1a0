# The contract suite, for authors of stores: they link it, name their store, and have the tests.
simba_add_library(NAME contract STATIC OF_TESTS
  SOURCES contract.cc contract_batches.cc contract_calls.cc contract_engine.cc contract_locker.cc contract_names.cc
          contract_observers.cc contract_operators.cc contract_originals.cc contract_recorder.cc contract_scheduler.cc
          contract_services.cc contract_succession.cc contract_timing.cc contract_watches.cc
  DEPS simba::core simba::fakes GTest::gtest
  PACKAGES GTest)
# Authors include <simba/testing/contract.h>, here as where it is installed.
configure_file(contract.h include/simba/testing/contract.h COPYONLY)
target_include_directories(simba_contract PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/include>)
install(FILES contract.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/simba/testing COMPONENT simba_development)

simba_add_test(NAME contract_recorder_test SOURCES contract_recorder_test.cc DEPS simba::contract simba::memory
  LABELS unit WHOLE)
simba_add_test(NAME memory_contract_test SOURCES ../stores/memory/memory_contract_test.cc
  DEPS simba::contract simba::memory LABELS sleeping TIMEOUT 120)
simba_add_test(NAME model_contract_test SOURCES model_contract_test.cc
  DEPS simba::contract simba::simulation LABELS sleeping TIMEOUT 120)
# A store as somebody outside would write it; its folder is a project of its own too.
simba_add_test(NAME outside_contract_test
  SOURCES ../examples/outside_store/outside_registry_test.cc ../examples/outside_store/outside_store_test.cc
  DEPS simba::contract simba::client LABELS sleeping TIMEOUT 120)
