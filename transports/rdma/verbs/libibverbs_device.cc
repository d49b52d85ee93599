#include "transports/rdma/verbs/libibverbs_device.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/rdma/verbs/interface_facts.h"
#include "transports/rdma/verbs/libibverbs_queues.h"
#include "transports/rdma/verbs/verbs_advice.h"

namespace seto::rdma {
namespace {

// A table of GIDs that says it is longer is read as far as this.
constexpr int kMostGids = 4'096;
// From which a request gathers its bytes (SendRequest::rest). Every device that is known has more.
constexpr std::uint32_t kSendPlaces = 2;
// These rights ask for no relaxed ordering: bytes that a peer writes into memory of users or of GPUs must be there before the
// completion of the record behind them (decisions 46 and 55).
constexpr int kAccess = abi::kAccessLocalWrite | abi::kAccessRemoteWrite;

// Mbit/s of one lane, by the code of the speed.
std::uint64_t lane_mbit(std::uint8_t speed) {
  switch (speed) {
    case 1:
      return 2'500;
    case 2:
      return 5'000;
    case 4:
    case 8:
      return 10'000;
    case 16:
      return 14'000;
    case 32:
      return 25'000;
    case 64:
      return 50'000;
    case 128:
      return 100'000;
    default:
      return 0;
  }
}

std::uint64_t lanes(std::uint8_t width) {
  switch (width) {
    case 1:
      return 1;
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return 0;
  }
}

PortState state_of(std::uint32_t state) {
  if (state == 2) return PortState::initializing;
  if (state == 3) return PortState::armed;
  return state == 4 ? PortState::active : PortState::down;
}

// On Ethernet a port may say nothing about its link layer if its driver is old: then it is InfiniBand.
LinkLayer layer_of(std::uint8_t layer) { return layer == 2 ? LinkLayer::ethernet : LinkLayer::infiniband; }

Status set_nonblocking(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0)
    return system_failure(Code::unavailable, "the descriptor of events of an RDMA device");
  return {};
}

class Region final : public MemoryRegion {
 public:
  Region(const LibibverbsFunctions& functions, abi::Region* region) : functions_(functions), region_(region) {}
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() override { functions_.ibv_dereg_mr(region_); }
  [[nodiscard]] std::uint32_t local_key() const override { return region_->local_key; }
  [[nodiscard]] std::uint32_t remote_key() const override { return region_->remote_key; }

 private:
  const LibibverbsFunctions& functions_;
  abi::Region* const region_;
};

}  // namespace

Result<std::unique_ptr<VerbsDevice>> LibibverbsDevice::create(const LibibverbsFunctions& functions, abi::Context* context,
                                                              std::string name) {
  std::unique_ptr<LibibverbsDevice> device(new LibibverbsDevice(functions, context, std::move(name)));
  SETO_TRY(set_nonblocking(context->event_descriptor));
  device->domain_ = functions.ibv_alloc_pd(context);
  if (device->domain_ == nullptr) return device->failed(VerbsCall::allocate_domain, errno);
  return std::unique_ptr<VerbsDevice>(std::move(device));
}

LibibverbsDevice::~LibibverbsDevice() {
  if (domain_ != nullptr) functions_.ibv_dealloc_pd(domain_);
  functions_.ibv_close_device(context_);
}

Status LibibverbsDevice::failed(VerbsCall call, int error) const { return verbs_failure(call, name_, error); }

Result<DeviceFacts> LibibverbsDevice::facts() {
  abi::DeviceAttributes attributes{};
  if (const int error = functions_.ibv_query_device(context_, &attributes); error != 0)
    return failed(VerbsCall::query_device, error);
  DeviceFacts facts;
  facts.name = name_;
  facts.distance = distance_;
  facts.most_work_requests = static_cast<std::uint32_t>(attributes.most_work_requests);
  facts.most_completions = static_cast<std::uint32_t>(attributes.most_completions);
  const auto ports = reinterpret_cast<const std::uint8_t*>(&attributes)[abi::kPortCountAt];
  for (unsigned port = 1; port <= ports; ++port) {
    SETO_ASSIGN(PortFacts one, port_facts(static_cast<std::uint8_t>(port)));
    facts.ports.push_back(std::move(one));
  }
  return facts;
}

Result<PortFacts> LibibverbsDevice::port_facts(std::uint8_t number) {
  abi::PortAttributes port{};
  if (const int error = functions_.ibv_query_port(context_, number, &port); error != 0)
    return failed(VerbsCall::query_port, error);
  PortFacts facts;
  facts.number = number;
  facts.state = state_of(port.state);
  facts.link_layer = layer_of(port.link_layer);
  facts.mtu = port.active_mtu >= 1 && port.active_mtu <= 5 ? 128U << port.active_mtu : 256;
  facts.lid = port.lid;
  facts.needs_global_route = facts.link_layer == LinkLayer::infiniband && (port.flags & abi::kPortNeedsGlobalRoute) != 0;
  facts.rate_mbit = lane_mbit(port.active_speed) * lanes(port.active_width);
  for (int index = 0; index < std::min(port.gid_count, kMostGids); ++index) {
    abi::GidEntry entry{};
    const int error = functions_._ibv_query_gid_ex(context_, number, static_cast<std::uint32_t>(index), &entry, 0, sizeof entry);
    // The entry is empty, or that of an interface that this container does not have: kernels before 5.10 tell no number of it.
    if (error == ENODATA || error == ENODEV) continue;
    if (error != 0) return failed(VerbsCall::query_gid, error);
    GidEntry gid;
    gid.index = entry.index;
    std::memcpy(gid.gid.bytes.data(), entry.gid.bytes, sizeof entry.gid.bytes);
    gid.type = entry.type == 2 ? GidType::roce_v2 : entry.type == 1 ? GidType::roce_v1 : GidType::infiniband;
    gid.interface = entry.interface;
    gid.vlan = vlan_of(entry.interface);
    gid.subnet_bits = subnet_bits_of(entry.interface, gid.gid);
    if (!gid.gid.empty()) facts.gids.push_back(gid);
  }
  for (int index = 0; index < port.pkey_count; ++index) {
    std::uint16_t key = 0;  // network byte order
    const int error = functions_.ibv_query_pkey(context_, number, index, &key);
    if (error != 0) return failed(VerbsCall::query_pkey, error < 0 ? errno : error);
    facts.pkeys.push_back(static_cast<std::uint16_t>(key >> 8 | key << 8));
  }
  while (!facts.pkeys.empty() && facts.pkeys.back() == 0) facts.pkeys.pop_back();
  return facts;
}

