#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace seto {

// Of most, and then why not.
inline const std::string kUnproven = "that did not prove that it belongs to this job: ";

// Of connections that are closed for what they did: one line for each address in a minute, however many there are. Not thread
// safe.
class StrangerLog final {
 public:
  static constexpr std::uint64_t kMinuteNs = 60'000'000'000;
  // Beyond so many addresses the one that was written of longest ago is forgotten.
  static constexpr std::size_t kAddressLimit = 1024;

  // The line that is due, if one is: "closed a connection from " the host, then what it did, and how many others of that address
  // there were since the last.
  [[nodiscard]] std::optional<std::string> note(const std::string& host, std::uint64_t now_ns, const std::string& what);

 private:
  struct Entry {
    std::uint64_t said_ns = 0;
    std::uint64_t unsaid = 0;
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace seto
