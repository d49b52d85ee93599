# cmake --install runs this. Parameters: built, installed (the same program), debug_folder, objcopy, strip, readelf.

execute_process(COMMAND "${readelf}" -n "${built}" OUTPUT_VARIABLE notes ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
if(NOT notes MATCHES "Build ID: ([0-9a-f][0-9a-f])([0-9a-f]+)")
  message(FATAL_ERROR "${built} has no build-id: its debug symbols could not be found after stripping. Link it with -Wl,--build-id, "
                      "or configure with -DSETO_STRIP=OFF")
endif()
set(symbols "${debug_folder}/.build-id/${CMAKE_MATCH_1}/${CMAKE_MATCH_2}.debug")
cmake_path(GET symbols PARENT_PATH folder)
file(MAKE_DIRECTORY "${folder}")
execute_process(COMMAND "${objcopy}" --only-keep-debug "${built}" "${symbols}" COMMAND_ERROR_IS_FATAL ANY)
file(CHMOD "${symbols}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
execute_process(COMMAND "${strip}" --strip-unneeded "${installed}" COMMAND_ERROR_IS_FATAL ANY)
message(STATUS "Stripped: ${installed}, symbols: ${symbols}")