Result<std::unique_ptr<MemoryRegion>> LibibverbsDevice::register_memory(std::byte* memory, std::size_t size) {
  abi::Region* const region = functions_.ibv_reg_mr(domain_, memory, size, kAccess);
  if (region == nullptr) return failed(VerbsCall::register_memory, errno);
  return std::unique_ptr<MemoryRegion>(std::make_unique<Region>(functions_, region));
}

// libibverbs leaves the wish out where the kernel does not know it; a driver may refuse it all the same.
Result<std::unique_ptr<MemoryRegion>> LibibverbsDevice::register_unordered(std::byte* memory, std::size_t size) {
  if (orders_all_.load(std::memory_order_relaxed)) return register_memory(memory, size);
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  abi::Region* const region =
      functions_.ibv_reg_mr_iova2(domain_, memory, size, address, static_cast<unsigned>(kAccess) | abi::kAccessRelaxedOrdering);
  if (region != nullptr) return std::unique_ptr<MemoryRegion>(std::make_unique<Region>(functions_, region));
  if (errno != EINVAL && errno != EOPNOTSUPP) return failed(VerbsCall::register_memory, errno);
  orders_all_.store(true, std::memory_order_relaxed);
  return register_memory(memory, size);
}

Result<std::unique_ptr<MemoryRegion>> LibibverbsDevice::register_dma_buf(const DmaBuf& memory) {
  if (functions_.ibv_reg_dmabuf_mr == nullptr)
    return failure(Code::unavailable, "libibverbs has no ibv_reg_dmabuf_mr: install rdma-core 34 or later");
  abi::Region* const region =
      functions_.ibv_reg_dmabuf_mr(domain_, memory.offset, memory.size, memory.address, memory.descriptor, kAccess);
  if (region == nullptr) return failed(VerbsCall::register_dma_buf, errno);
  return std::unique_ptr<MemoryRegion>(std::make_unique<Region>(functions_, region));
}

Result<std::unique_ptr<CompletionQueue>> LibibverbsDevice::create_completion_queue(std::uint32_t depth) {
  abi::Channel* const channel = functions_.ibv_create_comp_channel(context_);
  if (channel == nullptr) return failed(VerbsCall::create_channel, errno);
  if (const Status status = set_nonblocking(channel->descriptor); !status.ok()) {
    functions_.ibv_destroy_comp_channel(channel);
    return status;
  }
  abi::Queue* const queue = functions_.ibv_create_cq(context_, static_cast<int>(depth), nullptr, channel, 0);
  if (queue == nullptr) {
    const int error = errno;
    functions_.ibv_destroy_comp_channel(channel);
    return failed(VerbsCall::create_completion_queue, error);
  }
  return std::unique_ptr<CompletionQueue>(std::make_unique<LibibverbsQueue>(*this, channel, queue));
}

Result<std::unique_ptr<QueuePair>> LibibverbsDevice::create_queue_pair(CompletionQueue& completions, const QueuePairSize& size) {
  abi::Queue* const queue = static_cast<LibibverbsQueue&>(completions).handle();
  abi::PairSetup setup{};
  setup.send_queue = setup.receive_queue = queue;
  setup.capacity = {size.sends, size.receives, kSendPlaces, 1, size.inlined};
  setup.type = abi::kReliableConnection;
  abi::Pair* pair = functions_.ibv_create_qp(domain_, &setup);
  if (pair == nullptr && size.inlined > 0) {
    // Devices refuse more inline bytes than they have, and tell in no attribute how many that are.
    setup.capacity = {size.sends, size.receives, kSendPlaces, 1, 0};
    pair = functions_.ibv_create_qp(domain_, &setup);
  }
  if (pair == nullptr) return failed(VerbsCall::create_queue_pair, errno);
  return std::unique_ptr<QueuePair>(std::make_unique<LibibverbsPair>(*this, pair, setup.capacity.inlined));
}

std::optional<AsyncEvent> LibibverbsDevice::next_event() {
  abi::AsyncEvent event{};
  if (functions_.ibv_get_async_event(context_, &event) != 0) return std::nullopt;
  AsyncEvent told;
  told.kind = static_cast<AsyncEventKind>(event.kind);
  const bool of_pair = told.kind == AsyncEventKind::queue_pair_fatal || told.kind == AsyncEventKind::queue_pair_request_error ||
                       told.kind == AsyncEventKind::queue_pair_access_error || told.kind == AsyncEventKind::established;
  if (of_pair)
    told.queue_pair = event.element.pair->number;
  else if (told.kind != AsyncEventKind::completion_queue_error)
    told.port = static_cast<std::uint8_t>(event.element.port);
  functions_.ibv_ack_async_event(&event);
  return told;
}

}  // namespace seto::rdma
