#include "transports/rdma/verbs/librdmacm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transports/rdma/verbs/manager_advice.h"

namespace seto::rdma {
namespace {

using ::testing::HasSubstr;

template <class Address>
Address address_as(const ManagerAddress& address) {
  const sockaddr_storage storage = socket_address_of(address);
  Address its{};
  std::memcpy(&its, &storage, sizeof its);
  return its;
}

TEST(Librdmacm, ThatIsMissingSaysWhatToInstall) {
  const auto opened = Librdmacm::open("librdmacm_that_is_not_there.so.1");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), Code::unavailable);
  EXPECT_THAT(std::string(opened.status().text()), HasSubstr("install it (Debian: librdmacm1)"));
}

TEST(Librdmacm, OfAnotherKindSaysWhatIsMissing) {
  const auto opened = Librdmacm::open("libc.so.6");
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(std::string(opened.status().text()), HasSubstr("has no function rdma_create_event_channel"));
}

TEST(Librdmacm, AKernelWithoutManagerSaysWhichModuleToLoad) {
  LibrdmacmFunctions functions;
  functions.rdma_create_event_channel = []() -> abi::ManagerChannel* {
    errno = ENOENT;
    return nullptr;
  };
  const auto opened = Librdmacm(functions).new_connection();
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(std::string(opened.status().text()), HasSubstr("load the kernel module rdma_ucm"));
  EXPECT_THAT(std::string(manager_failure(ManagerCall::create_channel, EACCES).text()), HasSubstr("/dev/infiniband/rdma_cm"));
}

