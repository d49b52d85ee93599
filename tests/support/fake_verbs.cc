#include "tests/support/fake_verbs.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/support/fake_verbs_objects.h"

namespace seto::support {

using rdma::Completion;
using rdma::CompletionStatus;
using rdma::SendRequest;

namespace {

constexpr std::uint32_t kSilentTries = 8;  // steps that stand for one try at a port that is down

std::vector<rdma::GidEntry> gids_of(const std::string& address) {
  return {{0, rdma::gid_of("fe80::1"), rdma::GidType::roce_v1, 2, 0},
          {1, rdma::gid_of("fe80::1"), rdma::GidType::roce_v2, 2, 0},
          {2, rdma::gid_of(address), rdma::GidType::roce_v1, 2, 0},
          {3, rdma::gid_of(address), rdma::GidType::roce_v2, 2, 0}};
}

}  // namespace

FakeFabric::FakeFabric(std::uint64_t seed, Drive drive) : random_(seed) {
  if (drive == Drive::by_thread) thread_ = std::thread([this] { this->drive(); });
}

FakeFabric::~FakeFabric() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void FakeFabric::drive() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (step_locked()) {
      // Others get the lock between two steps.
      lock.unlock();
      lock.lock();
      continue;
    }
    changed_.wait(lock);
  }
}

// ---- devices ----

void FakeFabric::add(rdma::DeviceFacts device) {
  const std::lock_guard lock(mutex_);
  const std::string name = device.name;
  devices_[name].facts = std::move(device);
}

void FakeFabric::add_ethernet(const std::string& name, const std::string& address, std::uint32_t mtu) {
  rdma::PortFacts port;
  port.state = rdma::PortState::active;
  port.link_layer = rdma::LinkLayer::ethernet;
  port.mtu = mtu;
  port.rate_mbit = 100'000;
  port.gids = gids_of(address);
  port.pkeys = {0xffff};
  add({name, 1'024, 65'536, {port}});
}

void FakeFabric::add_infiniband(const std::string& name, std::uint16_t lid, const std::string& own_gid) {
  rdma::PortFacts port;
  port.state = rdma::PortState::active;
  port.link_layer = rdma::LinkLayer::infiniband;
  port.mtu = 4'096;
  port.lid = lid;
  port.rate_mbit = 200'000;
  port.needs_global_route = !own_gid.empty();
  const std::string gid = own_gid.empty() ? "fe80::" + std::to_string(lid) : own_gid;
  port.gids = {{0, rdma::gid_of(gid), rdma::GidType::infiniband, 0, 0}};
  port.pkeys = {0xffff};
  add({name, 1'024, 65'536, {port}});
}

std::unique_ptr<rdma::Verbs> FakeFabric::verbs() { return std::make_unique<FakeNames>(*this); }

// ---- failures ----

void FakeFabric::fail(rdma::VerbsCall call, int error, std::uint64_t after) {
  const std::lock_guard lock(mutex_);
  failures_[static_cast<std::size_t>(call)].push_back({error, after});
}

void FakeFabric::fail_completion(CompletionStatus status, std::uint64_t after) {
  const std::lock_guard lock(mutex_);
  completion_failures_.emplace_back(status, after);
}

void FakeFabric::limit_queues(std::uint32_t requests) {
  const std::lock_guard lock(mutex_);
  queue_limit_ = requests;
}

void FakeFabric::set_port(const std::string& device, std::uint8_t port, rdma::PortState state) {
  const std::lock_guard lock(mutex_);
  devices_.at(device).facts.ports.at(port - 1U).state = state;
  tell(device,
       {state == rdma::PortState::active ? rdma::AsyncEventKind::port_active : rdma::AsyncEventKind::port_error, port, 0});
  changed_.notify_all();
}

void FakeFabric::set_distance(const std::string& device, std::uint8_t distance) {
  const std::lock_guard lock(mutex_);
  devices_.at(device).facts.distance = distance;
}

void FakeFabric::set_address(const std::string& device, const std::string& address) {
  const std::lock_guard lock(mutex_);
  std::vector<rdma::GidEntry>& gids = devices_.at(device).facts.ports.at(0).gids;
  gids = address.empty() ? std::vector<rdma::GidEntry>() : gids_of(address);
  tell(device, {rdma::AsyncEventKind::gid_change, 1, 0});
}

void FakeFabric::take_ip_address(const std::string& device) {
  const std::lock_guard lock(mutex_);
  std::erase_if(devices_.at(device).facts.ports.at(0).gids, [](const rdma::GidEntry& one) { return !one.gid.link_local(); });
  tell(device, {rdma::AsyncEventKind::gid_change, 1, 0});
}

void FakeFabric::remove(const std::string& device) {
  const std::lock_guard lock(mutex_);
  devices_.at(device).removed = true;
  tell(device, {rdma::AsyncEventKind::device_fatal, 0, 0});
  for (auto& [number, pair] : pairs_)
    if (pair.device == device && pair.state != State::failed) fail_pair(number, pair, CompletionStatus::flushed);
  changed_.notify_all();
}

