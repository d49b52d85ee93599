#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transports/rdma/connect/selection.h"
#include "transports/rdma/link/completions.h"
#include "transports/rdma/verbs/verbs.h"

namespace seto::rdma {

// A device, or one port of it (0: all).
struct PortName {
  std::string device;
  std::uint8_t port = 0;
  friend bool operator==(const PortName&, const PortName&) = default;
};

// The RDMA devices of a context: all that can be opened, or those that are named.
class Devices final {
 public:
  // A device that cannot be opened is left out; `troubles` says why. Failure: the list of devices cannot be read.
  // `only`: empty for all.
  static Result<std::unique_ptr<Devices>> open(Verbs& verbs, std::vector<PortName> only = {});

  // Asks the devices again: states and addresses change. One that does not answer is left out, and is in troubles() from then on.
  [[nodiscard]] std::vector<NamedPort> ports();
  [[nodiscard]] const std::vector<std::string>& troubles() const { return troubles_; }

  struct Device {
    std::unique_ptr<VerbsDevice> verbs;
    std::unique_ptr<Completions> completions;  // made on first use
    bool failed = false;                       // not used any more
    bool has_trouble = false;                  // it is in troubles()
  };
  // With its completion queue.
  [[nodiscard]] Result<Device*> device(const std::string& name);

  // Hands out the completions of all devices.
  Status poll();
  [[nodiscard]] std::map<std::string, Device>& all() { return devices_; }

 private:
  [[nodiscard]] bool wanted(const std::string& device, std::uint8_t port) const;

  std::vector<PortName> only_;
  std::map<std::string, Device> devices_;
  std::vector<std::string> troubles_;
};

}  // namespace seto::rdma
