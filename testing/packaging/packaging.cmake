# What authors of stores and users get for their own tests: <simba/testing/fake_executor.h> and its like, here as where
# they are installed. contract.cmake does the same for the contract suite.
set(_fakes fake_executor.h faulty_store.h)
foreach(_header ${_fakes})
  configure_file(${CMAKE_CURRENT_SOURCE_DIR}/${_header} ${CMAKE_CURRENT_BINARY_DIR}/include/simba/testing/${_header} COPYONLY)
endforeach()
target_include_directories(simba_fakes PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/include>)
install(FILES ${_fakes} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/simba/testing COMPONENT simba_development)

# The package as somebody outside uses it: each way to get it, with a small program that must build and run. One static
# and one shared installation serve them all; ccache, where it is there, serves all of their compilations but the first.
if(NOT SIMBA_BUILD_TESTS OR SIMBA_SANITIZE OR NOT TARGET simba_sqlite)
  return()
endif()
find_program(SIMBA_PKG_CONFIG pkg-config)

function(_simba_packaging_test name)
  cmake_parse_arguments(arg "" "NEEDS;MAKES" "STEP" ${ARGN})
  add_test(NAME testing/Packaging.${name}
    COMMAND ${PROJECT_SOURCE_DIR}/testing/packaging/try.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/outside ${arg_STEP})
  set_tests_properties(testing/Packaging.${name} PROPERTIES LABELS cpu TIMEOUT 900
    RESOURCE_LOCK simba_outside)
  if(arg_MAKES)
    set_tests_properties(testing/Packaging.${name} PROPERTIES FIXTURES_SETUP ${arg_MAKES})
  endif()
  if(arg_NEEDS)
    set_tests_properties(testing/Packaging.${name} PROPERTIES FIXTURES_REQUIRED ${arg_NEEDS})
  endif()
endfunction()

_simba_packaging_test(InstallsStaticLibraries STEP install static MAKES simba_static)
_simba_packaging_test(InstallsSharedLibraries STEP install shared MAKES simba_shared)
_simba_packaging_test(FindPackageStatic STEP find_package static NEEDS simba_static)
_simba_packaging_test(FindPackageShared STEP find_package shared NEEDS simba_shared)
_simba_packaging_test(OneStoreStatic STEP one_store static NEEDS simba_static)
_simba_packaging_test(OneStoreShared STEP one_store shared NEEDS simba_shared)
_simba_packaging_test(SharedLibrariesShowOurNamesAlone STEP symbols shared NEEDS simba_shared)
if(SIMBA_PKG_CONFIG)
  _simba_packaging_test(PkgConfigStatic STEP pkg_config static NEEDS simba_static)
  _simba_packaging_test(PkgConfigShared STEP pkg_config shared NEEDS simba_shared)
endif()
_simba_packaging_test(AddSubdirectoryStatic STEP in_tree add_subdirectory static)
_simba_packaging_test(AddSubdirectoryShared STEP in_tree add_subdirectory shared)
_simba_packaging_test(FetchContentStatic STEP in_tree fetch_content static)
_simba_packaging_test(FetchContentShared STEP in_tree fetch_content shared)
_simba_packaging_test(StoreFromOutsideRunsTheContract STEP outside_store static NEEDS simba_static)
_simba_packaging_test(SimulatesCodeFromOutside STEP simulated static NEEDS simba_static)
