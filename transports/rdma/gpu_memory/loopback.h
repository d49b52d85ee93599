#pragma once

#include <memory>
#include <string>

#include "src/base/clock.h"
#include "transports/rdma/connect/channel_set_up.h"
#include "transports/rdma/connect/devices.h"

namespace seto::rdma {

// A channel of one device to itself.
class Loopback final {
 public:
  static Result<std::unique_ptr<Loopback>> open(Verbs& verbs, const std::string& device, Deadline until);
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;
  ~Loopback() = default;

  [[nodiscard]] VerbsDevice& device() { return *device_; }
  [[nodiscard]] RingChannel& sender() { return *ends_[0]; }
  [[nodiscard]] RingChannel& receiver() { return *ends_[1]; }
  // Hands over what was sent, and waits until a record has arrived. A failure: none came in time, or the channel has broken.
  Status wait_for_record(Deadline until);
  // Destroys the queue pairs: the device touches no memory of its users from then on.
  void stop();

 private:
  Loopback() = default;
  Status connect(const std::string& device, Deadline until);

  std::unique_ptr<Devices> devices_;  // outlives the channels
  VerbsDevice* device_ = nullptr;
  std::unique_ptr<RingChannel> ends_[2];
};

}  // namespace seto::rdma
