#include "transports/rdma/verbs/librdmacm.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <endian.h>
#include <fcntl.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transports/rdma/verbs/manager_advice.h"

namespace seto::rdma {
namespace {

constexpr int kBacklog = 16;

// RDMA_IB_IP_PS_TCP: numbers of listeners are in the last 16 bits.
constexpr std::uint64_t kServices = std::uint64_t{abi::kStreamPorts} << 16;

std::string words_for(const abi::ManagerEvent& event, const char* name) {
  std::string text = std::string("the connection manager says ") + name + ", status " + std::to_string(event.status);
  if (event.kind == abi::kRejected) return text + ": the peer refused, or listens no more";
  if (event.kind == abi::kUnreachable || event.kind == abi::kAddressError || event.kind == abi::kRouteError)
    return text + ": see whether both ports are up and have a route to each other (ip route get; InfiniBand: a subnet manager)";
  return text;
}

std::uint32_t bytes_of_mtu(std::uint32_t code) { return code >= 1 && code <= 5 ? 128U << code : 256; }

// On InfiniBand (AF_IB) the kernel writes the version of its own header over the first byte of private data, and a listener reads
// an IP version from the second one. Zeros there mean neither.
constexpr std::size_t kKernelBytes = 4;

class Connection final : public ManagedConnection {
 public:
  Connection(const LibrdmacmFunctions& functions, abi::ManagerChannel* channel) : functions_(functions), channel_(channel) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override {
    for (abi::ManagerId* const id : {caller_, id_, listener_})
      if (id != nullptr) functions_.rdma_destroy_id(id);
    functions_.rdma_destroy_event_channel(channel_);
  }

  [[nodiscard]] int descriptor() const override { return channel_->descriptor; }
  std::optional<ManagerEvent> next_event() override;
  Result<std::uint16_t> listen(const ManagerAddress& own) override;
  Status accept(const ManagerGreeting& greeting) override;
  void refuse() override;
  Status resolve_address(const Destination& to) override;
  Status resolve_route() override;
  Status call(const ManagerGreeting& greeting) override;
  Status confirm() override;
  Result<QueuePairPath> path() override;

 private:
  // The library returns 0, or -1 with errno.
  static Status result_of(ManagerCall call, int result) { return result == 0 ? Status() : manager_failure(call, errno); }
  Status create(abi::ManagerId*& id) {
    return result_of(ManagerCall::create_id, functions_.rdma_create_id(channel_, &id, nullptr, abi::kStreamPorts));
  }
  abi::ManagerTerms terms_of(const ManagerGreeting& greeting);
  Result<abi::PairAttributes> attributes_for(abi::ManagerId* id, std::uint32_t state);
  void tell_port(const abi::ManagerId& id, ManagerEvent& event) const;

