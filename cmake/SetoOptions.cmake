# Options, and the compile flags of every target of the project.

option(SETO_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(SETO_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(SETO_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(SETO_TORCH "Build the backend of torch.distributed, against the torch of this Python" OFF)
option(SETO_FUZZ "Build the fuzzers, and of the tests only those (clang)" OFF)
option(SETO_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
set(SETO_SANITIZE "" CACHE STRING "Sanitizers: empty, address,undefined or thread")
set(SETO_TEST_PREFIX "" CACHE STRING "Put before each test's name, so that several build trees can be tested as one")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# -g1 keeps function names and line tables for a profiler. No -march: the kernels choose their instruction set at run time.
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")
  set(CMAKE_${language}_FLAGS_DEBUG "-O0 -g")
  set(CMAKE_${language}_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer")
endforeach()

# Link-time optimisation: an 8-byte all-reduce between near cores calls some forty small functions of five folders; it takes 175
# ns without and 149 ns with it.
set(SETO_LINK_TIME_INLINING OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT SETO_SANITIZE)
  set(SETO_LINK_TIME_INLINING ON)
endif()

# Every target of the project links this; an installed library does not export it.
add_library(seto_flags INTERFACE)
target_include_directories(seto_flags INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
# -ffp-contract=off: a fused multiply-add would round at other places than the plan states.
target_compile_options(seto_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -ffp-contract=off -fvisibility=hidden
                                            $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)
if(SETO_WERROR)
  target_compile_options(seto_flags INTERFACE -Werror)
endif()

# For tests only. A large one takes 9.7 s to compile with -O3 and 6.2 s with -O1; with AddressSanitizer 14.1 s with the checks of
# undefined behaviour, 8.6 s without, 5.4 s with -O0. The code under test keeps them. A target links these flags last, because
# the last option decides.
add_library(seto_test_flags INTERFACE)
target_compile_options(seto_test_flags INTERFACE "$<$<CONFIG:Release>:-O1>")
if(SETO_SANITIZE MATCHES "undefined")
  target_compile_options(seto_test_flags INTERFACE -fno-sanitize=undefined -O0)
endif()

if(SETO_SANITIZE)
  target_compile_options(seto_flags INTERFACE -fsanitize=${SETO_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(seto_flags INTERFACE -fsanitize=${SETO_SANITIZE})
  target_compile_definitions(seto_flags INTERFACE SETO_SANITIZED=1)
  if(SETO_FUZZ)
    target_compile_options(seto_flags INTERFACE -fsanitize=fuzzer-no-link)
  endif()
  if(SETO_SANITIZE MATCHES "undefined")
    # This check opens a pipe for each object that it inspects, and reports every object once descriptors have run out, which
    # tests cause on purpose.
    target_compile_options(seto_flags INTERFACE -fno-sanitize=vptr)
    # AddressSanitizer finds both, too; they are an eighth of the compile time.
    target_compile_options(seto_flags INTERFACE -fno-sanitize=null,object-size)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Both warn of effects of instrumentation on correct code: fences that only order atomics, and values behind checks.
    target_compile_options(seto_flags INTERFACE -Wno-maybe-uninitialized -Wno-uninitialized $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  endif()
endif()

# Two clones of one commit compile to the same bytes, so they share the compiler cache. gdb finds sources from the clone's root.
target_compile_options(seto_flags INTERFACE "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")
find_program(SETO_CCACHE ccache)
if(SETO_CCACHE)
  foreach(language C CXX)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
                                              CCACHE_SLOPPINESS=pch_defines,time_macros "${SETO_CCACHE}")
    endif()
  endforeach()
endif()