void FakeFabric::hold_writes_to_dma_bufs() {
  const std::lock_guard lock(mutex_);
  holds_writes_ = true;
}

void FakeFabric::show_held_writes() {
  const std::lock_guard lock(mutex_);
  for (const HeldWrite& one : held_writes_) std::memcpy(one.target, one.bytes.data(), one.bytes.size());
  held_writes_.clear();
}

void FakeFabric::garble_reads_of_dma_bufs() {
  const std::lock_guard lock(mutex_);
  garbles_reads_ = true;
}

void FakeFabric::separate(const std::string& one, const std::string& other) {
  const std::lock_guard lock(mutex_);
  separate_.insert({one, other});
  separate_.insert({other, one});
}

bool FakeFabric::are_separate(const Pair& one, const Pair& other) const {
  return separate_.count({one.device, other.device}) > 0;
}

std::optional<int> FakeFabric::injected(rdma::VerbsCall call) {
  auto& waiting = failures_[static_cast<std::size_t>(call)];
  if (waiting.empty()) return std::nullopt;
  if (waiting.front().after > 0) {
    --waiting.front().after;
    return std::nullopt;
  }
  const int error = waiting.front().error;
  waiting.pop_front();
  return error;
}

void FakeFabric::tell(const std::string& device, const rdma::AsyncEvent& event) {
  Device& of = devices_.at(device);
  for (const auto& events : of.events) events->push_back(event);
  for (const int descriptor : of.descriptors) ring(descriptor);
}

// ---- movement ----

bool FakeFabric::step() {
  const std::lock_guard lock(mutex_);
  return step_locked();
}

void FakeFabric::run() {
  while (step()) {
  }
}

std::size_t FakeFabric::starving() {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (auto& [number, pair] : pairs_) {
    Pair* const peer = peer_of(pair);
    if (pair.state == State::connected && !pair.sends.empty() && peer != nullptr && peer->receives.empty()) ++count;
  }
  return count;
}

std::vector<rdma::DeviceFacts> FakeFabric::facts() {
  const std::lock_guard lock(mutex_);
  std::vector<rdma::DeviceFacts> all;
  for (const auto& [name, device] : devices_) all.push_back(device.facts);
  return all;
}

std::vector<rdma::QueuePairPath> FakeFabric::paths() {
  const std::lock_guard lock(mutex_);
  std::vector<rdma::QueuePairPath> paths;
  for (const auto& [number, pair] : pairs_)
    if (pair.state == State::connected) paths.push_back(pair.path);
  return paths;
}

std::size_t FakeFabric::registered_bytes() {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [key, region] : regions_) bytes += region.size;
  return bytes;
}

std::size_t FakeFabric::failed() {
  const std::lock_guard lock(mutex_);
  return failed_;
}

bool FakeFabric::step_locked() {
  std::vector<std::uint32_t> waiting;
  for (auto& [number, pair] : pairs_)
    if (pair.state == State::connected && !pair.sends.empty()) waiting.push_back(number);
  std::shuffle(waiting.begin(), waiting.end(), random_);
  return std::any_of(waiting.begin(), waiting.end(), [this](std::uint32_t each) { return step_pair(each, pairs_.at(each)); });
}

const rdma::PortFacts* FakeFabric::port_of(const Pair& pair) const {
  const Device& device = devices_.at(pair.device);
  const auto& ports = device.facts.ports;
  const auto found = std::find_if(ports.begin(), ports.end(), [&](const auto& port) { return port.number == pair.path.port; });
  return device.removed || found == ports.end() ? nullptr : &*found;
}

bool FakeFabric::port_is_up(const Pair& pair) const {
  const rdma::PortFacts* const port = port_of(pair);
  return port != nullptr && port->state == rdma::PortState::active;
}

FakeFabric::Pair* FakeFabric::peer_of(const Pair& pair) {
  const auto found = pairs_.find(pair.path.remote_queue_pair);
  if (found == pairs_.end()) return nullptr;
  Pair& peer = found->second;
  const rdma::PortFacts* const port = port_of(peer);
  if (port == nullptr || peer.state != State::connected) return nullptr;
  // Packets with other numbers than the peer expects are those of an earlier connection.
  if (peer.path.remote_sequence != pair.path.own_sequence) return nullptr;
  if (!pair.path.gid_index.has_value()) return port->lid == pair.path.remote_lid && !port->needs_global_route ? &peer : nullptr;
  const auto has_gid = [&](const rdma::GidEntry& entry) { return entry.gid == pair.path.remote_gid; };
  return std::any_of(port->gids.begin(), port->gids.end(), has_gid) ? &peer : nullptr;
}