  const LibrdmacmFunctions& functions_;
  abi::ManagerChannel* const channel_;
  abi::ManagerId* listener_ = nullptr;
  abi::ManagerId* caller_ = nullptr;  // has got no answer yet
  abi::ManagerId* id_ = nullptr;      // of the own call, or the caller that was accepted
  int timeout_ms_ = 0;
  std::array<std::uint8_t, kKernelBytes + sizeof(Token)> private_data_{};  // of the call or the answer under way
};

abi::ManagerTerms Connection::terms_of(const ManagerGreeting& greeting) {
  abi::ManagerTerms terms{};
  std::memcpy(private_data_.data() + kKernelBytes, greeting.token.data(), sizeof greeting.token);
  terms.private_data = private_data_.data();
  terms.private_size = static_cast<std::uint8_t>(private_data_.size());
  terms.most_reads = terms.most_reads_of_peer = 1;
  terms.retry_count = terms.rnr_retry_count = 7;  // the queue pair has its own
  terms.queue_pair = greeting.queue_pair;
  return terms;
}

void Connection::tell_port(const abi::ManagerId& id, ManagerEvent& event) const {
  if (id.device != nullptr) event.device = functions_.ibv_get_device_name(id.device->device);
  event.port = id.port;
}

std::optional<ManagerEvent> Connection::next_event() {
  abi::ManagerEvent* got = nullptr;
  if (functions_.rdma_get_cm_event(channel_, &got) != 0) return std::nullopt;
  ManagerEvent event;
  switch (got->kind) {
    case abi::kAddressResolved:
      event.kind = ManagerEvent::Kind::address_resolved;
      tell_port(*got->id, event);
      break;
    case abi::kRouteResolved:
      event.kind = ManagerEvent::Kind::route_resolved;
      break;
    case abi::kConnectRequest:
    case abi::kConnectResponse:
      event.kind = got->kind == abi::kConnectRequest ? ManagerEvent::Kind::called : ManagerEvent::Kind::answered;
      event.greeting.queue_pair = got->terms.queue_pair;
      // Private data that is too short has no token.
      if (got->terms.private_data != nullptr && got->terms.private_size >= private_data_.size())
        std::memcpy(event.greeting.token.data(), static_cast<const std::uint8_t*>(got->terms.private_data) + kKernelBytes,
                    sizeof event.greeting.token);
      tell_port(*got->id, event);
      break;
    case abi::kAddressError:
    case abi::kRouteError:
    case abi::kConnectError:
    case abi::kUnreachable:
    case abi::kRejected:
    case abi::kDeviceRemoval:
      event.kind = ManagerEvent::Kind::failed;
      event.why = words_for(*got, functions_.rdma_event_str(got->kind));
      break;
    default:
      break;
  }
  abi::ManagerId* const caller = got->kind == abi::kConnectRequest ? got->id : nullptr;
  functions_.rdma_ack_cm_event(got);  // an identifier with an event that was not acknowledged cannot be destroyed
  if (caller != nullptr) {
    refuse();
    caller_ = caller;
  }
  return event;
}

Result<std::uint16_t> Connection::listen(const ManagerAddress& own) {
  SETO_TRY(create(listener_));
  sockaddr_storage address = socket_address_of(own);
  SETO_TRY(result_of(ManagerCall::bind, functions_.rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&address))));
  SETO_TRY(result_of(ManagerCall::listen, functions_.rdma_listen(listener_, kBacklog)));
  return ntohs(functions_.rdma_get_src_port(listener_));
}

Status Connection::accept(const ManagerGreeting& greeting) {
  abi::ManagerTerms terms = terms_of(greeting);
  SETO_TRY(result_of(ManagerCall::accept, functions_.rdma_accept(caller_, &terms)));
  id_ = std::exchange(caller_, nullptr);
  return {};
}

void Connection::refuse() {
  if (caller_ == nullptr) return;
  (void)functions_.rdma_reject(caller_, nullptr, 0);
  functions_.rdma_destroy_id(std::exchange(caller_, nullptr));
}

Status Connection::resolve_address(const Destination& to) {
  timeout_ms_ = to.timeout_ms;
  SETO_TRY(create(id_));
  std::uint8_t traffic_class = to.traffic_class;
  if (traffic_class != 0)
    SETO_TRY(result_of(ManagerCall::set_class, functions_.rdma_set_option(id_, abi::kOptionOfId, abi::kOptionTypeOfService,
                                                                          &traffic_class, sizeof traffic_class)));
  sockaddr_storage own = socket_address_of(to.own);
  sockaddr_storage peer = socket_address_of(to.peer);
  return result_of(ManagerCall::resolve_address, functions_.rdma_resolve_addr(id_, reinterpret_cast<sockaddr*>(&own),
                                                                              reinterpret_cast<sockaddr*>(&peer), timeout_ms_));
}

Status Connection::resolve_route() {
  return result_of(ManagerCall::resolve_route, functions_.rdma_resolve_route(id_, timeout_ms_));
}

Status Connection::call(const ManagerGreeting& greeting) {
  abi::ManagerTerms terms = terms_of(greeting);
  return result_of(ManagerCall::connect, functions_.rdma_connect(id_, &terms));
}

Status Connection::confirm() { return result_of(ManagerCall::establish, functions_.rdma_establish(id_)); }

Result<abi::PairAttributes> Connection::attributes_for(abi::ManagerId* id, std::uint32_t state) {
  abi::PairAttributes attributes{};
  attributes.state = state;
  int set = 0;
  SETO_TRY(result_of(ManagerCall::query_path, functions_.rdma_init_qp_attr(id, &attributes, &set)));
  // The manager of iWARP has no path: it moves the queue pair by itself.
  if (state == abi::kReadyToReceive && (set & abi::kSetPath) == 0)
    return failure(Code::unavailable, "the connection manager tells no path: devices of iWARP are not supported");
  return attributes;
}

