#include "tests/lab/tun_device.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace seto::lab {
namespace {

Status failed(const std::string& what) {
  return {Code::unavailable, what + ": " + std::strerror(errno) + (errno == EPERM ? " (needs root)" : "")};
}

Result<Fd> opened(const std::string& path, int flags) {
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!fd.valid()) return failed(path);
  return fd;
}

// Makes the device in the present namespace of the calling thread.
Result<Fd> make_device(const std::string& device) {
  SETO_ASSIGN(Fd fd, opened("/dev/net/tun", O_RDWR | O_NONBLOCK));
  ifreq request{};
  if (device.size() >= sizeof request.ifr_name)
    return Status(Code::invalid_argument, device + " is too long a name for a device");
  std::memcpy(request.ifr_name, device.c_str(), device.size());
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (ioctl(fd.get(), TUNSETIFF, &request) != 0) return failed("making the TUN device " + device);
  constexpr unsigned long kOffloads = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6;
  if (ioctl(fd.get(), TUNSETOFFLOAD, kOffloads) != 0) return failed("TUNSETOFFLOAD on " + device);
  int most = INT_MAX;
  if (ioctl(fd.get(), TUNSETSNDBUF, &most) != 0) return failed("TUNSETSNDBUF on " + device);
  return fd;
}

}  // namespace

Result<TunDevice> TunDevice::open(const std::string& name_space, const std::string& device) {
  SETO_ASSIGN(const Fd mine, opened("/proc/thread-self/ns/net", O_RDONLY));
  SETO_ASSIGN(const Fd theirs, opened("/run/netns/" + name_space, O_RDONLY));
  if (setns(theirs.get(), CLONE_NEWNET) != 0) return failed("entering the namespace " + name_space);
  auto made = make_device(device);
  if (setns(mine.get(), CLONE_NEWNET) != 0) return failed("leaving the namespace " + name_space);
  if (!made.ok()) return made.status();
  return TunDevice(std::move(made).value());
}

std::size_t TunDevice::read(std::span<std::byte> buffer) {
  const ssize_t size = ::read(fd_.get(), buffer.data(), buffer.size());
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

void TunDevice::write(Fragment fragment, Packet packet) {
  const auto* bytes = packet.data() + fragment.offset;
  const std::array<iovec, 3> parts = {{{&fragment.offload, sizeof fragment.offload},
                                       {fragment.header.data(), fragment.header_size},
                                       {const_cast<std::byte*>(bytes), fragment.size}}};
  static_cast<void>(::writev(fd_.get(), parts.data(), static_cast<int>(parts.size())));
}

Status TunDevice::set_carrier(bool on) {
  int carrier = on ? 1 : 0;
  return ioctl(fd_.get(), TUNSETCARRIER, &carrier) == 0 ? Status() : failed("TUNSETCARRIER");
}

}  // namespace seto::lab
