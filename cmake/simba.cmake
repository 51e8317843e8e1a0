# What the CMakeLists.txt of each folder calls.
#
#   simba_add_library(NAME core SOURCES a.cc b.cc DEPS Threads::Threads)
#   simba_add_test(NAME contention_test SOURCES contention_test.cc DEPS simba::core LABELS unit WHOLE)
#   simba_add_program(NAME simba SOURCES main.cc DEPS simba::client INSTALL)

# The tree's own root, for those who include "core/contention.h" and its like. Never installed.
add_library(simba_internal INTERFACE)
target_include_directories(simba_internal INTERFACE ${PROJECT_SOURCE_DIR})

# Warnings for our own targets; users of the libraries do not see them.
add_library(simba_warnings INTERFACE)
target_compile_options(simba_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(simba_warnings INTERFACE -Wno-restrict)  # false alarms on string + string: GCC PR105651
endif()
if(SIMBA_WERROR)
  target_compile_options(simba_warnings INTERFACE -Werror)
endif()

if(SIMBA_SANITIZE)
  if(SIMBA_SANITIZE STREQUAL address)
    set(_sanitize -fsanitize=address,undefined -fno-sanitize-recover=all)
  elseif(SIMBA_SANITIZE STREQUAL thread)
    set(_sanitize -fsanitize=thread)
  else()
    message(FATAL_ERROR "SIMBA_SANITIZE is '${SIMBA_SANITIZE}': it can be empty, address or thread")
  endif()
  add_compile_options(${_sanitize} -fno-omit-frame-pointer)
  add_link_options(${_sanitize})
  # Instrumented code confuses these two analyses.
  target_compile_options(simba_warnings INTERFACE -Wno-maybe-uninitialized -Wno-stringop-overflow)
endif()

# Tests, and in builds with tests programs too, are not optimised, and without debug information but for the sanitizers'
# reports: half the time to build. The libraries have both.
set(_simba_test_options -O0)
if(NOT SIMBA_SANITIZE)
  list(APPEND _simba_test_options -g0)
endif()

# Tests are linked in a third of the time.
find_program(_simba_gold ld.gold NO_CACHE)
set(_simba_test_link_options)
if(_simba_gold AND NOT SIMBA_SANITIZE)
  set(_simba_test_link_options -fuse-ld=gold)
endif()

# simba_wants(FOLDER PACKAGE...): without each PACKAGE the FOLDER is left out.
function(simba_wants folder)
  foreach(package ${ARGN})
    find_package(${package} QUIET)
    if(NOT ${package}_FOUND)
      message(STATUS "${folder} is left out: ${package} was not found")
      list(APPEND SIMBA_LEFT_OUT ${folder})
    endif()
  endforeach()
  set(SIMBA_LEFT_OUT ${SIMBA_LEFT_OUT} PARENT_SCOPE)
endfunction()

# simba_add_library(NAME name SOURCES file... [DEPS target...] [PRIVATE_DEPS target...]
#                   [STATIC] [INTERNAL] [OF_TESTS] [PACKAGES package...] [PC_REQUIRES module...] [PC_LIBS library...])
#
# Makes simba_<name>, alias simba::<name>, installed as a component of the package.
#   STATIC       a static library also where the others are shared
#   INTERNAL     static, shared by our own libraries, no component; installed only where they are static
#   OF_TESTS     made of tests: compiled as they are where they are built
#   PACKAGES     what find_package must find before a user can link the static library
#   PC_REQUIRES  the same for pkg-config
#   PC_LIBS      the same, of a driver that ships no module: its -l flags
function(simba_add_library)
  cmake_parse_arguments(arg "STATIC;INTERNAL;OF_TESTS" "NAME" "SOURCES;DEPS;PRIVATE_DEPS;PACKAGES;PC_REQUIRES;PC_LIBS" ${ARGN})
  _simba_check_arguments(simba_add_library "${arg_UNPARSED_ARGUMENTS}" "${arg_NAME}" "${arg_SOURCES}")
  set(target simba_${arg_NAME})
  set(kind)
  if(arg_STATIC OR arg_INTERNAL)
    set(kind STATIC)
  endif()

  add_library(${target} ${kind} ${arg_SOURCES})
  add_library(simba::${arg_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${arg_NAME}
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}  # before 1.0 a minor version may change the ABI
    INSTALL_RPATH "$ORIGIN")  # the libraries find each other wherever they are installed
  if(arg_OF_TESTS AND SIMBA_BUILD_TESTS)
    _simba_compile_as_test(${target})
  else()
    _simba_compile_as_library(${target})
    _simba_reuse_headers(${target} simba_library_headers)
  endif()
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target}
    PUBLIC ${arg_DEPS}
    PRIVATE ${arg_PRIVATE_DEPS} $<BUILD_INTERFACE:simba_warnings>)

  if(arg_INTERNAL AND BUILD_SHARED_LIBS)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    set_target_properties(${target} PROPERTIES
      SIMBA_PACKAGES "${arg_PACKAGES}" SIMBA_PC_REQUIRES "${arg_PC_REQUIRES}" SIMBA_PC_LIBS "${arg_PC_LIBS}")
  endif()
  if(NOT arg_INTERNAL)
    set_property(GLOBAL APPEND PROPERTY SIMBA_COMPONENTS ${arg_NAME})
  endif()
  install(TARGETS ${target} EXPORT simbaTargets
    RUNTIME COMPONENT simba_runtime
    LIBRARY COMPONENT simba_runtime NAMELINK_COMPONENT simba_development
    ARCHIVE COMPONENT simba_development)
