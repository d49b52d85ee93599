#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace seto::testing {

// The resources that ptxas gave one kernel for one architecture, with the functions that it calls.
struct ResourceUsage {
  std::string kernel;
  std::string architecture;  // "sm_90"
  int registers = 0;         // of a thread; 0: the report does not say
  int stack_bytes = 0;
  int spilled_bytes = 0;  // stored and loaded
  int shared_bytes = 0;
};

// Reads the log of `nvcc -Xptxas -v`.
[[nodiscard]] std::vector<ResourceUsage> resource_usage(std::string_view log);

// The limit of the launch bounds: a multiprocessor has 65536 registers, and a thread 255 at most.
[[nodiscard]] int most_registers(int threads);

// The reason why a kernel may not be built so; empty: it may.
[[nodiscard]] std::string trouble_of(const ResourceUsage& usage, int threads);

}  // namespace seto::testing