Result<QueuePairPath> Connection::path() {
  abi::ManagerId* const id = caller_ != nullptr ? caller_ : id_;
  SETO_ASSIGN(const abi::PairAttributes init, attributes_for(id, abi::kInit));
  SETO_ASSIGN(const abi::PairAttributes receive, attributes_for(id, abi::kReadyToReceive));
  SETO_ASSIGN(const abi::PairAttributes send, attributes_for(id, abi::kReadyToSend));
  QueuePairPath path;
  path.port = init.port;
  path.pkey_index = init.pkey_index;
  path.mtu = bytes_of_mtu(receive.mtu);
  path.remote_queue_pair = receive.remote_pair;
  path.remote_sequence = receive.remote_sequence;
  path.own_sequence = send.own_sequence;
  path.remote_lid = receive.path.remote_lid;
  path.service_level = receive.path.service_level;
  path.source_path_bits = receive.path.path_bits;
  path.static_rate = receive.path.static_rate;
  if (receive.path.is_global != 0) {
    path.gid_index = receive.path.gid_index;
    std::memcpy(path.remote_gid.bytes.data(), receive.path.remote_gid.bytes, path.remote_gid.bytes.size());
    path.traffic_class = receive.path.traffic_class;
    path.flow_label = receive.path.flow_label;
    path.hop_limit = receive.path.hop_limit;
  }
  return path;
}

}  // namespace

sockaddr_storage socket_address_of(const ManagerAddress& address) {
  sockaddr_storage storage{};
  const auto put = [&](const auto& its) { std::memcpy(&storage, &its, sizeof its); };
  if (address.infiniband) {
    abi::InfinibandAddress its{};
    its.family = abi::kInfinibandFamily;
    its.pkey = htons(address.pkey);
    std::memcpy(its.gid, address.gid.bytes.data(), sizeof its.gid);
    its.service = htobe64(kServices + address.service);
    its.service_mask = ~std::uint64_t{0};
    put(its);
  } else if (address.gid.ipv4()) {
    sockaddr_in its{};
    its.sin_family = AF_INET;
    its.sin_port = htons(address.service);
    std::memcpy(&its.sin_addr, address.gid.bytes.data() + 12, sizeof its.sin_addr);
    put(its);
  } else {
    sockaddr_in6 its{};
    its.sin6_family = AF_INET6;
    its.sin6_port = htons(address.service);
    std::memcpy(&its.sin6_addr, address.gid.bytes.data(), sizeof its.sin6_addr);
    if (address.gid.link_local()) its.sin6_scope_id = address.interface;
    put(its);
  }
  return storage;
}

Result<std::unique_ptr<ConnectionManager>> Librdmacm::open(const std::string& file) {
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return failure(Code::unavailable, "librdmacm cannot be opened (%s): install it (Debian: librdmacm1)",
                   why == nullptr ? file.c_str() : why);
  }
  LibrdmacmFunctions functions;
  const char* lacking = nullptr;
#define SETO_FIND(result, name, arguments)                                      \
  functions.name = reinterpret_cast<result(*) arguments>(dlsym(handle, #name)); \
  if (functions.name == nullptr && lacking == nullptr) lacking = #name;
  SETO_LIBRDMACM_FUNCTIONS(SETO_FIND)
#undef SETO_FIND
  if (lacking != nullptr)
    return failure(Code::unavailable, "%s has no function %s: install rdma-core 31 or later", file.c_str(), lacking);
  auto manager = std::make_unique<Librdmacm>(functions);
  SETO_TRY(manager->new_connection().status());
  return std::unique_ptr<ConnectionManager>(std::move(manager));
}

Result<std::unique_ptr<ManagedConnection>> Librdmacm::new_connection() {
  abi::ManagerChannel* const channel = functions_.rdma_create_event_channel();
  if (channel == nullptr) return manager_failure(ManagerCall::create_channel, errno);
  auto connection = std::make_unique<Connection>(functions_, channel);
  const int flags = fcntl(channel->descriptor, F_GETFL);
  if (flags < 0 || fcntl(channel->descriptor, F_SETFL, flags | O_NONBLOCK) != 0)
    return system_failure(Code::unavailable, "the descriptor of events of the connection manager");
  return std::unique_ptr<ManagedConnection>(std::move(connection));
}

}  // namespace seto::rdma