bool FakeFabric::step_pair(std::uint32_t number, Pair& pair) {
  Send& send = pair.sends.front();
  Pair* const peer = peer_of(pair);
  if (peer == nullptr || !port_is_up(pair) || !port_is_up(*peer) || are_separate(pair, *peer)) {
    if (++send.tries > (pair.path.retry_count + 1U) * kSilentTries) fail_pair(number, pair, CompletionStatus::retry_exceeded);
    return true;
  }
  const bool takes_receive = send.request.kind != SendRequest::Kind::write;
  if (takes_receive && peer->receives.empty()) {
    if (pair.path.rnr_retry_count == 7) return false;
    if (++send.tries > pair.path.rnr_retry_count) fail_pair(number, pair, CompletionStatus::rnr_retry_exceeded);
    return true;
  }
  if (const auto status = refusal(pair, *peer, send); status.has_value()) {
    const bool at_peer = *status == CompletionStatus::remote_access_error || *status == CompletionStatus::remote_invalid_request;
    const std::uint32_t peer_number = pair.path.remote_queue_pair;
    fail_pair(number, pair, *status);
    if (at_peer) {
      tell(peer->device, {rdma::AsyncEventKind::queue_pair_access_error, 0, peer_number});
      fail_pair(peer_number, *peer, CompletionStatus::flushed);
    }
    return true;
  }
  std::byte* const target = send.request.kind == SendRequest::Kind::send ? peer->receives.front().target
                                                                         : bytes_at(send.request.remote_key, send.request.target);
  if (random_() % 4 == 0 && step_ahead(pair, *peer)) return true;
  if (!send.begun) {
    begin(send, target);
    return true;
  }
  if (!send.pieces.empty()) {
    place_piece(send, target);
    return true;
  }
  deliver(number, pair, *peer, send);
  return true;
}

std::optional<CompletionStatus> FakeFabric::refusal(const Pair& pair, const Pair& peer, const Send& send) const {
  const SendRequest& request = send.request;
  const auto holds = [this](std::uint32_t key, const std::string& device, std::uint64_t at, std::size_t size) {
    const auto found = regions_.find(key);
    if (found == regions_.end() || found->second.device != device) return false;
    const std::uint64_t first = found->second.address;
    return at >= first && size <= found->second.size && at - first <= found->second.size - size;
  };
  const auto reads = [&](const std::byte* from, std::uint32_t size, std::uint32_t key) {
    return size == 0 || !send.inlined.empty() || holds(key, pair.device, reinterpret_cast<std::uint64_t>(from), size);
  };
  if (!reads(request.source, request.size - request.rest_size, request.local_key) ||
      !reads(request.rest, request.rest_size, request.rest_key))
    return CompletionStatus::local_protection_error;
  if (request.kind == SendRequest::Kind::send)
    return request.size > peer.receives.front().size ? std::optional(CompletionStatus::remote_invalid_request) : std::nullopt;
  if (request.size > 0 && !holds(request.remote_key, peer.device, request.target, request.size))
    return CompletionStatus::remote_access_error;
  return std::nullopt;
}

void FakeFabric::deliver(std::uint32_t number, Pair& pair, Pair& peer, Send& send) {
  const SendRequest request = send.request;
  if (!completion_failures_.empty() && completion_failures_.front().second-- == 0) {
    const CompletionStatus status = completion_failures_.front().first;
    completion_failures_.pop_front();
    return fail_pair(number, pair, status);
  }
  if (request.kind != SendRequest::Kind::write) {
    const bool immediate = request.kind == SendRequest::Kind::write_with_immediate;
    Completion arrived;
    arrived.id = peer.receives.front().id;
    arrived.kind = immediate ? Completion::Kind::written_to : Completion::Kind::received;
    arrived.size = request.size;
    arrived.immediate = request.immediate;
    arrived.queue_pair = pair.path.remote_queue_pair;
    peer.receives.pop_front();
    complete(*peer.queue, arrived);
  }
  pair.sends.pop_front();
  ++pair.held;
  if (!request.signalled) return;
  pair.held = 0;
  ++signalled_;
  Completion sent;
  sent.id = request.id;
  sent.queue_pair = number;
  complete(*pair.queue, sent);
}

void FakeFabric::complete(Queue& queue, const Completion& completion) {
  if (queue.completions.size() >= queue.depth) {
    std::fprintf(stderr, "fake verbs: a completion queue of %u overflows\n", queue.depth);
    std::abort();
  }
  queue.completions.push_back(completion);
  if (std::exchange(queue.armed, false)) ring(queue.descriptor);
}

void FakeFabric::fail_pair(std::uint32_t number, Pair& pair, CompletionStatus status) {
  leave_packets(pair);
  if (std::exchange(pair.state, State::failed) != State::failed) ++failed_;
  Completion failed;
  failed.queue_pair = number;
  failed.vendor_error = 0x77;
  for (; !pair.sends.empty(); pair.sends.pop_front()) {
    failed.id = pair.sends.front().request.id;
    failed.status = std::exchange(status, CompletionStatus::flushed);
    complete(*pair.queue, failed);
  }
  for (; !pair.receives.empty(); pair.receives.pop_front()) {
    failed.id = pair.receives.front().id;
    failed.status = CompletionStatus::flushed;
    complete(*pair.queue, failed);
  }
}

}  // namespace seto::support
