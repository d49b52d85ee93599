#include "tests/support/fake_verbs_objects.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace seto::support {

using rdma::VerbsCall;

void ring(int descriptor) { (void)eventfd_write(descriptor, 1); }

namespace {

constexpr std::uint64_t kPage = 4'096;

void drain(int descriptor) {
  eventfd_t count = 0;
  (void)eventfd_read(descriptor, &count);
}

}  // namespace

// ---- devices ----

Result<std::vector<std::string>> FakeNames::devices() {
  const std::lock_guard lock(fabric_.mutex_);
  if (const auto error = fabric_.injected(VerbsCall::list_devices)) return verbs_failure(VerbsCall::list_devices, "", *error);
  std::vector<std::string> names;
  for (const auto& [name, device] : fabric_.devices_)
    if (!device.removed) names.push_back(name);
  return names;
}

Result<std::unique_ptr<rdma::VerbsDevice>> FakeNames::open_device(const std::string& name) {
  {
    const std::lock_guard lock(fabric_.mutex_);
    if (const auto error = fabric_.injected(VerbsCall::open_device)) return verbs_failure(VerbsCall::open_device, name, *error);
    const auto found = fabric_.devices_.find(name);
    if (found == fabric_.devices_.end() || found->second.removed) return verbs_failure(VerbsCall::open_device, name, ENODEV);
  }
  return std::unique_ptr<rdma::VerbsDevice>(std::make_unique<FakeDevice>(fabric_, name));
}

FakeDevice::FakeDevice(FakeFabric& fabric, std::string name)
    : fabric_(fabric), name_(std::move(name)), descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  const std::lock_guard lock(fabric_.mutex_);
  FakeFabric::Device& device = fabric_.devices_.at(name_);
  device.events.push_back(events_);
  device.descriptors.push_back(descriptor_);
}

FakeDevice::~FakeDevice() {
  {
    const std::lock_guard lock(fabric_.mutex_);
    FakeFabric::Device& device = fabric_.devices_.at(name_);
    std::erase(device.events, events_);
    std::erase(device.descriptors, descriptor_);
  }
  close(descriptor_);
}

std::optional<Status> FakeDevice::refused(VerbsCall call) {
  if (const auto error = fabric_.injected(call)) return verbs_failure(call, name_, *error);
  if (fabric_.devices_.at(name_).removed) return verbs_failure(call, name_, EIO);
  return std::nullopt;
}

Result<rdma::DeviceFacts> FakeDevice::facts() {
  const std::lock_guard lock(fabric_.mutex_);
  if (const auto status = refused(VerbsCall::query_device)) return *status;
  for (std::size_t port = 0; port < fabric_.devices_.at(name_).facts.ports.size(); ++port)
    if (const auto status = refused(VerbsCall::query_port)) return *status;
  return fabric_.devices_.at(name_).facts;
}

Result<std::unique_ptr<rdma::MemoryRegion>> FakeDevice::register_memory(std::byte* memory, std::size_t size) {
  return register_host(memory, size, true);
}

Result<std::unique_ptr<rdma::MemoryRegion>> FakeDevice::register_unordered(std::byte* memory, std::size_t size) {
  return register_host(memory, size, false);
}

Result<std::unique_ptr<rdma::MemoryRegion>> FakeDevice::register_host(std::byte* memory, std::size_t size, bool in_order) {
  const std::lock_guard lock(fabric_.mutex_);
  if (const auto status = refused(VerbsCall::register_memory)) return *status;
  const std::uint32_t key = fabric_.next_number_++;
  fabric_.regions_[key] = {name_, reinterpret_cast<std::uint64_t>(memory), memory, size, false, in_order};
  return std::unique_ptr<rdma::MemoryRegion>(std::make_unique<FakeRegion>(fabric_, key));
}

Result<std::unique_ptr<rdma::MemoryRegion>> FakeDevice::register_dma_buf(const rdma::DmaBuf& memory) {
  const std::lock_guard lock(fabric_.mutex_);
  if (const auto status = refused(VerbsCall::register_dma_buf)) return *status;
  const off_t begin = lseek(memory.descriptor, 0, SEEK_CUR);
  struct stat facts {};
  if (begin < 0 || fstat(memory.descriptor, &facts) != 0) return verbs_failure(VerbsCall::register_dma_buf, name_, errno);
  const std::uint64_t first = static_cast<std::uint64_t>(begin) + memory.offset;
  if (memory.size == 0 || first % kPage != memory.address % kPage ||
      first + memory.size > static_cast<std::uint64_t>(facts.st_size))
    return verbs_failure(VerbsCall::register_dma_buf, name_, EINVAL);
  const std::size_t in_page = first % kPage;
  void* const pages = mmap(nullptr, in_page + memory.size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.descriptor,
                           static_cast<off_t>(first - in_page));
  if (pages == MAP_FAILED) return verbs_failure(VerbsCall::register_dma_buf, name_, errno);
  const std::uint32_t key = fabric_.next_number_++;
  fabric_.regions_[key] = {name_, memory.address, static_cast<std::byte*>(pages) + in_page, memory.size, true, true};
  return std::unique_ptr<rdma::MemoryRegion>(std::make_unique<FakeRegion>(fabric_, key));
}

