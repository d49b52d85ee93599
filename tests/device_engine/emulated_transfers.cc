#include "tests/device_engine/emulated_transfers.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "src/base/check.h"
#include "src/engine/kernels/device_launch.h"
#include "src/engine/kernels/transfers.h"

namespace seto::support {
namespace {

using kernels::Address;
using kernels::TransferOutcome;

constexpr std::size_t kMargin = 64;
constexpr std::byte kUntouched{0xA5};

Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

std::byte content(std::size_t sender, std::uint64_t number, std::uint64_t at) {
  std::uint64_t mixed = (sender + 1) * 0x9E3779B97F4A7C15U + number * 0xBF58476D1CE4E5B9U + at * 0x94D049BB133111EBU;
  mixed ^= mixed >> 29;
  return static_cast<std::byte>(mixed * 0xD6E8FEB86659FD93U >> 56);
}

TransferArea area_of(std::size_t ranks) {
  const Result<TransferArea> area = TransferArea::of(ranks, 0);
  return area.value();
}

LocalTransfer pair_of(const EmulatedTransfers::Call& call) {
  return call.sends ? LocalTransfer{LocalTransfer::Direction::send, static_cast<Rank>(call.message.receiver)}
                    : LocalTransfer{LocalTransfer::Direction::receive, static_cast<Rank>(call.message.sender)};
}

const char* name_of(TransferOutcome outcome) {
  return outcome == TransferOutcome::refused ? "refused" : outcome == TransferOutcome::stopped ? "stopped" : "unknown";
}

}  // namespace

EmulatedTransfers::EmulatedTransfers(std::size_t ranks) : ranks_(ranks), area_(area_of(ranks)) {
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    workspaces_.emplace_back(TransferArea::kSize / sizeof(std::uint64_t) + 16);
    // Aligned as in a workspace.
    const Address begin = address_of(workspaces_[rank].data());
    addresses_.push_back((begin + TransferArea::kAlignment - 1) / TransferArea::kAlignment * TransferArea::kAlignment);
    reports_.emplace_back(area_.lanes());
  }
  stop_.resize(ranks);
}

EmulatedTransfers::Prepared EmulatedTransfers::prepare(std::size_t rank, const Launch& launch) {
  Prepared prepared;
  std::vector<DeviceTransfer> messages;
  for (const Call& call : launch.calls) {
    const TestMessage& message = call.message;
    Buffer& buffer = prepared.buffers.emplace_back();
    // Buffers are aligned for numbers of 1, 2, 4 or 8 bytes only.
    buffer.shift = (message.size * 7 + (call.sends ? 3U : 0U)) % 16;
    buffer.bytes.assign(kMargin + 16 + message.size + kMargin, kUntouched);
    std::byte* const memory = buffer.bytes.data() + kMargin + buffer.shift;
    if (call.sends) {
      const std::uint64_t number = sent_[{rank, message.receiver}]++;
      for (std::uint64_t i = 0; i < message.size; ++i) memory[i] = content(rank, number, i);
    }
    messages.push_back({pair_of(call), {address_of(memory), message.size, message.label, message.numbered}});
  }
  prepared.program = transfer_program(area_, rank, addresses_, {messages, {}, launch.most_blocks});
  kernels::TransferProgram begin;
  std::memcpy(&begin, prepared.program.data(), sizeof begin);
  prepared.blocks = begin.blocks;
  prepared.arguments.program = address_of(prepared.program.data());
  prepared.arguments.reports = address_of(reports_[rank].data());
  prepared.arguments.stop = address_of(&stop_[rank]);
  prepared.arguments.launch = ++launches_;
  prepared.arguments.exchange = launch.exchange;
  return prepared;
}

void EmulatedTransfers::run(const std::vector<std::vector<Launch>>& launches, std::uint64_t timeout_ms) {
  std::vector<std::vector<Prepared>> prepared(launches.size());
  for (std::size_t rank = 0; rank < launches.size(); ++rank)
    for (const Launch& launch : launches[rank]) prepared[rank].push_back(prepare(rank, launch));
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t left = launches.size();
  std::vector<std::thread> ranks;
  for (std::size_t rank = 0; rank < launches.size(); ++rank)
    ranks.emplace_back([&, rank] {
      for (const Prepared& one : prepared[rank]) {
        std::vector<std::thread> blocks;
        for (std::uint32_t block = 0; block < one.blocks; ++block)
          blocks.emplace_back([&, block] { kernels::TransferBlock(one.arguments, block).run(); });
        for (std::thread& block : blocks) block.join();
      }
      const std::lock_guard lock(mutex);
      if (--left == 0) changed.notify_one();
    });
  std::unique_lock lock(mutex);
  const bool all_ended = changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return left == 0; });
  lock.unlock();
  if (!all_ended)
    for (std::uint64_t& stop : stop_) std::atomic_ref(reinterpret_cast<std::uint32_t&>(stop)).store(kernels::kStop);
  for (std::thread& rank : ranks) rank.join();
  list_stopped();
  if (!stopped_.empty()) return;
  for (std::size_t rank = 0; rank < launches.size(); ++rank)
    for (std::size_t i = 0; i < launches[rank].size(); ++i) check(rank, launches[rank][i], prepared[rank][i]);
}

void EmulatedTransfers::check(std::size_t rank, const Launch& launch, const Prepared& prepared) {
  for (std::size_t i = 0; i < launch.calls.size(); ++i) {
    const Call& call = launch.calls[i];
    const Buffer& buffer = prepared.buffers[i];
    const std::size_t begin = kMargin + buffer.shift;
    const std::string name = "rank " + std::to_string(rank) + (call.sends ? ", send to " : ", receive from ") +
                             std::to_string(call.sends ? call.message.receiver : call.message.sender) + " of " +
                             std::to_string(call.message.size);
    for (std::size_t k = 0; k < buffer.bytes.size(); ++k)
      if ((k < begin || k >= begin + call.message.size) && buffer.bytes[k] != kUntouched) {
        wrong_ += name + " writes beside its buffer\n";
        break;
      }
    if (call.sends) continue;
    const std::uint64_t number = checked_[{call.message.sender, rank}]++;
    for (std::uint64_t k = 0; k < call.message.size; ++k)
      if (buffer.bytes[begin + k] != content(call.message.sender, number, k)) {
        wrong_ += name + ": byte " + std::to_string(k) + " is wrong\n";
        break;
      }
  }
}

void EmulatedTransfers::list_stopped() {
  for (std::size_t rank = 0; rank < ranks_; ++rank)
    for (std::uint32_t i = 0; i < area_.lanes(); ++i) {
      const std::uint64_t state = reports_[rank][i].state;
      const auto outcome = static_cast<TransferOutcome>(state & ((1U << kernels::kReportBits) - 1));
      if (state == 0 || outcome == TransferOutcome::done) continue;
      const LocalTransfer pair = area_.pair_of(i);
      stopped_ += "rank " + std::to_string(rank) +
                  (pair.direction == LocalTransfer::Direction::send ? ": send to " : ": receive from ") +
                  std::to_string(pair.peer) + ": " + name_of(outcome) + "\n";
    }
}

}  // namespace seto::support
