#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transports/rdma/connect/selection.h"
#include "transports/rdma/link/completions.h"
#include "transports/rdma/verbs/verbs.h"

namespace seto::rdma {

// The RDMA devices of a context: all that can be opened.
class Devices final {
 public:
  // A device that cannot be opened is left out; `troubles` says why. Failure: the list of devices cannot be read.
  static Result<std::unique_ptr<Devices>> open(Verbs& verbs);

  // Asks the devices again: states and addresses change.
  [[nodiscard]] std::vector<NamedPort> ports();
  [[nodiscard]] const std::vector<std::string>& troubles() const { return troubles_; }

  struct Device {
    std::unique_ptr<VerbsDevice> verbs;
    std::unique_ptr<Completions> completions;  // made on first use
  };
  // With its completion queue.
  [[nodiscard]] Result<Device*> device(const std::string& name);

  // Hands out the completions of all devices.
  Status poll();

 private:
  std::map<std::string, Device> devices_;
  std::vector<std::string> troubles_;
};

}  // namespace seto::rdma
