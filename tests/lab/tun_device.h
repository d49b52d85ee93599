#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "src/base/fd.h"
#include "src/base/result.h"
#include "tests/lab/packets.h"

namespace seto::lab {

// A TUN device of a network namespace, which sends and receives TCP super-packets of up to 64 KiB. It ends with the object.
class TunDevice final {
 public:
  // Makes the device in that namespace of /run/netns; the calling thread returns to its own.
  static Result<TunDevice> open(const std::string& name_space, const std::string& device);

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Reads the offload header and a packet. Returns 0 if no packet waits.
  [[nodiscard]] std::size_t read(std::span<std::byte> buffer);
  // Packets that the kernel does not accept (the interface is down) are lost, as on a wire.
  void write(Fragment fragment, Packet packet);
  Status set_carrier(bool on);

 private:
  explicit TunDevice(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace seto::lab
