#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fork.h"
#include "src/base/wakeup.h"
#include "src/base/work_threads.h"
#include "src/control/channel/control_channels.h"
#include "src/control/network/tcp_connector.h"
#include "transports/tcp/connect/link_rails.h"
#include "transports/tcp/connect/tcp_sockets.h"
#include "transports/tcp/link/domain.h"

namespace seto::tcp {

class OnUseOpener;

// The secret of a link. Both ends derive the same one, whichever of them connected.
[[nodiscard]] Secret link_session(const Secret& key, AttemptId attempt, ContextId one, ContextId other);

// The links of one context that an attempt may open on first use: takes the messages and the sockets of their peers, which may
// arrive as long as one of the links exists. Any thread.
class OnUseLinks final : public std::enable_shared_from_this<OnUseLinks> {
 public:
  struct Setup {
    AttemptId attempt = 0;
    Secret key;
    std::uint32_t own = 0;  // number in the attempt
    std::uint32_t members = 0;
    ContextId context = 0;
    TcpConnector* connector = nullptr;
    ControlChannels* channels = nullptr;
    std::weak_ptr<Domain> domain;
    std::shared_ptr<WorkThreads> threads;  // that dial
    std::shared_ptr<WorkThreads> redials;  // that dial paths that broke
    std::shared_ptr<const Wakeup> wakeup;  // of the own context
    std::uint64_t opening_ms = 0;
    std::uint64_t patience_ms = 0;  // Link::Setup
  };
  static std::shared_ptr<OnUseLinks> create(Setup setup);
  // Sockets of peers arrive from then on.
  static void accept_on(TcpConnector& connector);
  explicit OnUseLinks(Setup setup);
  ~OnUseLinks();

  struct Peer {
    std::uint32_t number = 0;  // in the attempt
    ContextId context = 0;     // of the peer
    std::string address;       // TcpConnector::address() of the peer
    SocketWish wish{};
    std::uint32_t round_trip_us = 0;
    bool same_site = false;  // as in AttemptMember
    std::shared_ptr<ControlChannel> channel;
    std::uint32_t most_rails = 0;           // that both ends can have
    std::shared_ptr<AttemptRails> rails{};  // null: none
  };
  // Adds a link without sockets to the domain.
  [[nodiscard]] Result<std::shared_ptr<Link>> add(const Peer& peer);

  [[nodiscard]] const Setup& setup() const { return setup_; }
  // True once: descriptors are short, and a person should be told how many are needed.
  [[nodiscard]] bool tells_descriptors() { return !told_.exchange(true, std::memory_order_relaxed); }
  // A link is needed. Beyond a number of them, the log tells once what connections to all would take.
  void count_needed() { needed_.fetch_add(1, std::memory_order_relaxed); }
  void tell_of_many(std::uint32_t sockets_of_each);
  // The name of the handler of a member for messages about links. Ranks are smaller numbers.
  [[nodiscard]] static std::uint32_t handler_of(std::uint32_t number) { return number | 0x8000'0000U; }

 private:
  friend class OnUseOpener;
  [[nodiscard]] std::shared_ptr<OnUseOpener> find(std::uint32_t number) const;
  void receive(std::uint32_t from, std::string_view message);
  void accept(const ConnectKey& caller, SecureStream socket);

  const Setup setup_;
  const std::uint32_t generation_ = fork_generation();
  Admission admission_;
  std::atomic<bool> told_{false};
  std::atomic<bool> told_of_many_{false};
  std::atomic<std::uint32_t> needed_{0};
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::weak_ptr<OnUseOpener>> openers_;  // by number of the peer
  MessageHandlers::Registration handler_;                        // last: its handler uses the other members
};

}  // namespace seto::tcp
