#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "tests/lab/network.h"
#include "tests/lab/tun_device.h"

namespace seto::lab {

struct RelayOptions {
  std::vector<std::string> namespaces;  // one for each site
  std::string device = "wan0";
  LinkSettings links;
  std::uint64_t seed = 1;
};

// Carries packets between the devices of all sites as the network decides. One thread, which waits in ppoll.
class Relay final : private Network::Sink {
 public:
  static Result<Relay> create(const RelayOptions& options);

  // Runs until `control` ends or SIGTERM arrives. Each line read from `control` is a command, answered by one line on standard
  // output:
  // "ok", "error: WHY" or the requested data. Commands: PAIRS OPTION... | uplink SITES OPTION... | downlink SITES OPTION... |
  // site NUMBER carrier=on|off | statistics.
  Status run(int control);

  [[nodiscard]] std::string statistics() const;

 private:
  Relay(const RelayOptions& options, std::vector<TunDevice> devices);

  void deliver(std::size_t site, const Fragment& fragment, Packet packet) override { devices_[site].write(fragment, packet); }
  std::size_t take_in();
  [[nodiscard]] bool hear(int control);
  [[nodiscard]] std::string answer(std::string_view line);
  Status set_carrier(std::string_view site, std::string_view option);

  Network network_;
  std::vector<TunDevice> devices_;
  std::vector<std::byte> buffer_;
  std::string unfinished_line_;
  Nanoseconds started_;
  bool realtime_ = false;
};

}  // namespace seto::lab
