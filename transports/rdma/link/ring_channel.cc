#include "transports/rdma/link/ring_channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transports/rdma/verbs/verbs_advice.h"

namespace seto::rdma {
namespace {

// Ids of requests. Sends are numbered from 0.
constexpr std::uint64_t kReceiveId = ~std::uint64_t{0};

// Parts of the ring: the longest record, and what may be sent without a report of the device. At the worst these and what the
// peer has not told yet (ReceiveRing::kParts) are in use, and a quarter is lost before the end of the ring: a record still fits.
constexpr std::uint32_t kLongestRecordParts = 4;
constexpr std::uint64_t kReportedParts = 8;

// Both ends use the settings of this library, so the records of the peer are as many as the own ones at most.
std::uint32_t requests_of(std::uint32_t records) { return records + ReceiveRing::kMostTold; }

}  // namespace

RingChannel::RingChannel(Setup setup)
    : setup_(std::move(setup)),
      most_bytes_(setup_.ring_size / kLongestRecordParts),
      sends_(requests_of(setup_.records)),
      receives_(requests_of(setup_.records)),
      signal_every_(std::clamp<std::uint32_t>(setup_.records / 2, 1, kSignalEvery)),
      out_({setup_.ring_size / kUnit, setup_.records}),
      in_({setup_.ring_size / kUnit, setup_.records}),
      ends_(sends_) {
  batch_.reserve(kMostBatch);
}

Result<std::unique_ptr<RingChannel>> RingChannel::create(Setup setup) {
  std::unique_ptr<RingChannel> channel(new RingChannel(std::move(setup)));
  SETO_TRY(channel->allocate());
  return channel;
}

Status RingChannel::allocate() {
  if (const Status status = setup_.completions->reserve(sends_ + receives_); !status.ok())
    return failure(status.code(), "RDMA to %s: %s", setup_.peer.c_str(), std::string(status.text()).c_str());
  reserved_ = true;
  SETO_ASSIGN(staging_, RegisteredMemory::create(*setup_.device, setup_.ring_size));
  SETO_ASSIGN(ring_, RegisteredMemory::create(*setup_.device, setup_.ring_size));
  SETO_ASSIGN(pair_, setup_.device->create_queue_pair(setup_.completions->queue(), {sends_, receives_, kInline}));
  SETO_TRY(pair_->prepare(setup_.path));
  SETO_TRY(post_receives(receives_));
  setup_.completions->enter(pair_->number(), *this);
  return {};
}

RingChannel::~RingChannel() {
  if (pair_ != nullptr) setup_.completions->leave(pair_->number());
  // The device may write to the ring as long as the queue pair exists.
  pair_.reset();
  if (reserved_) setup_.completions->give_back(sends_ + receives_);
}

ChannelAddress RingChannel::address() const {
  ChannelAddress address;
  address.queue_pair = pair_->number();
  address.sequence = setup_.sequence;
  address.ring = reinterpret_cast<std::uint64_t>(ring_->data());
  address.ring_key = ring_->region().remote_key();
  address.ring_size = setup_.ring_size;
  address.records = setup_.records;
  address.mtu = setup_.mtu;
  address.lid = setup_.lid;
  address.gid = setup_.gid;
  return address;
}

Status RingChannel::connect(const ChannelAddress& peer) {
  QueuePairPath path = setup_.path;
  path.mtu = setup_.mtu;
  path.remote_gid = peer.gid;
  path.remote_lid = peer.lid;
  path.remote_queue_pair = peer.queue_pair;
  path.own_sequence = setup_.sequence;
  path.remote_sequence = peer.sequence;
  return connect(peer, path);
}

Status RingChannel::connect(const ChannelAddress& peer, QueuePairPath path) {
  if (peer.ring_size != setup_.ring_size || peer.records != setup_.records)
    return failure(Code::remote_error, "%s has a ring of %llu bytes and %u records for RDMA, this end %llu and %u",
                   setup_.peer.c_str(), static_cast<unsigned long long>(peer.ring_size), peer.records,
                   static_cast<unsigned long long>(setup_.ring_size), setup_.records);
  // The connection manager knows the MTU of the calling end only.
  path.mtu = std::min({path.mtu, setup_.mtu, peer.mtu});
  path.timeout = setup_.path.timeout;
  path.retry_count = setup_.path.retry_count;
  path.rnr_retry_count = setup_.path.rnr_retry_count;
  if (path.pkey_index != setup_.path.pkey_index) SETO_TRY(pair_->prepare(path));
  SETO_TRY(pair_->connect(path));
  peer_ = peer;
  connected_ = true;
  return {};
}

Status RingChannel::post_receives(std::uint32_t count) {
  std::array<ReceiveRequest, 16> requests;
  for (ReceiveRequest& each : requests) each.id = kReceiveId;
  while (count > 0) {
    const std::size_t part = std::min<std::size_t>(requests.size(), count);
    SETO_ASSIGN(const std::size_t posted, pair_->post(std::span<const ReceiveRequest>(requests.data(), part)));
    if (posted < part)
      return failure(Code::unavailable, "RDMA to %s: the queue of receive requests holds fewer than the %u that it was made for",
                     setup_.peer.c_str(), receives_);
    count -= static_cast<std::uint32_t>(part);
  }
  return {};
}

// ---- sending ----

bool RingChannel::ready_for(std::size_t requests) const {
  return !broken() && connected_ && room() >= requests + ReceiveRing::kMostTold;
}

std::optional<std::uint64_t> RingChannel::send(const Part& head, const Part& body) {
  const std::size_t size = head.bytes.size() + body.bytes.size();
  if (!ready_for(1) || size == 0 || size > most_bytes_) return std::nullopt;
  const auto start = out_.place(units_of(size));
  if (!start.has_value()) return std::nullopt;
  return add_record(*start, head, body);
}

bool RingChannel::send(std::span<const std::byte> head, std::span<const std::byte> body) {
  return send(Part{head, {}}, Part{body, {}}).has_value();
}

std::uint64_t RingChannel::add_record(std::uint64_t start, const Part& head, const Part& body) {
  const std::size_t offset = start % (setup_.ring_size / kUnit) * kUnit;
  SendRequest request;
  request.kind = SendRequest::Kind::write_with_immediate;
  gather(request, head, staging_->data() + offset);
  gather(request, body, staging_->data() + offset + head.bytes.size());
  const bool lent = head.key.has_value() || body.key.has_value();
  request.inlined = !lent && request.size <= pair_->most_inline();
  request.target = peer_.ring + offset;
  request.remote_key = peer_.ring_key;
  report_next_ = report_next_ || lent;  // as for write()
  const std::uint64_t ticket = posted_requests_;
  add(request, out_.end());
  return ticket;
}

// `copy`: where the bytes go that are copied. Two copies lie one behind the other.
void RingChannel::gather(SendRequest& request, const Part& part, std::byte* copy) const {
  if (part.bytes.empty()) return;
  const auto size = static_cast<std::uint32_t>(part.bytes.size());
  if (!part.key.has_value()) std::memcpy(copy, part.bytes.data(), size);
  const std::byte* const from = part.key.has_value() ? part.bytes.data() : copy;
  const std::uint32_t key = part.key.value_or(staging_->region().local_key());
  if (request.size == 0) {
    request.source = from;
    request.local_key = key;
  } else if (key != request.local_key || from != request.source + request.size) {
    request.rest = from;
    request.rest_size = size;
    request.rest_key = key;
  }
  request.size += size;
}

// The report of the write says that the device has read the records before it, not the one behind it.
std::optional<std::uint64_t> RingChannel::write(std::span<const std::byte> source, std::uint32_t local_key, RemotePlace place,
                                                std::span<const std::byte> record) {
  if (!ready_for(record.empty() ? 1 : 2) || source.empty() || source.size() > kMostWritten || record.size() > most_bytes_)
    return std::nullopt;
  const std::uint64_t before = out_.end();
  const auto start = record.empty() ? std::optional<std::uint64_t>(0) : out_.place(units_of(record.size()));
  if (!start.has_value()) return std::nullopt;
  SendRequest request;
  request.kind = SendRequest::Kind::write;
  request.source = source.data();
  request.size = static_cast<std::uint32_t>(source.size());
  request.local_key = local_key;
  request.target = place.address;
  request.remote_key = place.key;
  // Its owner waits for the report, and a report costs little beside bytes that are worth a write.
  report_next_ = true;
  const std::uint64_t ticket = posted_requests_;
  add(request, before);
  if (!record.empty()) (void)add_record(*start, {record, {}}, {});
  return ticket;
}

// The immediate value is set when the batch is posted, so that it tells the newest number.
void RingChannel::add(SendRequest request, std::uint64_t end) {
  request.id = posted_requests_;
  ends_[posted_requests_ % sends_] = end;
  ++posted_requests_;
  // Places in the queue and in the staging ring are free again only after a report.
  request.signalled = report_next_ || posted_requests_ - signalled_requests_ >= signal_every_ ||
                      end - reported_end_ >= setup_.ring_size / kUnit / kReportedParts;
  if (request.signalled) {
    signalled_requests_ = posted_requests_;
    reported_end_ = end;
    report_next_ = false;
  }
  batch_.push_back(request);
  if (batch_.size() == kMostBatch) post_batch();
}

void RingChannel::tell() {
  if (room() == 0) return;
  tell_next_ = false;
  SendRequest request;
  request.kind = SendRequest::Kind::write_with_immediate;
  add(request, out_.end());
}

void RingChannel::post_batch() {
  if (batch_.empty() || broken()) return;
  for (SendRequest& request : batch_) request.immediate = in_.credit();
  const Result<std::size_t> posted = pair_->post(std::span<const SendRequest>(batch_));
  if (!posted.ok()) return break_with(posted.status());
  const auto rest = batch_.begin() + static_cast<std::ptrdiff_t>(posted.value());
  const auto tells = [](const SendRequest& each) { return each.kind == SendRequest::Kind::write_with_immediate; };
  if (std::any_of(batch_.begin(), rest, tells)) in_.told();
  batch_.erase(batch_.begin(), rest);
  // A device may have a smaller queue than it promised: the rest is posted again, when something has completed.
}

void RingChannel::flush() {
  if (broken() || !connected_) return;
  if (receives_flushed_)
    return break_with(failure(Code::remote_error,
                              "RDMA to %s: its queue pair has ended, or refused what came from it: see the log of the peer",
                              setup_.peer.c_str()));
  post_batch();
  if (batch_.empty() && (tell_next_ || in_.due())) {
    tell();
    post_batch();
  }
}

void RingChannel::settle() {
  if (broken() || !connected_ || signalled_requests_ == posted_requests_ || room() == 0) return;
  report_next_ = true;
  tell();
  post_batch();
}

// ---- completions ----

void RingChannel::completed(const Completion& completion) {
  if (completion.status != CompletionStatus::success) {
    // A receive request is flushed when the queue pair has failed, and only a send tells why.
    if (completion.id != kReceiveId || completion.status != CompletionStatus::flushed)
      break_with(completion_failure(completion, setup_.peer));
    else
      receives_flushed_ = true;
    return;
  }
  if (completion.id == kReceiveId) return heard(completion);
  completed_requests_ = std::max(completed_requests_, completion.id + 1);
  out_.completed(ends_[completion.id % sends_]);
}

void RingChannel::heard(const Completion& completion) {
  if (broken()) return;
  heard_ = true;
  if (completion.kind != Completion::Kind::written_to || !out_.released(completion.immediate) ||
      (completion.size > 0 && !in_.arrived(completion.size)))
    return break_with(failure(Code::remote_error,
                              "RDMA from %s: it breaks the rules of the ring (%u bytes, credit %u): the connection is given up",
                              setup_.peer.c_str(), completion.size, completion.immediate));
  if (const Status status = post_receives(1); !status.ok()) break_with(status);
}

std::span<const std::byte> RingChannel::front() const {
  const ReceiveRing::Record* const first = in_.front();
  if (first == nullptr) return {};
  return {ring_->data() + first->start % (setup_.ring_size / kUnit) * kUnit, first->bytes};
}

void RingChannel::release() { in_.release(); }

void RingChannel::break_with(const Status& reason) {
  if (broken()) return;
  why_ = reason;
  pair_->fail();
}

void RingChannel::stop(const Status& reason) {
  if (pair_ != nullptr) (void)setup_.completions->poll();  // what has arrived stays readable
  break_with(reason);
  if (pair_ == nullptr) return;
  setup_.completions->leave(pair_->number());
  pair_.reset();
}

}  // namespace seto::rdma
