#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "src/base/clock.h"
#include "tests/support/peer_groups.h"

// Messages with distinct contents over the streams of one member.
namespace seto::support {

inline constexpr std::uint64_t kPatienceMs = 30'000;  // enough for several members on two busy cores under a race detector

inline std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
  value = (value ^ value >> 27) * 0x94d049bb133111ebU;
  return value ^ value >> 31;
}

inline void write_pattern(std::byte* data, std::size_t size, std::uint64_t key) {
  for (std::size_t at = 0; at < size; at += sizeof key) {
    const std::uint64_t word = mixed(key + at);
    std::memcpy(data + at, &word, std::min(sizeof word, size - at));
  }
}

inline bool has_pattern(const std::byte* data, std::size_t size, std::uint64_t key) {
  for (std::size_t at = 0; at < size; at += sizeof key) {
    const std::uint64_t word = mixed(key + at);
    if (std::memcmp(data + at, &word, std::min(sizeof word, size - at)) != 0) return false;
  }
  return true;
}

// One end of a stream. `key` makes its contents differ from those of other streams.
struct Flow {
  std::unique_ptr<SendStream> send;
  std::unique_ptr<ReceiveStream> receive;
  std::uint32_t size = 0;
  std::uint64_t slices = 1;
  std::uint64_t key = 0;
  std::uint64_t next = 0;

  [[nodiscard]] std::uint64_t key_of(Mark mark) const { return mixed(key) ^ mixed(mark); }
  [[nodiscard]] bool done() const { return next == slices; }

  // Sends or receives the next slice if possible. Returns false if it is not possible yet.
  bool step(std::uint64_t operation) {
    if (done()) return false;
    const Mark mark = mark_of(operation, next);
    if (send != nullptr) {
      if (!fill_or_send(mark)) return false;
    } else {
      const std::byte* const message = receive->front(mark);
      if (message == nullptr) return false;
      EXPECT_TRUE(has_pattern(message, size, key_of(mark)))
          << "operation " << operation << " slice " << next << " of " << slices << ", " << size << " bytes";
      receive->release(mark);
    }
    ++next;
    return true;
  }

  // In half of the operations the message lies in memory of the caller, of exactly its size.
  bool fill_or_send(Mark mark) const {
    if (operation_of(mark) % 4 >= 2 && size > 0) {
      const auto message = std::make_unique<std::byte[]>(size);
      write_pattern(message.get(), size, key_of(mark));
      return send->send(mark, message.get(), size);
    }
    std::byte* const slot = send->acquire(mark);
    if (slot == nullptr) return false;
    write_pattern(slot, size, key_of(mark));
    send->commit(mark, size);
    return true;
  }
};

// Polls until the condition is true. Returns false at the deadline.
template <class Condition>
bool eventually(Condition condition) {
  const Deadline until = Deadline::after_ms(kPatienceMs);
  while (!condition()) {
    if (until.passed()) return false;
    sched_yield();
  }
  return true;
}

// Moves all slices of all flows, in any order that is possible.
inline bool drive(std::span<Flow> flows, std::uint64_t operation) {
  for (Flow& flow : flows) flow.next = 0;
  return eventually([&] {
    bool all = true;
    for (Flow& flow : flows) {
      while (flow.step(operation)) {
      }
      all = all && flow.done();
    }
    return all;
  });
}

// Runs a whole operation of one member.
inline bool operate(PeerGroup& peer_group, std::span<Flow> flows, std::uint64_t operation) {
  Note note;
  note.operation = operation;
  peer_group.status().begin(note);
  const bool driven = drive(flows, operation);
  EXPECT_TRUE(driven) << "operation " << operation << " never ended: " << peer_group.failure().text();
  peer_group.complete(operation);
  return driven && peer_group.failure().ok();
}

inline Flow sending(PeerGroup& peer_group, StreamAddress address, const std::vector<std::uint32_t>& receivers,
                    const StreamGeometry& geometry) {
  Flow flow;
  flow.send = peer_group.open_send(address, receivers, geometry).value();
  flow.size = geometry.slot_size;
  flow.slices = geometry.slices;
  flow.key = mixed(address.sender) + address.port + (address.group > 0 ? 1000U + address.group : receivers.front() * 7919U);
  return flow;
}

inline Flow receiving(PeerGroup& peer_group, std::uint32_t own, StreamAddress address, const StreamGeometry& geometry) {
  Flow flow;
  flow.receive = peer_group.open_receive(address, geometry).value();
  flow.size = geometry.slot_size;
  flow.slices = geometry.slices;
  flow.key = mixed(address.sender) + address.port + (address.group > 0 ? 1000U + address.group : own * 7919U);
  return flow;
}

}  // namespace seto::support
