#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace seto {

// A core and the bytes that stay in its cache, as in TierCost.
struct CacheCost {
  double bytes_per_second = 0;  // of each operand
  double bytes = 0;             // of all operands together
};

// The budget of the measurement. An idle machine needs less than a millisecond, and page faults of the vectors as much again.
inline constexpr double kCacheProbeSeconds = 4e-3;
// All operands of the longest pass.
inline constexpr std::uint64_t kMostCacheProbeBytes = 4 << 20;

// Measures passes over more and more bytes until they become slow. `pass(bytes)`: works on operands of so many bytes together.
// The fastest of several batches counts, since every disturbance makes a batch longer.
CacheCost probe_cache(const std::function<void(std::uint64_t bytes)>& pass, const std::function<double()>& seconds);

// The largest cache of a processor, as the kernel describes it in that folder. 0: it does not.
double last_level_cache_bytes(const std::string& folder = "/sys/devices/system/cpu/cpu0/cache");

// The pass of a real machine: the sum of two vectors, with the kernel that calls use.
class SumPass final {
 public:
  SumPass();
  void operator()(std::uint64_t bytes);

 private:
  std::vector<float> one_, other_, sum_;
};

}  // namespace seto
