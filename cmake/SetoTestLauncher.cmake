# Tests neither read nor write what jobs of this user keep (seto info calibration), unless they name a folder.
set(SETO_TEST_LAUNCHER "/usr/bin/env;XDG_CACHE_HOME=/dev/null")

# The sanitizer runtimes of GCC 12 and clang 14 expect at most 28 random bits in mmap addresses. On kernels configured for 32 bits
# they sometimes stop with "unexpected memory mapping". There, tests run under setarch without randomisation.
set(random_bits_file "/proc/sys/vm/mmap_rnd_bits")
if(SETO_SANITIZE AND EXISTS "${random_bits_file}")
  # Only root may read it; an unknown value counts as too many.
  execute_process(COMMAND cat "${random_bits_file}" OUTPUT_VARIABLE random_bits ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT random_bits MATCHES "^[0-9]+$" OR random_bits GREATER 28)
    execute_process(COMMAND setarch -R true RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET)
    if(refused EQUAL 0)
      list(APPEND SETO_TEST_LAUNCHER setarch -R)
      message(STATUS "Tests run under setarch -R: this kernel randomises more address bits than the sanitizers allow for")
    else()
      message(WARNING "setarch -R is missing or refused: tests may stop with 'unexpected memory mapping'. "
                      "Install util-linux, or run sysctl vm.mmap_rnd_bits=28.")
    endif()
  endif()
endif()