endfunction()

# simba_add_headers(): what most sources include, read once instead of hundreds of times: GoogleTest and the standard
# library for tests, the standard library for libraries, which are compiled in another way than programs, and for those.
# Only in builds with tests: where a library is built for users, a missing #include shows.
function(simba_add_headers)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/headers.cc CONTENT "")
  foreach(name test library program)
    add_library(simba_${name}_headers OBJECT ${PROJECT_BINARY_DIR}/headers.cc)
    target_link_libraries(simba_${name}_headers PRIVATE simba_warnings)
    target_compile_features(simba_${name}_headers PRIVATE cxx_std_20)
    target_precompile_headers(simba_${name}_headers PRIVATE <algorithm> <array> <atomic> <chrono> <condition_variable>
      <functional> <map> <memory> <mutex> <optional> <span> <stop_token> <string> <string_view> <thread> <unordered_map>
      <utility> <variant> <vector>)
  endforeach()
  target_link_libraries(simba_test_headers PRIVATE GTest::gtest_main $<TARGET_NAME_IF_EXISTS:GTest::gmock>)
  target_compile_options(simba_test_headers PRIVATE ${_simba_test_options})
  target_precompile_headers(simba_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  _simba_compile_as_library(simba_library_headers)
  target_compile_options(simba_program_headers PRIVATE ${_simba_test_options})
endfunction()

# Alike for shared and static libraries, so that one cache serves both.
function(_simba_compile_as_library target)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    DEFINE_SYMBOL "")
endfunction()

function(_simba_compile_as_test target)
  target_compile_options(${target} PRIVATE ${_simba_test_options})
  target_precompile_headers(${target} REUSE_FROM simba_test_headers)
  simba_compile_together(${target})
endfunction()

# simba_compile_together(TARGET...): a few sources at a time in builds with tests: what they instantiate of GoogleTest and
# the standard library takes most of the time, and is the same in all. So no two of them may give a name of their own to
# two things.
function(simba_compile_together)
  if(SIMBA_BUILD_TESTS)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
endfunction()

function(_simba_reuse_headers target headers)
  if(NOT TARGET ${headers})
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # More false alarms of PR105651: the headers do not count as the system's any more.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
  endif()
endfunction()

# simba_precompile(TARGET...): these are compiled as programs are, and read the headers once.
function(simba_precompile)
  foreach(target ${ARGN})
    _simba_reuse_headers(${target} simba_program_headers)
    if(TARGET simba_program_headers)
      target_compile_options(${target} PRIVATE ${_simba_test_options})
    endif()
  endforeach()
endfunction()