TEST(Librdmacm, AddressesAreThoseOfTheirFamily) {
  const auto four = address_as<sockaddr_in>({.gid = gid_of("10.1.2.3"), .service = 77});
  EXPECT_EQ(four.sin_family, AF_INET);
  EXPECT_EQ(ntohs(four.sin_port), 77);
  EXPECT_EQ(ntohl(four.sin_addr.s_addr), 0x0a010203U);
  const auto six = address_as<sockaddr_in6>({.gid = gid_of("fd00::5"), .interface = 9, .service = 78});
  EXPECT_EQ(six.sin6_family, AF_INET6);
  EXPECT_EQ(ntohs(six.sin6_port), 78);
  EXPECT_EQ(six.sin6_addr.s6_addr[15], 5);
  EXPECT_EQ(six.sin6_scope_id, 0U);
  EXPECT_EQ(address_as<sockaddr_in6>({.gid = gid_of("fe80::5"), .interface = 9}).sin6_scope_id, 9U);
  const auto infiniband =
      address_as<abi::InfinibandAddress>({.gid = gid_of("fe80::5"), .infiniband = true, .pkey = 0x8001, .service = 0x0102});
  EXPECT_EQ(infiniband.family, 27);
  EXPECT_EQ(ntohs(infiniband.pkey), 0x8001);
  EXPECT_EQ(infiniband.gid[0], 0xfe);
  EXPECT_EQ(be64toh(infiniband.service), 0x0106'0102U);
  EXPECT_EQ(infiniband.service_mask, ~std::uint64_t{0});
}

// The library in memory: it gives out these events, and says what was done with its identifiers.
struct Stub {
  abi::ManagerChannel channel{-1};
  std::deque<abi::ManagerEvent> events;
  std::vector<abi::ManagerId*> created, destroyed, refused;
  std::size_t acknowledged = 0;
  int traffic_class = -1;
  abi::ManagerTerms terms{};
  std::string private_data;
  bool tells_path = true;
};
Stub* stub = nullptr;

LibrdmacmFunctions functions_of_stub() {
  LibrdmacmFunctions its;
  its.rdma_create_event_channel = [] { return &stub->channel; };
  its.rdma_destroy_event_channel = [](abi::ManagerChannel*) {};
  its.rdma_create_id = [](abi::ManagerChannel* channel, abi::ManagerId** id, void*, std::uint32_t space) {
    EXPECT_EQ(space, abi::kStreamPorts);
    *id = new abi::ManagerId{};
    (*id)->channel = channel;
    stub->created.push_back(*id);
    return 0;
  };
  its.rdma_destroy_id = [](abi::ManagerId* id) {
    stub->destroyed.push_back(id);
    delete id;
    return 0;
  };
  its.rdma_set_option = [](abi::ManagerId*, int, int, void* value, std::size_t size) {
    EXPECT_EQ(size, 1U);
    stub->traffic_class = *static_cast<std::uint8_t*>(value);
    return 0;
  };
  its.rdma_bind_addr = [](abi::ManagerId*, sockaddr*) { return 0; };
  its.rdma_listen = [](abi::ManagerId*, int) { return 0; };
  its.rdma_get_src_port = [](abi::ManagerId*) { return htons(4'711); };
  its.rdma_resolve_addr = [](abi::ManagerId*, sockaddr*, sockaddr*, int) { return 0; };
  const auto keep = [](abi::ManagerId*, abi::ManagerTerms* terms) {
    stub->terms = *terms;
    stub->private_data.assign(static_cast<const char*>(terms->private_data), terms->private_size);
    return 0;
  };
  its.rdma_connect = keep;
  its.rdma_accept = keep;
  its.rdma_reject = [](abi::ManagerId* id, const void*, std::uint8_t) {
    stub->refused.push_back(id);
    return 0;
  };
  its.rdma_get_cm_event = [](abi::ManagerChannel*, abi::ManagerEvent** event) {
    if (stub->events.empty()) return -1;
    *event = new abi::ManagerEvent(stub->events.front());
    stub->events.pop_front();
    return 0;
  };
  its.rdma_ack_cm_event = [](abi::ManagerEvent* event) {
    ++stub->acknowledged;
    delete event;
    return 0;
  };
  its.rdma_event_str = [](std::uint32_t) { return "AN_EVENT"; };
  its.rdma_init_qp_attr = [](abi::ManagerId*, abi::PairAttributes* attributes, int* set) {
    *set = stub->tells_path && attributes->state == abi::kReadyToReceive ? abi::kSetPath : 0;
    if (attributes->state == abi::kInit) {
      attributes->port = 2;
      attributes->pkey_index = 3;
    } else if (attributes->state == abi::kReadyToReceive) {
      attributes->mtu = 4;
      attributes->remote_pair = 99;
      attributes->remote_sequence = 0xabcdef;
      attributes->path = {{{0xfd, 1}}, 0x54321, 7, 63, 104, 0, 12, 5, 1, 4, 1, 2};
    } else {
      attributes->own_sequence = 0x123456;
      attributes->timeout = 19;
    }
    return 0;
  };
  its.ibv_get_device_name = [](abi::DeviceName*) { return "mlx5_0"; };
  return its;
}

class LibrdmacmCalls : public ::testing::Test {
 protected:
  LibrdmacmCalls() {
    stub = &own;
    own.channel.descriptor = eventfd(0, EFD_CLOEXEC);
    connection = manager.new_connection().value();
  }
  ~LibrdmacmCalls() override {
    connection.reset();
    EXPECT_EQ(own.destroyed.size(), own.created.size()) << "each identifier ends";
    close(own.channel.descriptor);
  }
  // An identifier that the library makes for a caller.
  // As a peer of another process has sent it, and the kernel of InfiniBand has changed its first byte.
  abi::ManagerEvent call_of(const Token& token, std::uint8_t size) {
    std::string& data = sent.emplace_back(kKernelBytes + token.size(), '\0');
    std::copy(token.begin(), token.end(), data.begin() + kKernelBytes);
    abi::ManagerEvent event{};
    event.id = new abi::ManagerId{};
    event.id->port = 2;
    own.created.push_back(event.id);
    event.kind = abi::kConnectRequest;
    event.terms.private_data = data.data();
    event.terms.private_size = size;
    event.terms.queue_pair = 55;
    return event;
  }

  static constexpr std::size_t kKernelBytes = 4;
  std::deque<std::string> sent;
  Stub own;
  Librdmacm manager{functions_of_stub()};
  std::unique_ptr<ManagedConnection> connection;
};

TEST_F(LibrdmacmCalls, APathIsMadeOfTheAttributesOfAllStates) {
  ASSERT_TRUE(connection->resolve_address({{gid_of("10.0.0.1")}, {gid_of("10.0.0.2")}, 104, 1'000}).ok());
  EXPECT_EQ(own.traffic_class, 104);
  const QueuePairPath path = connection->path().value();
  EXPECT_EQ(path.port, 2);
  EXPECT_EQ(path.pkey_index, 3);
  EXPECT_EQ(path.mtu, 2'048U);
  EXPECT_EQ(path.remote_queue_pair, 99U);
  EXPECT_EQ(path.remote_sequence, 0xabcdefU);
  EXPECT_EQ(path.own_sequence, 0x123456U);
  EXPECT_EQ(path.gid_index, 7U);
  EXPECT_EQ(path.remote_gid, gid_of("fd01::"));
  EXPECT_EQ(path.flow_label, 0x54321U);
  EXPECT_EQ(path.hop_limit, 63);
  EXPECT_EQ(path.traffic_class, 104);
  EXPECT_EQ(path.remote_lid, 12);
  EXPECT_EQ(path.service_level, 5);
  EXPECT_EQ(path.source_path_bits, 1);
  EXPECT_EQ(path.static_rate, 4);
}

TEST_F(LibrdmacmCalls, AClassThatIsNotSetIsLeftToTheAdministrator) {
  ASSERT_TRUE(connection->resolve_address({{gid_of("10.0.0.1")}, {gid_of("10.0.0.2")}, 0, 1'000}).ok());
  EXPECT_EQ(own.traffic_class, -1);
}

TEST_F(LibrdmacmCalls, AManagerThatTellsNoPathIsNotSupported) {
  own.tells_path = false;
  ASSERT_TRUE(connection->resolve_address({{gid_of("10.0.0.1")}, {gid_of("10.0.0.2")}, 0, 1'000}).ok());
  EXPECT_THAT(std::string(connection->path().status().text()), HasSubstr("devices of iWARP are not supported"));
}

TEST_F(LibrdmacmCalls, ACallerIsAcceptedOrRefused) {
  EXPECT_EQ(connection->listen({.gid = gid_of("10.0.0.1")}).value(), 4'711);
  const Token token = random_token();
  own.events = {call_of(token, 56), call_of(token, 19), call_of(token, 20)};
  const auto first = connection->next_event().value();
  EXPECT_EQ(first.kind, ManagerEvent::Kind::called);
  EXPECT_EQ(first.port, 2);
  EXPECT_EQ(first.greeting.token, token);
  EXPECT_EQ(first.greeting.queue_pair, 55U);
  EXPECT_TRUE(own.refused.empty());
  const auto second = connection->next_event().value();
  EXPECT_EQ(second.greeting.token, Token{}) << "it is too short";
  EXPECT_EQ(own.refused.size(), 1U) << "the first one got no answer";
  connection->refuse();
  EXPECT_EQ(own.refused.size(), 2U);
  EXPECT_EQ(own.destroyed.size(), 2U);
  EXPECT_EQ(connection->next_event()->greeting.token, token);
  ASSERT_TRUE(connection->accept({77, token}).ok());
  EXPECT_EQ(own.terms.queue_pair, 77U);
  std::string expected(kKernelBytes, '\0');  // the kernel writes there on InfiniBand
  expected.append(token.begin(), token.end());
  EXPECT_EQ(own.private_data, expected);
  connection->refuse();
  EXPECT_EQ(own.refused.size(), 2U) << "there is none to refuse";
  EXPECT_FALSE(connection->next_event().has_value());
  EXPECT_EQ(own.acknowledged, 3U);
}

TEST_F(LibrdmacmCalls, FailuresAreTold) {
  for (const std::uint32_t kind :
       {abi::kAddressError, abi::kRouteError, abi::kConnectError, abi::kUnreachable, abi::kRejected, abi::kDeviceRemoval}) {
    abi::ManagerEvent event{};
    event.kind = kind;
    event.status = -110;
    own.events.push_back(event);
    const auto told = connection->next_event().value();
    EXPECT_EQ(told.kind, ManagerEvent::Kind::failed);
    EXPECT_THAT(told.why, HasSubstr("the connection manager says AN_EVENT, status -110"));
  }
}

}  // namespace
}  // namespace seto::rdma
