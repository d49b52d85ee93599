#include "transports/rdma/gpu_memory/gpu_trial.h"

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "src/net/token.h"
#include "transports/rdma/link/registered_memory.h"

namespace seto::rdma {
namespace {

// More than one packet, and less than the longest record.
constexpr std::size_t kBytes = std::size_t{8} << 10;

// Random, so that bytes of an earlier trial in the same memory are not taken for those of this one.
std::vector<std::byte> random_bytes() {
  std::uint64_t seed = 0;
  fill_random(&seed, sizeof seed);
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(kBytes);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

Status no_room(Loopback& loopback) {
  return loopback.sender().broken() ? loopback.sender().why() : failure(Code::internal, "a new channel has no room");
}

// The device gathers a record from the GPU, as it does from named memory.
Status try_to_read(Loopback& loopback, GpuBuffer& buffer, const MemoryRegion& region, Deadline until) {
  const std::vector<std::byte> expected = random_bytes();
  SETO_TRY(buffer.write(expected));
  const std::array<std::byte, 1> head{std::byte{1}};
  const std::span<const std::byte> body(reinterpret_cast<const std::byte*>(buffer.address()), kBytes);
  if (!loopback.sender().send({head, {}}, {body, region.local_key()}).has_value()) return no_room(loopback);
  SETO_TRY(loopback.wait_for_record(until));
  const std::span<const std::byte> record = loopback.receiver().front();
  const bool equal = record.size() == head.size() + kBytes && std::equal(expected.begin(), expected.end(), record.begin() + 1);
  loopback.receiver().release();
  if (!equal)
    return failure(Code::unavailable, "the device read other bytes than the GPU has: an IOMMU or a bridge is between them");
  return {};
}

// `source`: registered, of kBytes. A record behind the write tells that it is there.
Status try_to_write(Loopback& loopback, GpuBuffer& buffer, const MemoryRegion& region, const RegisteredMemory& source,
                    Deadline until) {
  const std::vector<std::byte> expected = random_bytes();
  std::copy(expected.begin(), expected.end(), source.data());
  const RemotePlace place{buffer.address(), region.remote_key()};
  const std::array<std::byte, 1> record{std::byte{2}};
  if (!loopback.sender().write({source.data(), kBytes}, source.region().local_key(), place).has_value() ||
      !loopback.sender().send(record, {}))
    return no_room(loopback);
  SETO_TRY(loopback.wait_for_record(until));
  SETO_TRY(buffer.flush());
  std::vector<std::byte> found(kBytes);
  SETO_TRY(buffer.read(found));
  if (found != expected) return failure(Code::unavailable, "the GPU reads other bytes than the device wrote, after a flush too");
  return {};
}

}  // namespace

GpuTrial try_gpu_memory(Loopback& loopback, GpuBuffer& buffer, const MemoryRegion& region, Deadline until) {
  if (buffer.size() < kBytes) {
    const Status small = failure(Code::internal, "the memory for the trial is too small");
    return {small, small};
  }
  GpuTrial trial;
  trial.writes = trial.reads = try_to_read(loopback, buffer, region, until);
  if (!trial.reads.ok()) {
    loopback.stop();
    return trial;
  }
  Result<std::unique_ptr<RegisteredMemory>> source = RegisteredMemory::create(loopback.device(), kBytes);
  trial.writes = source.ok() ? try_to_write(loopback, buffer, region, *source.value(), until) : source.status();
  loopback.stop();  // before the registration of the source ends
  return trial;
}

}  // namespace seto::rdma
