#include "src/core/device_memory/multicast/multicast_memory.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "src/core/device_memory/memory/device_allocations.h"
#include "src/engine/kernels/multicast/multicast_program.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

using cuda::HandleType;

constexpr std::uint64_t kHandOverMs = 30'000;  // for all ranks to take the object: they come from an exchange at the same time

std::string name_of_rank(std::size_t rank) { return "rank " + std::to_string(rank); }

std::string obstacle_of(const RankStatement& statement, std::size_t rank) {
  switch (static_cast<MulticastOffer>(statement.multicast)) {
    case MulticastOffer::can:
      return {};
    case MulticastOffer::not_asked:
      return "SETO_NVLS is not on at " + name_of_rank(rank) + ": set it on all ranks";
    case MulticastOffer::driver_lacks:
      return "the driver of " + name_of_rank(rank) + " has no functions for it (cuMulticastCreate)";
    case MulticastOffer::gpu_lacks:
      break;
  }
  return "GPU " + std::to_string(statement.device) + " of " + name_of_rank(rank) +
         " has none (seto info gpus names those that have it)";
}

// By rank 0's random number, so that communicators of a machine do not meet.
std::string socket_name_of(const RankStatement& first) {
  std::array<char, 48> name{};
  std::snprintf(name.data(), name.size(), "seto-multicast-%016llx", static_cast<unsigned long long>(first.token));
  return name.data();
}

}  // namespace

MulticastOffer multicast_offer(const GpuContext& gpu, const Config& config) {
  if (!config.nvls) return MulticastOffer::not_asked;
  const cuda::Driver& driver = gpu.driver();
  bool has_all = true;
  for (const bool has :
       {driver.multicast_create.is_found(), driver.multicast_add_device.is_found(), driver.multicast_bind_mem.is_found(),
        driver.multicast_unbind.is_found(), driver.multicast_get_granularity.is_found()})
    has_all = has_all && has;
  if (!has_all) return MulticastOffer::driver_lacks;
  int supported = 0;
  const cuda::DriverCode code = driver.device_get_attribute.code(&supported, cuda::DeviceAttribute::multicast, gpu.device());
  return code == cuda::DriverCode::success && supported != 0 ? MulticastOffer::can : MulticastOffer::gpu_lacks;
}

MulticastMemory::MulticastMemory(const Setup& setup)
    : gpu_(setup.gpu),
      driver_(setup.gpu->driver()),
      rank_(setup.rank),
      ranks_(setup.statements.size()),
      socket_name_(socket_name_of(setup.statements[0])) {}

std::string MulticastMemory::obstacle_to(const Setup& setup) {
  for (std::size_t rank = 0; rank < setup.statements.size(); ++rank) {
    if (std::string obstacle = obstacle_of(setup.statements[rank], rank); !obstacle.empty()) return obstacle;
    for (std::size_t other = 0; other < rank; ++other)
      if (text_of(setup.statements[rank].gpu) == text_of(setup.statements[other].gpu))
        return name_of_rank(other) + " and " + name_of_rank(rank) + " share a GPU";
  }
  if (!setup.is_one_node) return "the GPUs of the ranks are not in one node, or do not reach each other";
  if (setup.statements.size() > kernels::kMostMulticastRanks)
    return std::to_string(setup.statements.size()) + " ranks are more than the " + std::to_string(kernels::kMostMulticastRanks) +
           " for which there are flags";
  return {};
}

Result<std::string> MulticastMemory::agree(const Setup& setup, std::unique_ptr<MulticastMemory>& made, Bootstrap& bootstrap,
                                           Deadline until) {
  made.reset(new MulticastMemory(setup));
  const auto all_have = [&](const Status& mine) { return obstacle_of_any(mine, setup.statements.size(), bootstrap, until); };
  SETO_ASSIGN(std::string obstacle, all_have(setup.rank == 0 ? made->create_object() : Status()));
  if (obstacle.empty()) {
    SETO_ASSIGN(obstacle, all_have(made->join_object(until.sooner_ms(kHandOverMs))));
  }
  if (obstacle.empty()) {
    SETO_ASSIGN(obstacle, all_have(made->bind_memory()));
  }
  if (obstacle.empty()) {
    SETO_ASSIGN(obstacle, all_have(made->map_object()));
  }
  return obstacle;
}

Status MulticastMemory::create_object() {
  cuda::MulticastProperties properties{.devices = static_cast<unsigned>(ranks_),
                                       .size = kernels::kMulticastMemory,
                                       .handle_types = static_cast<unsigned long long>(HandleType::posix_file_descriptor)};
  std::size_t unit = 0;
  SETO_TRY(driver_.multicast_get_granularity(&unit, &properties, cuda::Granularity::minimum));
  size_ = properties.size = (kernels::kMulticastMemory + unit - 1) / unit * unit;
  SETO_TRY(driver_.multicast_create(&object_, &properties));
  SETO_ASSIGN(file_, DeviceAllocations::descriptor_of(*gpu_, object_));
  SETO_ASSIGN(listener_, listen_local(socket_name_, SocketKind::packets));
  return {};
}

