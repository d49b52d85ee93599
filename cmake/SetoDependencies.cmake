# Packages of the system. The library needs threads, highway and OpenSSL; the others are for tests, tools and benchmarks. hwloc is
# opened at run time.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# The packages of some distributions have no imported target for highway; all of them have a pkg-config file.
if(NOT TARGET hwy::hwy)
  pkg_check_modules(SETO_HWY REQUIRED IMPORTED_TARGET libhwy>=1.0)
  add_library(hwy::hwy ALIAS PkgConfig::SETO_HWY)
endif()
# Only highway's headers are used, not its library (src/device/instruction_sets.h gives the reason).
add_library(seto_highway INTERFACE)
target_include_directories(seto_highway SYSTEM INTERFACE $<TARGET_PROPERTY:hwy::hwy,INTERFACE_INCLUDE_DIRECTORIES>)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto SSL)

if(SETO_TESTS)
  find_package(GTest REQUIRED)
endif()
if(SETO_BENCH)
  find_package(benchmark QUIET)
endif()
find_package(CLI11 QUIET)
find_package(nlohmann_json QUIET)

# Header-only tools of the command and the benchmarks, under one name whether or not they were found.
add_library(seto_tool_headers INTERFACE)
if(TARGET CLI11::CLI11)
  target_link_libraries(seto_tool_headers INTERFACE CLI11::CLI11)
endif()
if(TARGET nlohmann_json::nlohmann_json)
  target_link_libraries(seto_tool_headers INTERFACE nlohmann_json::nlohmann_json)
endif()
