# Helpers that make a target of a folder. Sources are globbed: a new file in a folder is picked up by the next build.

include(GoogleTest)

# seto_library(NAME folder [HOT] [DIRECTORY path] [LINK targets...])
# makes seto_<folder> from every .cc below the folder: a static library, or an interface while there is none. HOT: a short call runs
# through it, so libseto.so inlines across its files when it is linked.
function(seto_library)
  cmake_parse_arguments(ARG "HOT" "NAME;DIRECTORY" "LINK" ${ARGN})
  set(directory "${CMAKE_CURRENT_SOURCE_DIR}")
  if(ARG_DIRECTORY)
    set(directory "${PROJECT_SOURCE_DIR}/${ARG_DIRECTORY}")
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${directory}/*.cc")
  if(sources)
    add_library(seto_${ARG_NAME} STATIC ${sources})
    target_link_libraries(seto_${ARG_NAME} PUBLIC seto_flags ${ARG_LINK} Threads::Threads)
    if(ARG_HOT AND SETO_LINK_TIME_INLINING)
      target_compile_options(seto_${ARG_NAME} PRIVATE -flto -ffat-lto-objects)
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
    target_link_options(${ARG_NAME} PRIVATE -fno-lto)  # tests link the archives: the machine code in them does
  endif()
  if(ARG_OUTPUT)
    set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${ARG_OUTPUT}")
  endif()
endfunction()

# seto_gtest(NAME name LABEL label SOURCES files... LINK targets... [PROPERTIES ...])
# The support library comes first and links nothing of Seto: a test pulls only the helpers that it uses.
function(seto_gtest)
  cmake_parse_arguments(ARG "" "NAME;LABEL" "SOURCES;LINK;PROPERTIES" ${ARGN})
  seto_program(NAME ${ARG_NAME} SOURCES ${ARG_SOURCES} OUTPUT tests LINK seto_test_support ${ARG_LINK} GTest::gmock
                                                                         GTest::gtest_main)
  target_precompile_headers(${ARG_NAME} REUSE_FROM seto_test_headers)
  set_target_properties(${ARG_NAME} PROPERTIES CROSSCOMPILING_EMULATOR "${SETO_TEST_LAUNCHER}")
  gtest_discover_tests(
    ${ARG_NAME}
    TEST_PREFIX "${SETO_TEST_PREFIX}"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    DISCOVERY_TIMEOUT 60
    # Ranks that a test kills, or that leave by _exit as forked children must, join no threads.
    PROPERTIES TIMEOUT 120 LABELS "${ARG_LABEL}" ENVIRONMENT "TSAN_OPTIONS=report_thread_leaks=0" ${ARG_PROPERTIES})
endfunction()

# seto_test_suite(NAME name LABEL label DIRECTORY path LINK targets... [ONE_THREAD])
# makes <name>_test of every *_test.cc below the folder. Files *_timing_test.cc measure time: they become
# <name>_timing_test, whose tests run alone on the machine. ONE_THREAD: nothing in it starts a second one, so ThreadSanitizer
# would see nothing in many minutes, and its tree goes without.
function(seto_test_suite)
  cmake_parse_arguments(ARG "ONE_THREAD" "NAME;LABEL;DIRECTORY" "LINK" ${ARGN})
  if(ARG_ONE_THREAD AND SETO_SANITIZE MATCHES "thread")
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${ARG_DIRECTORY}/*_test.cc")
  set(timing ${sources})
  list(FILTER timing INCLUDE REGEX "_timing_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_timing_test\\.cc$")
  if(sources)
    seto_gtest(NAME ${ARG_NAME}_test LABEL ${ARG_LABEL} SOURCES ${sources} LINK ${ARG_LINK})
  endif()
  if(timing)
    seto_gtest(NAME ${ARG_NAME}_timing_test LABEL ${ARG_LABEL} SOURCES ${timing} LINK ${ARG_LINK} PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()
