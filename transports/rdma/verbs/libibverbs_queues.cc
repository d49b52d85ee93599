#include "transports/rdma/verbs/libibverbs_queues.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

namespace seto::rdma {
namespace {

Completion completion_of(const abi::WorkCompletion& work) {
  Completion completion;
  completion.id = work.id;
  completion.status = static_cast<CompletionStatus>(work.status);
  completion.queue_pair = work.queue_pair;
  completion.vendor_error = work.vendor_error;
  if (completion.status != CompletionStatus::success) return completion;
  completion.size = work.size;
  if (work.opcode == abi::kReceivedWrite) {
    completion.kind = Completion::Kind::written_to;
    completion.immediate = ntohl(work.immediate);
  } else if (work.opcode == abi::kReceived) {
    completion.kind = Completion::Kind::received;
  }
  return completion;
}

std::uint32_t opcode_of(SendRequest::Kind kind) {
  if (kind == SendRequest::Kind::write) return abi::kWrite;
  return kind == SendRequest::Kind::send ? abi::kSend : abi::kWriteWithImmediate;
}

// 256 bytes are code 1, 4096 are code 5.
std::uint32_t mtu_code(std::uint32_t bytes) {
  const auto code = std::bit_width(std::clamp<std::uint32_t>(bytes, 256, 4'096)) - 8;
  return static_cast<std::uint32_t>(code);
}

}  // namespace

// ---- completions ----

LibibverbsQueue::~LibibverbsQueue() {
  device_.functions().ibv_destroy_cq(queue_);
  device_.functions().ibv_destroy_comp_channel(channel_);
}

Result<std::size_t> LibibverbsQueue::poll(std::span<Completion> completions) {
  std::array<abi::WorkCompletion, 32> work;
  std::size_t polled = 0;
  while (polled < completions.size()) {
    const auto wanted = static_cast<int>(std::min(work.size(), completions.size() - polled));
    const int got = queue_->context->operations.poll(queue_, wanted, work.data());
    if (got < 0) return device_.failed(VerbsCall::poll, errno == 0 ? EIO : errno);
    for (int i = 0; i < got; ++i) completions[polled++] = completion_of(work[static_cast<std::size_t>(i)]);
    if (got < wanted) break;
  }
  return polled;
}

Status LibibverbsQueue::arm() {
  const int error = queue_->context->operations.request_notification(queue_, 0);
  return error == 0 ? Status() : device_.failed(VerbsCall::arm, error < 0 ? errno : error);
}

void LibibverbsQueue::take_events() {
  abi::Queue* queue = nullptr;
  void* own = nullptr;
  unsigned events = 0;
  while (device_.functions().ibv_get_cq_event(channel_, &queue, &own) == 0) ++events;
  if (events > 0) device_.functions().ibv_ack_cq_events(queue_, events);
}

Status LibibverbsQueue::grow(std::uint32_t depth) {
  const int error = device_.functions().ibv_resize_cq(queue_, static_cast<int>(depth));
  return error == 0 ? Status() : device_.failed(VerbsCall::grow_completion_queue, error < 0 ? errno : error);
}

// ---- queue pairs ----

Status LibibverbsPair::prepare(const QueuePairPath& path) {
  abi::PairAttributes attributes{};
  attributes.state = abi::kInit;
  attributes.pkey_index = path.pkey_index;
  attributes.port = path.port;
  attributes.access = abi::kAccessRemoteWrite;
  const int error = device_.functions().ibv_modify_qp(pair_, &attributes,
                                                      abi::kSetState | abi::kSetPkeyIndex | abi::kSetPort | abi::kSetAccess);
  return error == 0 ? Status() : device_.failed(VerbsCall::prepare, error < 0 ? errno : error);
}

Status LibibverbsPair::connect(const QueuePairPath& path) {
  abi::PairAttributes attributes{};
  attributes.state = abi::kReadyToReceive;
  attributes.mtu = mtu_code(path.mtu);
  attributes.remote_pair = path.remote_queue_pair;
  attributes.remote_sequence = path.remote_sequence;
  attributes.most_reads_of_peer = 1;
  attributes.rnr_timer = 12;  // 0.64 ms
  attributes.path.port = path.port;
  attributes.path.service_level = path.service_level;
  attributes.path.remote_lid = path.remote_lid;
  attributes.path.path_bits = path.source_path_bits;
  attributes.path.static_rate = path.static_rate;
  if (path.gid_index.has_value()) {
    attributes.path.is_global = 1;
    std::memcpy(attributes.path.remote_gid.bytes, path.remote_gid.bytes.data(), path.remote_gid.bytes.size());
    attributes.path.gid_index = static_cast<std::uint8_t>(*path.gid_index);
    attributes.path.hop_limit = path.hop_limit;
    attributes.path.flow_label = path.flow_label;
    attributes.path.traffic_class = path.traffic_class;
  }
  int error = device_.functions().ibv_modify_qp(pair_, &attributes,
                                                abi::kSetState | abi::kSetPath | abi::kSetMtu | abi::kSetRemotePair |
                                                    abi::kSetRemoteSequence | abi::kSetMostReadsOfPeer | abi::kSetRnrTimer);
  if (error != 0) return device_.failed(VerbsCall::ready_to_receive, error < 0 ? errno : error);

  attributes = {};
  attributes.state = abi::kReadyToSend;
  attributes.own_sequence = path.own_sequence;
  attributes.timeout = path.timeout;
  attributes.retry_count = path.retry_count;
  attributes.rnr_retry_count = path.rnr_retry_count;
  attributes.most_reads = 1;
  error = device_.functions().ibv_modify_qp(
      pair_, &attributes,
      abi::kSetState | abi::kSetTimeout | abi::kSetRetries | abi::kSetRnrRetries | abi::kSetOwnSequence | abi::kSetMostReads);
  return error == 0 ? Status() : device_.failed(VerbsCall::ready_to_send, error < 0 ? errno : error);
}

Result<std::size_t> LibibverbsPair::post(std::span<const SendRequest> requests) {
  std::size_t posted = 0;
  while (posted < requests.size()) {
    const std::size_t count = std::min(kBatch, requests.size() - posted);
    SETO_ASSIGN(const std::size_t accepted, post_batch(requests.subspan(posted, count)));
    posted += accepted;
    if (accepted < count) break;
  }
  return posted;
}

Result<std::size_t> LibibverbsPair::post_batch(std::span<const SendRequest> requests) {
  std::array<abi::SendWork, kBatch> work{};
  std::array<std::array<abi::Segment, 2>, kBatch> segments{};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const SendRequest& request = requests[i];
    const std::uint32_t first = request.size - request.rest_size;
    segments[i][0] = {reinterpret_cast<std::uint64_t>(request.source), first, request.local_key};
    segments[i][1] = {reinterpret_cast<std::uint64_t>(request.rest), request.rest_size, request.rest_key};
    work[i].id = request.id;
    work[i].next = i + 1 < requests.size() ? &work[i + 1] : nullptr;
    work[i].segments = segments[i].data();
    work[i].segment_count = (first > 0 ? 1 : 0) + (request.rest_size > 0 ? 1 : 0);
    work[i].opcode = opcode_of(request.kind);
    work[i].flags = (request.signalled ? abi::kSignalled : 0) | (request.inlined ? abi::kInline : 0);
    work[i].immediate = htonl(request.immediate);
    work[i].remote_address = request.target;
    work[i].remote_key = request.remote_key;
  }
  abi::SendWork* refused = nullptr;
  const int error = pair_->context->operations.post_send(pair_, work.data(), &refused);
  if (error == 0) return requests.size();
  if ((error == ENOMEM || error == -1) && refused != nullptr) return static_cast<std::size_t>(refused - work.data());
  return device_.failed(VerbsCall::post_send, error < 0 ? errno : error);
}

Result<std::size_t> LibibverbsPair::post(std::span<const ReceiveRequest> requests) {
  std::size_t posted = 0;
  while (posted < requests.size()) {
    const std::size_t count = std::min(kBatch, requests.size() - posted);
    SETO_ASSIGN(const std::size_t accepted, post_batch(requests.subspan(posted, count)));
    posted += accepted;
    if (accepted < count) break;
  }
  return posted;
}

Result<std::size_t> LibibverbsPair::post_batch(std::span<const ReceiveRequest> requests) {
  std::array<abi::ReceiveWork, kBatch> work{};
  std::array<abi::Segment, kBatch> segments{};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const ReceiveRequest& request = requests[i];
    segments[i] = {reinterpret_cast<std::uint64_t>(request.target), request.size, request.local_key};
    work[i] = {request.id, i + 1 < requests.size() ? &work[i + 1] : nullptr, &segments[i], request.size > 0 ? 1 : 0};
  }
  abi::ReceiveWork* refused = nullptr;
  const int error = pair_->context->operations.post_receive(pair_, work.data(), &refused);
  if (error == 0) return requests.size();
  if ((error == ENOMEM || error == -1) && refused != nullptr) return static_cast<std::size_t>(refused - work.data());
  return device_.failed(VerbsCall::post_receive, error < 0 ? errno : error);
}

void LibibverbsPair::fail() {
  abi::PairAttributes attributes{};
  attributes.state = abi::kError;
  (void)device_.functions().ibv_modify_qp(pair_, &attributes, abi::kSetState);
}

}  // namespace seto::rdma
