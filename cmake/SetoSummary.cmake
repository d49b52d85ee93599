# Prints the features of this build, and those that it leaves out, at the end of the configuration.
function(seto_say what present)
  if(present)
    message(STATUS "  ${what}: yes")
  else()
    message(STATUS "  ${what}: left out (not found or not asked for)")
  endif()
endfunction()

message(STATUS "Seto ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE} ${SETO_SANITIZE}")
seto_say("tests" "${SETO_TESTS}")
seto_say("micro-benchmarks" "${benchmark_FOUND}")
seto_say("CLI11 and nlohmann-json (command, benchmarks)" "${CLI11_FOUND}")
seto_say("ccache" "${SETO_CCACHE}")