FakeRegion::~FakeRegion() {
  const std::lock_guard lock(fabric_.mutex_);
  const FakeFabric::Region region = fabric_.regions_.at(key_);
  fabric_.regions_.erase(key_);
  if (!region.is_dma_buf) return;
  std::erase_if(fabric_.held_writes_, [&](const FakeFabric::HeldWrite& one) {
    return one.target >= region.memory && one.target < region.memory + region.size;
  });
  const std::size_t in_page = reinterpret_cast<std::uintptr_t>(region.memory) % kPage;
  munmap(region.memory - in_page, in_page + region.size);
}

Result<std::unique_ptr<rdma::CompletionQueue>> FakeDevice::create_completion_queue(std::uint32_t depth) {
  const std::lock_guard lock(fabric_.mutex_);
  if (const auto status = refused(VerbsCall::create_channel)) return *status;
  if (const auto status = refused(VerbsCall::create_completion_queue)) return *status;
  if (depth > fabric_.devices_.at(name_).facts.most_completions)
    return verbs_failure(VerbsCall::create_completion_queue, name_, EINVAL);
  return std::unique_ptr<rdma::CompletionQueue>(std::make_unique<FakeQueue>(fabric_, name_, depth));
}

Result<std::unique_ptr<rdma::QueuePair>> FakeDevice::create_queue_pair(rdma::CompletionQueue& completions,
                                                                       const rdma::QueuePairSize& size) {
  const std::lock_guard lock(fabric_.mutex_);
  if (const auto status = refused(VerbsCall::create_queue_pair)) return *status;
  if (std::max(size.sends, size.receives) > fabric_.devices_.at(name_).facts.most_work_requests)
    return verbs_failure(VerbsCall::create_queue_pair, name_, EINVAL);
  const std::uint32_t number = fabric_.next_number_++;
  FakeFabric::Pair& pair = fabric_.pairs_[number];
  pair.device = name_;
  pair.size = size;
  pair.queue = static_cast<FakeQueue&>(completions).queue_;
  return std::unique_ptr<rdma::QueuePair>(std::make_unique<FakePair>(fabric_, name_, number));
}

std::optional<rdma::AsyncEvent> FakeDevice::next_event() {
  const std::lock_guard lock(fabric_.mutex_);
  drain(descriptor_);
  if (events_->empty()) return std::nullopt;
  const rdma::AsyncEvent event = events_->front();
  events_->pop_front();
  return event;
}

// ---- completions ----

