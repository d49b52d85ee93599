#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "src/control/channel/control_channels.h"
#include "src/core/connect/connection_cache.h"
#include "transports/tcp/tcp_peer_group.h"

namespace seto {

// The ranks of a communicator that this one reaches over TCP: their streams, and what they say of themselves over the wires
// between processes, whatever their engines are doing.
class RemoteRanks final : private tcp::Herald {
 public:
  struct Setup {
    std::uint32_t own = 0;
    AttemptId attempt = 0;
    Connections connections;  // by rank; null, or one that shares memory: not reached over TCP
    tcp::Domain* domain = nullptr;
    std::function<void()> wake;  // the context: a rank has said something. Any thread
  };
  static Result<std::unique_ptr<RemoteRanks>> create(Setup setup, Wires& wires);
  ~RemoteRanks() override;

  [[nodiscard]] Circle& circle() { return *circle_; }

 private:
  explicit RemoteRanks(Setup setup)
      : setup_(std::move(setup)), asked_(setup_.connections.size()), answered_(setup_.connections.size()) {}

  void ask(std::uint32_t member) override;
  void announce() override;
  void hear(std::uint32_t member, std::string_view bulletin);

  Setup setup_;
  std::vector<std::atomic<std::uint64_t>> asked_;  // by rank: when
  std::vector<std::atomic<bool>> answered_;        // by rank: since then
  std::unique_ptr<tcp::TcpCircle> circle_;
  Mailboxes::Registration mailbox_;  // gone before the circle
};

}  // namespace seto
