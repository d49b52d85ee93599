#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace seto {

// Strangers may come by thousands: one line for each address in a minute. One thread.
class OnceAMinute final {
 public:
  // True if a line about this address is due, which is then taken as written.
  [[nodiscard]] bool due(const std::string& who);

 private:
  static constexpr std::uint64_t kPeriodNs = 60'000'000'000;
  static constexpr std::size_t kAddressLimit = 1'024;
  std::map<std::string, std::uint64_t> last_ns_;
};

}  // namespace seto