FakeQueue::FakeQueue(FakeFabric& fabric, std::string device, std::uint32_t depth) : fabric_(fabric), device_(std::move(device)) {
  queue_->depth = depth;
  queue_->descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

FakeQueue::~FakeQueue() {
  const std::lock_guard lock(fabric_.mutex_);
  queue_->armed = false;
  close(queue_->descriptor);
}

Result<std::size_t> FakeQueue::poll(std::span<rdma::Completion> completions) {
  const std::lock_guard lock(fabric_.mutex_);
  if (const auto error = fabric_.injected(VerbsCall::poll)) return verbs_failure(VerbsCall::poll, device_, *error);
  const std::size_t count = std::min(completions.size(), queue_->completions.size());
  std::copy_n(queue_->completions.begin(), count, completions.begin());
  queue_->completions.erase(queue_->completions.begin(), queue_->completions.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

Status FakeQueue::arm() {
  const std::lock_guard lock(fabric_.mutex_);
  if (const auto error = fabric_.injected(VerbsCall::arm)) return verbs_failure(VerbsCall::arm, device_, *error);
  queue_->armed = true;
  return {};
}

void FakeQueue::take_events() {
  const std::lock_guard lock(fabric_.mutex_);
  drain(queue_->descriptor);
}

Status FakeQueue::grow(std::uint32_t depth) {
  const std::lock_guard lock(fabric_.mutex_);
  const auto call = VerbsCall::grow_completion_queue;
  if (const auto error = fabric_.injected(call)) return verbs_failure(call, device_, *error);
  if (depth > fabric_.devices_.at(device_).facts.most_completions || depth < queue_->completions.size())
    return verbs_failure(call, device_, EINVAL);
  queue_->depth = depth;
  return {};
}

// ---- queue pairs ----

FakePair::~FakePair() {
  const std::lock_guard lock(fabric_.mutex_);
  // Completions of a destroyed queue pair are gone.
  auto& completions = fabric_.pairs_.at(number_).queue->completions;
  std::erase_if(completions, [this](const rdma::Completion& each) { return each.queue_pair == number_; });
  fabric_.leave_packets(fabric_.pairs_.at(number_));
  fabric_.pairs_.erase(number_);
}

Status FakePair::prepare(const rdma::QueuePairPath& path) {
  const std::lock_guard lock(fabric_.mutex_);
  if (const auto error = fabric_.injected(VerbsCall::prepare)) return verbs_failure(VerbsCall::prepare, device_, *error);
  FakeFabric::Pair& pair = fabric_.pairs_.at(number_);
  pair.path = path;
  const rdma::PortFacts* const port = fabric_.port_of(pair);
  if (port == nullptr || path.pkey_index >= port->pkeys.size() || port->pkeys[path.pkey_index] == 0)
    return verbs_failure(VerbsCall::prepare, device_, EINVAL);
  pair.state = FakeFabric::State::prepared;
  return {};
}

Status FakePair::connect(const rdma::QueuePairPath& path) {
  const std::lock_guard lock(fabric_.mutex_);
  if (const auto error = fabric_.injected(VerbsCall::ready_to_receive))
    return verbs_failure(VerbsCall::ready_to_receive, device_, *error);
  FakeFabric::Pair& pair = fabric_.pairs_.at(number_);
  const rdma::PortFacts* const port = fabric_.port_of(pair);
  const bool global = path.gid_index.has_value();
  const bool has_gid = port != nullptr && global && std::any_of(port->gids.begin(), port->gids.end(), [&](const auto& one) {
                         return one.index == *path.gid_index;
                       });
  // Ethernet has no addresses but GIDs.
  if (pair.state != FakeFabric::State::prepared || port == nullptr || (global && !has_gid) ||
      (!global && port->link_layer == rdma::LinkLayer::ethernet) || path.mtu > port->mtu ||
      path.pkey_index != pair.path.pkey_index)
    return verbs_failure(VerbsCall::ready_to_receive, device_, EINVAL);
  if (const auto error = fabric_.injected(VerbsCall::ready_to_send))
    return verbs_failure(VerbsCall::ready_to_send, device_, *error);
  pair.path = path;
  pair.state = FakeFabric::State::connected;
  fabric_.changed_.notify_all();
  return {};
}

Result<std::size_t> FakePair::post(std::span<const rdma::SendRequest> requests) {
  const std::lock_guard lock(fabric_.mutex_);
  if (const auto error = fabric_.injected(VerbsCall::post_send)) return verbs_failure(VerbsCall::post_send, device_, *error);
  FakeFabric::Pair& pair = fabric_.pairs_.at(number_);
  if (pair.state == FakeFabric::State::reset || pair.state == FakeFabric::State::prepared)
    return verbs_failure(VerbsCall::post_send, device_, EINVAL);
  ++fabric_.doorbells_;
  std::size_t accepted = 0;
  for (const rdma::SendRequest& request : requests) {
    if (pair.sends.size() + pair.held >= std::min(pair.size.sends, fabric_.queue_limit_)) break;
    if (request.inlined && request.size > kMostInline) return verbs_failure(VerbsCall::post_send, device_, EINVAL);
    FakeFabric::Send send;
    send.request = request;
    if (request.inlined && request.size > 0) send.inlined.assign(request.source, request.source + request.size);
    fabric_.inlined_ += send.inlined.empty() ? 0 : 1;
    pair.sends.push_back(std::move(send));
    ++accepted;
  }
  if (pair.state == FakeFabric::State::failed) fabric_.fail_pair(number_, pair, rdma::CompletionStatus::flushed);
  fabric_.changed_.notify_all();
  return accepted;
}

Result<std::size_t> FakePair::post(std::span<const rdma::ReceiveRequest> requests) {
  const std::lock_guard lock(fabric_.mutex_);
  if (const auto error = fabric_.injected(VerbsCall::post_receive))
    return verbs_failure(VerbsCall::post_receive, device_, *error);
  FakeFabric::Pair& pair = fabric_.pairs_.at(number_);
  if (pair.state == FakeFabric::State::reset) return verbs_failure(VerbsCall::post_receive, device_, EINVAL);
  std::size_t accepted = 0;
  for (const rdma::ReceiveRequest& request : requests) {
    if (pair.receives.size() >= pair.size.receives) break;
    pair.receives.push_back(request);
    ++accepted;
  }
  if (pair.state == FakeFabric::State::failed) fabric_.fail_pair(number_, pair, rdma::CompletionStatus::flushed);
  fabric_.changed_.notify_all();
  return accepted;
}

void FakePair::fail() {
  const std::lock_guard lock(fabric_.mutex_);
  fabric_.fail_pair(number_, fabric_.pairs_.at(number_), rdma::CompletionStatus::flushed);
}

}  // namespace seto::support