# simba_add_test(NAME name SOURCES file... [DEPS target...] [LABELS unit|sleeping|attack|cpu] [TIMEOUT seconds] [WEIGHT n]
#                [WHOLE])
#
# Makes the GoogleTest program <name>. Each case is a ctest entry "<folder>/<Suite>.<Case>". The label says how the
# case is run: unit in parallel, sleeping with many at once because it waits, then attack, which stops and kills
# processes, two per processor, and cpu, one per processor.
#   WEIGHT  how many of the sixteen places of the sleeping cases one case takes: more than 1 where it works a server.
#           These come first: later, with all places taken, there would be room for one that needs a single place only
#   WHOLE   for many cases of milliseconds each, or some that share what is dear: one entry "<folder>/<name>" runs them
#           all and writes gtest/<folder>/<name>.xml, from which script/test counts the cases. The single cases are
#           there too, with the label `case`, for script/test --filter.
function(simba_add_test)
  if(NOT SIMBA_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "WHOLE" "NAME;TIMEOUT;WEIGHT" "SOURCES;DEPS;LABELS" ${ARGN})
  _simba_check_arguments(simba_add_test "${arg_UNPARSED_ARGUMENTS}" "${arg_NAME}" "${arg_SOURCES}")
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 180)  # waits have patience of their own; this ends what hangs
  endif()
  if(NOT arg_WEIGHT)
    set(arg_WEIGHT 1)
  endif()
  set(cost 0)  # what ctest remembers of the last run
  if(arg_WEIGHT GREATER 1)
    math(EXPR cost "1000 * ${arg_WEIGHT}")
  endif()
  list(LENGTH arg_LABELS count)
  if(count GREATER 1)
    message(FATAL_ERROR "simba_add_test(${arg_NAME}): one label only")
  endif()

  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPS} simba_internal simba_warnings
    GTest::gtest_main $<TARGET_NAME_IF_EXISTS:GTest::gmock>)
  if(NOT arg_LABELS STREQUAL cpu)
    _simba_compile_as_test(${arg_NAME})
  endif()
  target_link_options(${arg_NAME} PRIVATE ${_simba_test_link_options})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(arg_WHOLE)
    add_test(NAME ${folder}/${arg_NAME}
      COMMAND ${arg_NAME} --gtest_output=xml:${PROJECT_BINARY_DIR}/gtest/${folder}/${arg_NAME}.xml)
    set_tests_properties(${folder}/${arg_NAME} PROPERTIES LABELS "${arg_LABELS};whole" TIMEOUT ${arg_TIMEOUT}
      PROCESSORS ${arg_WEIGHT} COST ${cost})
    set(arg_LABELS case)
  endif()
  include(GoogleTest)
  gtest_discover_tests(${arg_NAME}
    TEST_PREFIX ${folder}/
    NO_PRETTY_VALUES NO_PRETTY_TYPES
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_WEIGHT} COST ${cost})
endfunction()

# simba_see_locks(test): the locks that the test takes pass by testing/gaps.h.
function(simba_see_locks test)
  if(TARGET ${test})
    target_sources(${test} PRIVATE ${PROJECT_SOURCE_DIR}/testing/gaps.cc)
    target_link_options(${test} PRIVATE -Wl,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_unlock)
  endif()
endfunction()

