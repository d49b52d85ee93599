#include "transports/rdma/gpu_memory/loopback.h"

#include <sched.h>

#include <utility>

#include "src/net/token.h"

namespace seto::rdma {
namespace {

constexpr std::uint64_t kRingSize = std::uint64_t{64} << 10;
constexpr std::uint32_t kRecords = 16;

std::uint32_t random_number() {
  std::uint32_t number = 0;
  fill_random(&number, sizeof number);
  return number;
}

Status pass(ChannelSetUp& from, ChannelSetUp& to) {
  while (const auto message = from.next_message()) SETO_TRY(to.hear(*message));
  return {};
}

}  // namespace

Result<std::unique_ptr<Loopback>> Loopback::open(Verbs& verbs, const std::string& device, Deadline until) {
  std::unique_ptr<Loopback> made(new Loopback());
  SETO_ASSIGN(made->devices_, Devices::open(verbs, {{device, 0}}));
  if (!made->devices_->troubles().empty()) return failure(Code::unavailable, "%s", made->devices_->troubles().front().c_str());
  SETO_TRY(made->connect(device, until));
  return made;
}

Status Loopback::connect(const std::string& device, Deadline until) {
  SETO_ASSIGN(Devices::Device* const opened, devices_->device(device));
  device_ = opened->verbs.get();
  ChannelSetUp::Setup setup;
  setup.devices = devices_.get();
  setup.peer = device + " itself";
  setup.random = random_number;
  setup.probe_ms = static_cast<std::uint64_t>(until.remaining_ms()) / 2;  // the rest is for the trial, or for another port
  setup.ring_size = kRingSize;
  setup.records = kRecords;
  ChannelSetUp selects(setup);
  setup.role = ChannelSetUp::Role::follows;
  ChannelSetUp follows(setup);
  for (bool one = false, other = false; !one || !other; sched_yield()) {
    if (until.passed()) return failure(Code::timeout, "%s made no channel to itself in time", device.c_str());
    SETO_TRY(pass(selects, follows));
    SETO_TRY(pass(follows, selects));
    one = selects.advance();
    other = follows.advance();
  }
  if (!selects.why().ok()) return selects.why();
  ends_[0] = selects.take();
  ends_[1] = follows.take();
  if (ends_[0] == nullptr || ends_[1] == nullptr)
    return failure(Code::unavailable, "%s has no channel to itself", device.c_str());
  return {};
}

Status Loopback::wait_for_record(Deadline until) {
  for (; receiver().front().empty(); sched_yield()) {
    for (const auto& end : ends_) end->flush();
    SETO_TRY(devices_->poll());
    for (const auto& end : ends_)
      if (end->broken()) return end->why();
    if (until.passed()) return failure(Code::timeout, "no record came in time");
  }
  return {};
}

void Loopback::stop() {
  for (const auto& end : ends_) end->stop(failure(Code::aborted, "the trial has ended"));
}

}  // namespace seto::rdma