Status MulticastMemory::join_object(Deadline until) {
  const Status joined = rank_ == 0 ? hand_over(until) : receive_object(until);
  listener_ = {};  // ranks that would still wait for the object see that it does not come
  file_ = {};
  SETO_TRY(joined);
  return driver_.multicast_add_device(object_, gpu_->device());
}

// To each of the other ranks. A connection of another user gets nothing.
Status MulticastMemory::hand_over(Deadline until) const {
  for (std::size_t left = ranks_ - 1; left > 0;) {
    if (until.passed() || !wait_for(listener_.get(), POLLIN, until).ok())
      return failure(Code::timeout, "%zu ranks did not come for the multicast object", left);
    const PrivateFd socket = accept_local(listener_);
    if (!socket.valid() && errno != EAGAIN && errno != EINTR) return socket_failure("a rank cannot take the multicast object");
    if (!socket.valid() || !check_same_user(socket.get()).ok()) continue;
    const int descriptor = file_.get();
    if (send_packet(socket.get(), std::as_bytes(std::span(&size_, 1)), {&descriptor, 1}) < 0)
      return socket_failure("a rank does not take the multicast object");
    --left;
  }
  return {};
}

Status MulticastMemory::receive_object(Deadline until) {
  SETO_ASSIGN(const PrivateFd socket, connect_local(socket_name_, SocketKind::packets, until));
  SETO_TRY(check_same_user(socket.get()));
  ReceivedPacket packet;
  do {
    if (!wait_for(socket.get(), POLLIN, until).ok())
      return failure(Code::timeout, "rank 0 did not hand over the multicast object");
    packet = receive_packet(socket.get(), std::as_writable_bytes(std::span(&size_, 1)));
  } while (packet.size < 0 && (errno == EAGAIN || errno == EINTR));
  if (packet.size != static_cast<ssize_t>(sizeof size_) || packet.descriptors.size() != 1)
    return failure(Code::remote_error, "rank 0 did not hand over the multicast object");
  void* const source = reinterpret_cast<void*>(static_cast<std::intptr_t>(packet.descriptors.front().get()));
  return driver_.mem_import(&object_, source, HandleType::posix_file_descriptor);
}

Status MulticastMemory::bind_memory() {
  std::size_t size = size_;
  SETO_ASSIGN(memory_, DeviceAllocations::create(*gpu_, size));
  if (memory_ == 0 || size != size_) return failure(Code::unavailable, "the driver gives no memory that can be bound");
  SETO_TRY(map(own_, memory_));
  SETO_TRY(clear());
  SETO_TRY(driver_.multicast_bind_mem(object_, 0, memory_, 0, size_, 0));
  is_bound_ = true;
  return {};
}

Status MulticastMemory::clear() const {
  cuda::Stream stream = nullptr;
  SETO_TRY(driver_.stream_create_with_priority(&stream, cuda::kStreamNonBlocking, 0));
  Status status = driver_.memset_d8_async(own_.address, 0, size_, stream);
  if (status.ok()) status = driver_.stream_synchronize(stream);
  static_cast<void>(driver_.stream_destroy.code(stream));
  return status;
}

Status MulticastMemory::map(Mapping& mapping, cuda::MemoryHandle handle) const {
  SETO_TRY(driver_.mem_address_reserve(&mapping.address, size_, 0, 0, 0));
  SETO_TRY(driver_.mem_map(mapping.address, size_, 0, handle, 0));
  mapping.is_mapped = true;
  const cuda::MemoryAccess access{.location = {.id = gpu_->device()}};
  return driver_.mem_set_access(mapping.address, size_, &access, 1);
}

void MulticastMemory::unmap(Mapping& mapping) const {
  if (mapping.is_mapped) static_cast<void>(driver_.mem_unmap.code(mapping.address, size_));
  if (mapping.address != 0) static_cast<void>(driver_.mem_address_free.code(mapping.address, size_));
}

MulticastMemory::~MulticastMemory() {
  unmap(all_);
  if (is_bound_) static_cast<void>(driver_.multicast_unbind.code(object_, gpu_->device(), 0, size_));
  unmap(own_);
  if (memory_ != 0) static_cast<void>(driver_.mem_release.code(memory_));
  if (object_ != 0) static_cast<void>(driver_.mem_release.code(object_));
}

}  // namespace seto
