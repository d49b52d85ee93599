#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/config.h"
#include "src/base/result.h"
#include "src/core/acquaintances.h"
#include "src/core/connection.h"
#include "src/core/cost_model.h"
#include "src/core/output_task.h"
#include "src/core/progress.h"
#include "transports/slots/pool.h"

namespace seto {

// The progress domain of one rank in one process: its memory, its connections, its token. Communicators of one context share
// all of them. Any thread.
class Context final : public Sleeper {
 public:
  static Result<std::shared_ptr<Context>> create(const Config& config);
  ~Context() override;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] ContextId id() const { return id_; }
  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] SharedSegment& segment() { return *segment_; }
  [[nodiscard]] slots::Pool& pool() { return *pool_; }
  [[nodiscard]] Progress& progress() { return *progress_; }

  // A new connection; the peer's context opens its end for the same attempt.
  Result<std::shared_ptr<Connection>> open(const PeerAddress& peer, Deadline until);
  Result<std::shared_ptr<Connection>> open(const PeerAddress& peer, const RemoteDoor& door, Deadline until);
  // Its links over TCP; made when the first is needed.
  Result<tcp::Domain*> domain();
  // Acquaintances, under a lock.
  [[nodiscard]] KnownConnections known();
  void keep(const Connections& met);

  // What must stay until peers are done with it; looked at whenever a communicator comes or goes.
  class Retired {
   public:
    virtual ~Retired() = default;
    // Nobody needs it any more. Not asked again after that.
    [[nodiscard]] virtual bool over() = 0;
  };
  void retire(std::unique_ptr<Retired> remains);
  void tidy();

  // What an earlier communicator measured.
  [[nodiscard]] std::optional<CostModel> costs() const;
  void remember(const CostModel& costs);

  // Where ranks outnumber cores, nobody may spin: 3 times at 8 B.
  void expect_ranks_on_node(int ranks);

  // Sleeper
  void arm() override;
  void disarm() override;
  void await_bell(int milliseconds) override;
  void wake() override;
  bool pump() override;

 private:
  Status listen_to(const std::shared_ptr<Connection>& connection);
  // Null: it is gone, and so is its descriptor.
  std::shared_ptr<Connection> ringer_of(std::uint64_t number);
  explicit Context(Config config) : config_(std::move(config)) {}
  SegmentHead& head() { return *reinterpret_cast<SegmentHead*>(segment_->segment.data()); }

  Config config_;
  ContextId id_ = 0;
  std::shared_ptr<SharedSegment> segment_;
  std::unique_ptr<slots::Pool> pool_;
  Fd epoll_;
  mutable std::mutex mutex_;
  std::optional<CostModel> costs_;
  int most_ranks_on_node_ = 1;
  Acquaintances acquaintances_;
  // Whose bell an event of epoll is: its descriptor may be closed by then, and the number another's.
  std::unordered_map<std::uint64_t, std::weak_ptr<Connection>> ringers_;
  std::uint64_t next_ringer_ = 1;           // 0: the own bell
  std::atomic<tcp::Domain*> tcp_{nullptr};  // domain_, for who may not lock
  std::unique_ptr<tcp::Domain> domain_;
  std::vector<std::unique_ptr<Retired>> retired_;  // gone before the domain, which then delivers what they sent
  std::unique_ptr<OutputTask> output_;
  std::unique_ptr<Progress> progress_;
};

// What wires go by.
LivenessSettings liveness_of(const Config& config);

// Cores that this process may run on.
int usable_cores();

// What shipped constants say for this machine: looks before a wait gives up its core.
std::uint32_t default_spins(int ranks_on_node);

}  // namespace seto