# simba_add_program(NAME name SOURCES file... [DEPS target...] [INSTALL])
function(simba_add_program)
  cmake_parse_arguments(arg "INSTALL" "NAME" "SOURCES;DEPS" ${ARGN})
  _simba_check_arguments(simba_add_program "${arg_UNPARSED_ARGUMENTS}" "${arg_NAME}" "${arg_SOURCES}")
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPS} simba_internal simba_warnings)
  simba_precompile(${arg_NAME})
  if(arg_INSTALL)
    set_target_properties(${arg_NAME} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    install(TARGETS ${arg_NAME} RUNTIME COMPONENT simba_runtime)
  endif()
endfunction()

function(_simba_check_arguments caller unparsed name sources)
  if(unparsed OR NOT name OR NOT sources)
    message(FATAL_ERROR "${caller}: needs NAME and SOURCES; does not know '${unparsed}'")
  endif()
endfunction()

# Every simba library that LIBRARY links, itself first and what it needs after it.
function(_simba_closure library result)
  set(found ${library})
  set(rest ${library})
  while(rest)
    list(POP_FRONT rest next)
    get_target_property(links ${next} LINK_LIBRARIES)
    foreach(link ${links})
      string(REGEX REPLACE "^simba::" "simba_" link "${link}")
      if(TARGET ${link} AND link MATCHES "^simba_" AND NOT link MATCHES "^simba_(internal|warnings)$")
        list(REMOVE_ITEM found ${link})  # the last mention counts: a linker reads from left to right
        list(APPEND found ${link})
        list(APPEND rest ${link})
      endif()
    endforeach()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# Components that are had by name only: they would pull in GoogleTest.
set(SIMBA_TEST_SUPPORT fakes simulation contract)

# Installs the headers, the CMake package with its components, and simba.pc. Called once, after every library.
function(simba_install_package)
  get_property(components GLOBAL PROPERTY SIMBA_COMPONENTS)
  if(NOT components)
    return()
  endif()
  set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/simba)

  # simba::simba is everything but the test support.
  add_library(simba_all INTERFACE)
  add_library(simba::simba ALIAS simba_all)
  set_target_properties(simba_all PROPERTIES EXPORT_NAME simba)
  set(everything ${components})
  list(REMOVE_ITEM everything ${SIMBA_TEST_SUPPORT})
  list(TRANSFORM everything PREPEND simba:: OUTPUT_VARIABLE everything)
  target_link_libraries(simba_all INTERFACE ${everything})
  install(TARGETS simba_all EXPORT simbaTargets)

  set(SIMBA_PACKAGE_TABLE)
  foreach(component ${components})
    _simba_collect(simba_${component} SIMBA_PACKAGES packages)
    string(APPEND SIMBA_PACKAGE_TABLE "set(_simba_packages_${component} \"${packages}\")\n")
  endforeach()
  set(SIMBA_COMPONENTS ${components})

  set(libraries)
  set(requires)
  set(drivers)
  foreach(component ${components})
    if(NOT component IN_LIST SIMBA_TEST_SUPPORT)
      _simba_closure(simba_${component} closure)
      foreach(library ${closure})
        get_target_property(type ${library} TYPE)
        if(NOT (BUILD_SHARED_LIBS AND type STREQUAL STATIC_LIBRARY))
          list(REMOVE_ITEM libraries -l${library})
          list(APPEND libraries -l${library})
        endif()
      endforeach()
      _simba_collect(simba_${component} SIMBA_PC_REQUIRES modules)
      list(APPEND requires ${modules})
      _simba_collect(simba_${component} SIMBA_PC_LIBS flags)
      list(APPEND drivers ${flags})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES requires)
  list(REMOVE_DUPLICATES drivers)
  list(JOIN libraries " " SIMBA_PC_LIBS)
  list(JOIN drivers " " SIMBA_PC_DRIVERS)
  list(JOIN requires ", " SIMBA_PC_REQUIRES)

  include(CMakePackageConfigHelpers)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/simbaConfig.cmake.in simbaConfig.cmake
    INSTALL_DESTINATION ${cmake_dir} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(simbaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/simba.pc.in simba.pc @ONLY)
  install(EXPORT simbaTargets NAMESPACE simba:: DESTINATION ${cmake_dir} COMPONENT simba_development)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/simbaConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/simbaConfigVersion.cmake
    DESTINATION ${cmake_dir} COMPONENT simba_development)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/simba.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT simba_development)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/simba
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT simba_development FILES_MATCHING PATTERN "*.h")
endfunction()

# The values of a list PROPERTY over everything LIBRARY links, each once.
function(_simba_collect library property result)
  _simba_closure(${library} closure)
  set(values)
  foreach(each ${closure})
    get_target_property(value ${each} ${property})
    if(value)
      list(APPEND values ${value})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES values)
  set(${result} "${values}" PARENT_SCOPE)
endfunction()
