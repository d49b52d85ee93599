#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "src/base/fd.h"
#include "src/base/result.h"
#include "tests/lab/network.h"

namespace seto::lab {

// A TUN device of a network namespace, which sends and takes TCP super-packets of up to 64 KiB. Gone with the object.
class TunDevice final {
 public:
  // Makes the device in the namespace of /run/netns; the calling thread comes back to its own.
  static Result<TunDevice> open(const std::string& name_space, const std::string& device);

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Offload header and packet; 0 if none waits.
  [[nodiscard]] std::size_t read(std::span<std::byte> buffer);
  // What the kernel does not take (the interface is down) is lost, as on a wire.
  void write(const Delivery& delivery);
  Status set_carrier(bool on);

 private:
  explicit TunDevice(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace seto::lab
