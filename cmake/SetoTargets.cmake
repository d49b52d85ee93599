# Helpers that make a target of a folder. Sources are globbed: the next build includes a new file in a folder.

include(GoogleTest)

# seto_library(NAME folder [HOT | SMALL] [FLAT | EXCEPT room] [LARGE] [DIRECTORY path] [LINK targets...])
# makes seto_<folder> from every .cc below the folder: a static library, or an interface library if there is none. HOT: a short
# call runs through it, so libseto.so is linked with inlining across its files. SMALL: no
# call that moves data runs through it, so a release of it is compiled for size. FLAT: without the rooms of the folder, which are
# libraries of their own; EXCEPT: without that one. LARGE: releases and trees with sanitizers compile
# six of its sources as one, in half of the time, because they read most headers once. Where two of them have equal names in unnamed namespaces, rename one.
function(seto_library)
  cmake_parse_arguments(ARG "HOT;SMALL;FLAT;LARGE" "NAME;DIRECTORY;EXCEPT" "LINK" ${ARGN})
  set(directory "${CMAKE_CURRENT_SOURCE_DIR}")
  if(ARG_DIRECTORY)
    set(directory "${PROJECT_SOURCE_DIR}/${ARG_DIRECTORY}")
  endif()
  if(ARG_FLAT)
    file(GLOB sources CONFIGURE_DEPENDS "${directory}/*.cc")
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${directory}/*.cc")
  endif()
  if(ARG_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "^${directory}/${ARG_EXCEPT}/")
  endif()
  if(sources)
    add_library(seto_${ARG_NAME} STATIC ${sources})
    target_link_libraries(seto_${ARG_NAME} PUBLIC seto_flags ${ARG_LINK} Threads::Threads)
    if(ARG_HOT AND SETO_LINK_TIME_INLINING)
      target_compile_options(seto_${ARG_NAME} PRIVATE -flto -ffat-lto-objects)
    endif()
    if(ARG_LARGE AND (SETO_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Release"))
      set_target_properties(seto_${ARG_NAME} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    endif()
    if(ARG_SMALL)
      # With -Os GCC takes the value of an empty std::optional for one that may be read.
      target_compile_options(seto_${ARG_NAME} PRIVATE $<$<CONFIG:Release>:-Os>
                                                     $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>)
    endif()
  else()
    add_library(seto_${ARG_NAME} INTERFACE)
    target_link_libraries(seto_${ARG_NAME} INTERFACE seto_flags ${ARG_LINK} Threads::Threads)
  endif()
endfunction()

# seto_program(NAME name SOURCES files... [OUTPUT folder] LINK targets...)
function(seto_program)
  cmake_parse_arguments(ARG "" "NAME;OUTPUT" "SOURCES;LINK" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE seto_flags ${ARG_LINK} Threads::Threads)
  if(SETO_LINK_TIME_INLINING)
    target_link_options(${ARG_NAME} PRIVATE -fno-lto)  # tests use the machine code of the archives
  endif()
  if(SETO_SANITIZE MATCHES "address")
    # Without relocations a test program of 190 MB starts in 50 ms of processor time instead of 90.
    target_link_options(${ARG_NAME} PRIVATE -no-pie)
  endif()
  if(ARG_OUTPUT)
    set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${ARG_OUTPUT}")
  endif()
endfunction()

# When ctest ends a test, which hangs then: on a busy machine a test of the GPU kernels with ThreadSanitizer takes more than two minutes.
set(SETO_TEST_LIMIT_S 400)

# seto_gtest(NAME name LABEL label [FILTER filter] SOURCES files... LINK targets... [PROPERTIES ...])
# The support library comes first and links nothing of Seto, so a test links only the helpers that it uses.
function(seto_gtest)
  cmake_parse_arguments(ARG "" "NAME;LABEL;FILTER" "SOURCES;LINK;PROPERTIES" ${ARGN})
  seto_program(NAME ${ARG_NAME} SOURCES ${ARG_SOURCES} OUTPUT tests LINK seto_test_support ${ARG_LINK} GTest::gmock
                                                                         GTest::gtest_main seto_test_flags)
  target_precompile_headers(${ARG_NAME} REUSE_FROM seto_test_headers)
  set_target_properties(${ARG_NAME} PROPERTIES CROSSCOMPILING_EMULATOR "${SETO_TEST_LAUNCHER}")
  gtest_discover_tests(
    ${ARG_NAME}
    TEST_PREFIX "${SETO_TEST_PREFIX}"
    TEST_FILTER "${ARG_FILTER}"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    DISCOVERY_TIMEOUT 60
    # Ranks that a test kills, or that end by _exit as forked children must, join no threads.
    PROPERTIES TIMEOUT ${SETO_TEST_LIMIT_S} LABELS "${ARG_LABEL}" ENVIRONMENT "TSAN_OPTIONS=report_thread_leaks=0" ${ARG_PROPERTIES})
endfunction()

# seto_test_suite(NAME name LABEL label DIRECTORY path LINK targets... [FLAT] [ONE_THREAD | PARTLY_ONE_THREAD filter] [LONG filter])
# makes <name>_test of every *_test.cc below the folder, or with FLAT only of those in it. Files *_timing_test.cc measure time: they
# become <name>_timing_test, whose tests run alone on the machine. ONE_THREAD: the suite starts no second thread, so
# ThreadSanitizer would find nothing in many minutes, and its tree omits the suite; PARTLY_ONE_THREAD: the same for some of its
# tests. LONG: a filter of tests that compute for long what shorter tests of the suite compute too; trees with sanitizers omit them.
function(seto_test_suite)
  cmake_parse_arguments(ARG "FLAT;ONE_THREAD" "NAME;LABEL;DIRECTORY;LONG;PARTLY_ONE_THREAD" "LINK" ${ARGN})
  if(ARG_ONE_THREAD AND SETO_SANITIZE MATCHES "thread")
    return()
  endif()
  if(ARG_FLAT)
    file(GLOB sources CONFIGURE_DEPENDS "${ARG_DIRECTORY}/*_test.cc")
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${ARG_DIRECTORY}/*_test.cc")
  endif()
  set(timing ${sources})
  list(FILTER timing INCLUDE REGEX "_timing_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_timing_test\\.cc$")
  if(sources)
    set(left_out "")
    if(SETO_SANITIZE)
      list(APPEND left_out ${ARG_LONG})
    endif()
    if(SETO_SANITIZE MATCHES "thread")
      list(APPEND left_out ${ARG_PARTLY_ONE_THREAD})
    endif()
    list(JOIN left_out ":" left_out)
    set(filter "*")
    if(left_out)
      set(filter "-${left_out}")
    endif()
    seto_gtest(NAME ${ARG_NAME}_test LABEL ${ARG_LABEL} FILTER "${filter}" SOURCES ${sources} LINK ${ARG_LINK})
  endif()
  if(timing)
    seto_gtest(NAME ${ARG_NAME}_timing_test LABEL ${ARG_LABEL} SOURCES ${timing} LINK ${ARG_LINK} PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()
