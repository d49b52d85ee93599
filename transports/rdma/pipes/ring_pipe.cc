#include "transports/rdma/pipes/ring_pipe.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace seto::rdma {
namespace {

// The bytes of a header in front of a payload.
constexpr std::size_t kHeader = 64;

std::span<const std::byte> bytes_of(const iovec& part, std::size_t from) {
  return {static_cast<const std::byte*>(part.iov_base) + from, part.iov_len - from};
}

}  // namespace

// Two records hold the longest frame that a link of several paths sends: half of the longest record and a header. While the
// first one travels, the second one is copied.
RingPipe::RingPipe(std::unique_ptr<RingChannel> channel, PortPair ports, std::string way, OpenPipes& all,
                   RegistrationCache& memory, std::unique_ptr<RailSeats::Seat> seat)
    : channel_(std::move(channel)),
      ports_(std::move(ports)),
      way_(std::move(way)),
      all_(all),
      memory_(memory),
      seat_(std::move(seat)),
      piece_(std::min(channel_->most_bytes(), channel_->most_bytes() / 2 + kHeader)),
      lent_(channel_->most_requests()) {
  all_.push_back(this);
}

RingPipe::~RingPipe() {
  close();
  std::erase(all_, this);
}

ssize_t RingPipe::send(std::span<const iovec> parts) {
  std::size_t sent = 0;
  std::size_t at = 0;  // of the first part that is left
  while (!parts.empty() && !channel_->broken()) {
    std::span<const std::byte> head = bytes_of(parts.front(), at);
    head = head.first(std::min(head.size(), piece_));
    std::span<const std::byte> body;
    const bool ends = at + head.size() == parts.front().iov_len;
    if (ends && parts.size() > 1) body = bytes_of(parts[1], 0);
    body = body.first(std::min(body.size(), piece_ - head.size()));
    if (!send_record(head, body)) break;
    sent += head.size() + body.size();
    at = ends ? body.size() : at + head.size();
    if (ends) parts = parts.subspan(1);
    if (!parts.empty() && at == parts.front().iov_len) {
      parts = parts.subspan(1);
      at = 0;
    }
  }
  channel_->flush();
  return sent > 0 ? static_cast<ssize_t>(sent) : refuse();
}

ssize_t RingPipe::refuse() const {
  errno = channel_->broken() ? ECONNRESET : EAGAIN;
  return -1;
}

// One part at most is long, because headers are between payloads. Memory of a GPU is never copied here, however short the part
// is: the end of a payload that did not fit into the record before.
bool RingPipe::send_record(std::span<const std::byte> head, std::span<const std::byte> body) {
  std::optional<RegistrationCache::Use> use;
  RingChannel::Part parts[2] = {{head, {}}, {body, {}}};
  for (RingChannel::Part& part : parts) {
    if (part.bytes.empty()) continue;
    const bool of_gpu = memory_.is_of_gpu(part.bytes.data(), part.bytes.size());
    if (!of_gpu && (use.has_value() || part.bytes.size() < kLongPart)) continue;
    use = memory_.use_if_named(part.bytes.data(), part.bytes.size());
    if (use.has_value())
      part.key = use->local_key();
    else if (of_gpu)
      return false;
  }
  const std::optional<std::uint64_t> ticket = channel_->send(parts[0], parts[1]);
  if (!ticket.has_value()) return false;
  if (use.has_value())
    lend(std::move(*use), *ticket, head.size() + body.size());
  else
    accepted_ += head.size() + body.size();
  return true;
}

void RingPipe::lend(RegistrationCache::Use use, std::uint64_t ticket, std::size_t size) {
  lent_[(first_lent_ + lents_++) % lent_.size()].emplace(Lent{std::move(use), ticket, accepted_});
  accepted_ += size;
}

// ---- places ----

std::optional<BytePipe::OpenPlace> RingPipe::open_place(std::byte* memory, std::size_t size) {
  // Nothing would flush what a device has written to a GPU before its kernels read it.
  if (channel_->broken() || memory_.is_of_gpu(memory, size)) return std::nullopt;
  std::optional<RegistrationCache::Use> use = memory_.use_if_named(memory, size);
  if (!use.has_value()) return std::nullopt;
  const auto free = std::find_if(open_places_.begin(), open_places_.end(), [](const auto& each) { return !each.has_value(); });
  const auto name = static_cast<std::uint32_t>(free - open_places_.begin());
  const std::uint32_t key = use->remote_key();
  if (free == open_places_.end())
    open_places_.push_back(std::move(use));
  else
    *free = std::move(use);
  return OpenPlace{name, key};
}

ssize_t RingPipe::write_in_place(std::span<const std::byte> head, std::span<const std::byte> body, RemotePlace place) {
  if (channel_->broken()) return refuse();
  std::optional<RegistrationCache::Use> use = memory_.use_if_named(body.data(), body.size());
  if (!use.has_value()) {
    errno = EOPNOTSUPP;
    return -1;
  }
  const std::optional<std::uint64_t> ticket = channel_->write(body, use->local_key(), place, head);
  channel_->flush();
  if (!ticket.has_value()) return refuse();
  lend(std::move(*use), *ticket, head.size() + body.size());
  return static_cast<ssize_t>(head.size() + body.size());
}

void RingPipe::release_oldest() {
  lent_[first_lent_].reset();
  first_lent_ = (first_lent_ + 1) % lent_.size();
  --lents_;
}

void RingPipe::polled() {
  while (lents_ > 0 && channel_->written(oldest()->ticket)) release_oldest();
  channel_->flush();
}

ssize_t RingPipe::receive(std::span<const iovec> parts) {
  std::size_t got = 0;
  bool released = false;
  for (const iovec& part : parts) {
    for (std::size_t at = 0; at < part.iov_len;) {
      const std::span<const std::byte> record = channel_->front();
      if (record.empty()) break;
      const std::size_t some = std::min(part.iov_len - at, record.size() - read_);
      std::memcpy(static_cast<std::byte*>(part.iov_base) + at, record.data() + read_, some);
      at += some;
      got += some;
      read_ += some;
      if (read_ < record.size()) break;
      channel_->release();
      read_ = 0;
      released = true;
    }
  }
  if (released) channel_->flush();
  return got > 0 ? static_cast<ssize_t>(got) : refuse();
}

bool RingPipe::delivered() {
  if (channel_->broken()) return true;
  channel_->flush();
  channel_->settle();
  return channel_->delivered();
}

// The queue pair goes before the registrations, and before the owner of the memory may use it.
void RingPipe::close() {
  channel_->stop(failure(Code::aborted, "this end has closed it"));
  seat_.reset();
  while (lents_ > 0) release_oldest();
  open_places_.clear();
}

}  // namespace seto::rdma
