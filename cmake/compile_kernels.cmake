# Compiles SOURCE to STEM.fatbin, STEM.log and STEM.d in the working directory: see seto_compile_kernels.
execute_process(COMMAND ${COMPILE} -c -MD -MT "${STEM}.fatbin" -MF "${STEM}.d" -o "${STEM}.o" "${SOURCE}" RESULT_VARIABLE code
                OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT code EQUAL 0)
  message(NOTICE "${output}${errors}")  # a message of another kind would wrap the lines
  message(FATAL_ERROR "nvcc failed (${code}) on ${SOURCE}; -DSETO_KERNELS=OFF builds without GPU kernels")
endif()
file(WRITE "${STEM}.log" "${output}${errors}")
execute_process(COMMAND "${OBJCOPY}" -O binary --only-section=.nv_fatbin "${STEM}.o" "${STEM}.fatbin" RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${OBJCOPY} failed (${code}) on ${STEM}.o")
endif()
