#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace seto {

// The usual beginning of the reason.
inline const std::string kUnproven = "that did not prove that it belongs to this job: ";

// Limits the log lines about connections that are closed because they did not authenticate: one line per address and minute.
// Not thread safe.
class UnauthenticatedLog final {
 public:
  static constexpr std::uint64_t kMinuteNs = 60'000'000'000;
  // Beyond this number of addresses the entry that was logged longest ago is dropped.
  static constexpr std::size_t kAddressLimit = 1024;

  // Returns the line to log, if one is due: "closed a connection from HOST", then `what`, and the number of suppressed lines for
  // that address since the last one.
  [[nodiscard]] std::optional<std::string> note(const std::string& host, std::uint64_t now_ns, const std::string& what);

 private:
  struct Entry {
    std::uint64_t logged_ns = 0;
    std::uint64_t suppressed = 0;
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace seto
