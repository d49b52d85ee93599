#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/support/fake_verbs.h"

// How the bytes of a write come to their place: in pieces, in random order, and perhaps before those of earlier writes, or late;
// and which of them are counted.
namespace seto::support {

using rdma::CompletionStatus;
using rdma::SendRequest;

void FakeFabric::begin(Send& send, std::byte* target) {
  for (std::size_t at = 0; at < send.request.size; at += kPiece) send.pieces.push_back(at);
  std::shuffle(send.pieces.begin(), send.pieces.end(), random_);
  if (send.request.size > 0) std::memset(target, 0xa5, send.request.size);
  send.begun = true;
}

// Bytes of a later write may come before those of earlier ones where its target is not kept in order. No more writes are on their
// way than the peer has receive requests for. Completions keep their order.
bool FakeFabric::step_ahead(Pair& pair, const Pair& peer) {
  const std::size_t most = std::min(pair.sends.size(), peer.receives.size());
  if (most < 2) return false;
  Send& send = pair.sends[1 + random_() % (most - 1)];
  const auto region = regions_.find(send.request.remote_key);
  if (send.request.kind == SendRequest::Kind::send || send.request.size == 0 || region == regions_.end() ||
      region->second.in_order || refusal(pair, peer, send).has_value())
    return false;
  std::byte* const target = bytes_at(send.request.remote_key, send.request.target);
  if (send.begun && send.pieces.empty()) return false;
  if (send.begun)
    place_piece(send, target);
  else
    begin(send, target);
  return true;
}

// After refusal(). Null: a request of no bytes may name any memory.
std::byte* FakeFabric::bytes_at(std::uint32_t key, std::uint64_t address) {
  const auto found = regions_.find(key);
  return found == regions_.end() ? nullptr : found->second.memory + (address - found->second.address);
}

void FakeFabric::count_reads_of(const std::byte* memory, std::size_t size) {
  const std::lock_guard lock(mutex_);
  counted_ = {memory, size};
  bytes_read_ = 0;
}

std::size_t FakeFabric::bytes_read_of_dma_bufs() {
  const std::lock_guard lock(mutex_);
  return of_dma_bufs_;
}

std::size_t FakeFabric::bytes_read() {
  const std::lock_guard lock(mutex_);
  return bytes_read_;
}

void FakeFabric::count_writes_to(const std::byte* memory, std::size_t size) {
  const std::lock_guard lock(mutex_);
  counted_writes_ = {memory, size};
  bytes_written_ = 0;
}

std::size_t FakeFabric::bytes_written() {
  const std::lock_guard lock(mutex_);
  return bytes_written_;
}

void FakeFabric::keep_packets() {
  const std::lock_guard lock(mutex_);
  keeps_packets_ = true;
}

std::size_t FakeFabric::packets_on_their_way() {
  const std::lock_guard lock(mutex_);
  return packets_.size();
}

std::size_t FakeFabric::land_packets() {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const Packet& packet : std::exchange(packets_, {})) {
    if (pairs_.count(packet.pair) == 0 || regions_.count(packet.key) == 0) continue;
    write(bytes_at(packet.key, packet.address), packet.bytes);
    bytes += packet.bytes.size();
  }
  return bytes;
}

std::vector<std::byte> FakeFabric::piece_of(const Send& send, std::size_t at) {
  std::vector<std::byte> bytes(std::min(kPiece, send.request.size - at));
  if (send.inlined.empty())
    read_source(send.request, at, bytes);
  else
    std::memcpy(bytes.data(), send.inlined.data() + at, bytes.size());
  return bytes;
}

void FakeFabric::write(std::byte* target, std::span<const std::byte> bytes) {
  std::memcpy(target, bytes.data(), bytes.size());
  const auto offset = reinterpret_cast<std::uintptr_t>(target) - reinterpret_cast<std::uintptr_t>(counted_writes_.data());
  if (offset < counted_writes_.size()) bytes_written_ += bytes.size();
}

void FakeFabric::place_piece(Send& send, std::byte* target) {
  const std::size_t at = send.pieces.back();
  send.pieces.pop_back();
  const auto written = regions_.find(send.request.remote_key);
  std::vector<std::byte> bytes = piece_of(send, at);
  if (holds_writes_ && written != regions_.end() && written->second.is_dma_buf)
    held_writes_.push_back({target + at, std::move(bytes)});
  else
    write(target + at, bytes);
}

// A sender sends a packet again for as long as it exists, and reads it from where it lies.
void FakeFabric::leave_packets(const Pair& pair) {
  if (!keeps_packets_) return;
  for (const Send& send : pair.sends) {
    if (!send.begun || send.request.kind == SendRequest::Kind::send) continue;
    if (refusal(pair, pair, send) == CompletionStatus::local_protection_error) continue;
    for (const std::size_t at : send.pieces)
      packets_.push_back({pair.path.remote_queue_pair, send.request.remote_key, send.request.target + at, piece_of(send, at)});
  }
}

// A piece may begin in the first place and end in the second one.
void FakeFabric::read_source(const SendRequest& request, std::size_t at, std::span<std::byte> to) {
  const std::size_t first = request.size - request.rest_size;
  for (std::size_t done = 0; done < to.size();) {
    const bool in_first = at + done < first;
    const std::byte* const from = in_first ? request.source + at + done : request.rest + (at + done - first);
    const std::size_t size = in_first ? std::min(to.size() - done, first - at - done) : to.size() - done;
    const std::uint32_t key = in_first ? request.local_key : request.rest_key;
    std::memcpy(to.data() + done, bytes_at(key, reinterpret_cast<std::uint64_t>(from)), size);
    const bool is_dma_buf = regions_.at(key).is_dma_buf;
    if (garbles_reads_ && is_dma_buf) to[done] ^= std::byte{1};
    if (is_dma_buf) of_dma_bufs_ += size;
    const auto offset = reinterpret_cast<std::uintptr_t>(from) - reinterpret_cast<std::uintptr_t>(counted_.data());
    if (offset < counted_.size()) bytes_read_ += size;
    done += size;
  }
}

}  // namespace seto::support
