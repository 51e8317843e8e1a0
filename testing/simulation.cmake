# The simulation: the library's own objects under virtual time, for our attack and for users who simulate their own code.
simba_add_library(NAME simulation STATIC
  SOURCES attack.cc faults.cc model_store.cc own_call.cc schedule.cc schedule_own_thread.cc
    schedule_promises.cc schedule_sights.cc session_table.cc sim_node.cc sim_world.cc world.cc
  DEPS simba::core simba::memory simba::kit)

# Users include <simba/testing/sim_world.h>, here as where it is installed; these headers include each other that way too.
# A link, not a copy: "testing/sim_world.h" must be the same file.
set(_headers attack.h dice.h faults.h model_store.h sim_node.h sim_world.h task.h world.h)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/include/simba/testing)
foreach(_header ${_headers})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${_header}
    ${CMAKE_CURRENT_BINARY_DIR}/include/simba/testing/${_header} SYMBOLIC)
endforeach()
target_include_directories(simba_simulation PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/include>)
install(FILES ${_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/simba/testing COMPONENT simba_development)

simba_add_test(NAME sim_world_test SOURCES sim_world_test.cc DEPS simba::simulation LABELS unit WHOLE)
simba_add_test(NAME sim_replaced_test SOURCES sim_replaced_test.cc DEPS simba::simulation LABELS unit WHOLE)
