#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/result.h"
#include "src/core/connect/connection_cache.h"
#include "src/core/connection.h"
#include "src/core/choice/cost_model.h"
#include "src/core/connect/output_task.h"
#include "src/core/progress/progress.h"
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

  // A new connection over TCP; the peer's context opens its end for the same attempt.
  Result<std::shared_ptr<Connection>> open(const PeerAddress& peer, const RemoteDoor& door, Deadline until);
  // Its process's signs of life stand in its memory from now on, for neighbours to see; who beats there sees theirs.
  Result<Heartbeats*> beat();
  // Its links over TCP; made when the first is needed.
  Result<tcp::Domain*> domain();
  // A communicator over it ends, in peace or not.
  void ends(bool failed);
  // Acquaintances, under a lock.
  [[nodiscard]] KnownConnections known(const std::string& host);
  void keep(const Connections& met, const std::string& host);

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
  void expect_crowding(double ranks_a_core);

  // Sleeper
  void arm() override;
  void disarm() override;
  void await_bell(int milliseconds) override;
  void wake() override;
  bool pump() override;

 private:
  explicit Context(Config config) : config_(std::move(config)) {}
  SegmentHead& head() { return *reinterpret_cast<SegmentHead*>(segment_->segment.data()); }

  Config config_;
  ContextId id_ = 0;
  std::shared_ptr<SharedSegment> segment_;
  std::unique_ptr<slots::Pool> pool_;
  Fd epoll_;
  mutable std::mutex mutex_;
  std::optional<CostModel> costs_;
  double crowding_ = 1;
  Acquaintances acquaintances_;
  std::atomic<tcp::Domain*> tcp_{nullptr};  // domain_, for who may not lock
  std::unique_ptr<tcp::Domain> domain_;
  std::vector<std::unique_ptr<Retired>> retired_;  // gone before the domain, which then delivers what they sent
  std::unique_ptr<OutputTask> output_;
  bool beating_ = false;
  Heartbeats::Registration beat_;  // of the segment's head
  std::unique_ptr<Progress> progress_;
};

// What wires go by.
LivenessSettings liveness_of(const Config& config);

// Cores that this process may run on.
int usable_cores();

// What shipped constants say for this machine: looks before a wait gives up its core.
std::uint32_t default_spins(double ranks_a_core);

}  // namespace seto
