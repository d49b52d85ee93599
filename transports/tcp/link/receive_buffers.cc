#include "transports/tcp/link/receive_buffers.h"

#include <algorithm>
#include <bit>
#include <new>

namespace seto::tcp {
namespace {

constexpr std::size_t kSmallest = 256;

std::size_t rounded(std::size_t size) { return std::bit_ceil(std::max(size, kSmallest)); }

std::size_t class_of(std::size_t rounded_size) { return static_cast<std::size_t>(std::countr_zero(rounded_size / kSmallest)); }

void release(std::byte* memory) { ::operator delete (memory, std::align_val_t{ReceiveBuffers::kAlignment}); }

}  // namespace

ReceiveBuffers::~ReceiveBuffers() {
  for (std::vector<std::byte*>& each : free_)
    for (std::byte* memory : each) release(memory);
}

std::byte* ReceiveBuffers::take(std::size_t size) {
  const std::size_t rounded_size = rounded(size);
  const std::size_t which = class_of(rounded_size);
  if (which >= kClasses || rounded_size > room()) return nullptr;
  std::byte* memory = nullptr;
  if (!free_[which].empty()) {
    memory = free_[which].back();
    free_[which].pop_back();
    kept_ -= rounded_size;
  } else {
    memory = static_cast<std::byte*>(::operator new (rounded_size, std::align_val_t{kAlignment}, std::nothrow));
  }
  if (memory != nullptr) in_use_ += rounded_size;
  return memory;
}

void ReceiveBuffers::give_back(std::byte* memory, std::size_t size) {
  const std::size_t rounded_size = rounded(size);
  in_use_ -= rounded_size;
  if (kept_ + rounded_size > kKept) return release(memory);
  kept_ += rounded_size;
  free_[class_of(rounded_size)].push_back(memory);
}

void ReceiveBuffers::set_limit(std::size_t limit) {
  limit_ = limit;
  renew_shares();
}

void ReceiveBuffers::renew_shares() {
  assured_ = shares_.empty() ? 0 : limit_ / 2 / shares_.size();
  beyond_ = 0;
  for (const ReceiveShare* const share : shares_) beyond_ += share->beyond(share->in_use_);
}

// ---- the share of one peer ----

ReceiveShare::ReceiveShare(ReceiveBuffers& buffers) : buffers_(buffers) {
  buffers_.shares_.push_back(this);
  buffers_.renew_shares();
}

ReceiveShare::~ReceiveShare() {
  std::erase(buffers_.shares_, this);
  buffers_.renew_shares();
}

bool ReceiveShare::may_use(std::size_t more) const {
  const std::size_t own = beyond(in_use_ + more);
  if (own == 0) return true;
  const std::size_t common = buffers_.limit_ / 2;
  const std::size_t others = buffers_.beyond_ - beyond(in_use_);
  return others <= common && own <= (common - others) / 2;
}

void ReceiveShare::set_use(std::size_t use) {
  buffers_.beyond_ += beyond(use) - beyond(in_use_);
  in_use_ = use;
}

std::byte* ReceiveShare::take(std::size_t size) {
  if (!may_use(rounded(size))) return nullptr;
  std::byte* const memory = buffers_.take(size);
  if (memory != nullptr) set_use(in_use_ + rounded(size));
  return memory;
}

void ReceiveShare::give_back(std::byte* memory, std::size_t size) {
  buffers_.give_back(memory, size);
  set_use(in_use_ - rounded(size));
}

bool ReceiveShare::charge(std::size_t bytes) {
  if (bytes > buffers_.room() || !may_use(bytes)) return false;
  buffers_.charged_ += bytes;
  set_use(in_use_ + bytes);
  return true;
}

void ReceiveShare::discharge(std::size_t bytes) {
  buffers_.charged_ -= bytes;
  set_use(in_use_ - bytes);
}

Status ReceiveShare::refusal(std::size_t bytes) const {
  if (may_use(rounded(bytes)) && rounded(bytes) <= buffers_.room())
    return failure(Code::unavailable, "no memory to receive a message of %zu bytes", bytes);
  if (may_use(rounded(bytes)))
    return failure(
        Code::unavailable,
        "no memory to receive %zu bytes: the limit of %zu bytes for received data of all peers is reached, because others "
        "had filled it before this peer joined",
        bytes, buffers_.limit_);
  return failure(
      Code::remote_error,
      "no memory to receive %zu bytes more of this peer: what it sent before and no call here has taken uses %zu bytes; %zu "
      "peers share %zu bytes, and each may use %zu of them while others use the rest",
      bytes, in_use_, buffers_.shares_.size(), buffers_.limit_, buffers_.assured_);
}

}  // namespace seto::tcp
