#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/bootstrap/bootstrap.h"
#include "src/core/call/collective_call.h"
#include "src/core/choice/planner.h"
#include "src/core/communicator/audited_flows.h"
#include "src/core/communicator/members.h"
#include "src/core/communicator/operation_order.h"
#include "src/core/communicator/peer_failures.h"
#include "src/core/communicator/queued_tasks.h"
#include "src/core/communicator/rate_versions.h"
#include "src/core/communicator/snapshot.h"
#include "src/core/connect/context.h"
#include "src/core/launch/launch_cache.h"
#include "src/core/launch/point_to_point.h"
#include "src/core/progress/task.h"
#include "src/core/record/observability.h"

namespace seto {

class CollectiveTask;
class TaskGate;

struct CommunicatorOptions {
  Config config;
  std::shared_ptr<Context> context;  // null: a new one
  std::string name;
  const std::atomic<bool>* given_up = nullptr;   // when it is set, by any thread, create() ends soon and tells the other ranks
  DumpRequests* dumps = nullptr;                 // null: a dump is written only when a caller asks for it
  StatusListing* listing = nullptr;              // null: its status cannot be asked for
  std::optional<InheritedRates> inherited = {};  // of the communicator that was split
};

// One rank's end of a communicator. Calls come from one thread at a time. fail() and first_failure() may come from any thread.
class Communicator final {
 public:
  static Result<std::unique_ptr<Communicator>> create(Bootstrap& bootstrap, const CommunicatorOptions& options);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] Rank rank() const { return members_.rank(); }
  [[nodiscard]] int ranks() const { return members_.ranks(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  // A number that no other communicator of this process ever has. (An address can be used again.)
  [[nodiscard]] std::uint64_t serial() const { return serial_; }
  [[nodiscard]] const std::shared_ptr<Context>& context() const { return context_; }
  [[nodiscard]] const Tiers& tiers() const { return members_.connected().tiers; }
  // With the rates that are known now. Any thread.
  [[nodiscard]] Sites sites() const { return rates_.sites(); }
  [[nodiscard]] const Config& config() const { return config_; }
  // The input of choice besides the call. `costs` outlives the result.
  [[nodiscard]] Surroundings surroundings(const CostModel& costs) const {
    return {ranks(), &config_, ranks_a_core(), &tiers(), &costs, &members_.connected().stated_tiers};
  }
  // The constants of the latest operation. Any thread.
  [[nodiscard]] CostModel costs() const { return rates_.known().costs; }
  [[nodiscard]] RateVersions& rates() { return rates_; }
  [[nodiscard]] const RateVersions& rates() const { return rates_; }
  // How long the agreement on the cost model took.
  [[nodiscard]] std::uint64_t calibration_ns() const { return calibration_ns_; }
  [[nodiscard]] double ranks_a_core() const { return members_.connected().ranks_per_core; }
  [[nodiscard]] const std::string& place_of(Rank rank) const { return members_.place_of(rank); }
  // The secret of the ranks. Null: they are on one node, and their channel can be trusted.
  [[nodiscard]] const Secret* secret() const { return members_.connected().over_network ? &members_.connected().key : nullptr; }
  [[nodiscard]] int others_of_process() const { return members_.others_of_process(); }  // ranks that are threads of this one
  [[nodiscard]] int others_over_network() const { return members_.others_over_network(); }
  [[nodiscard]] AttemptId attempt() const { return members_.connected().attempt; }

  Status run(const Call& call);  // a blocking collective
  // The task of a collective that the caller drives. Takes an operation number, whether the call is right or wrong.
  std::unique_ptr<Task> issue(const Call& call, TaskGate* gate);
  // The same for sends and receives, which have no operation number. A task with a gate is under way until it has ended.
  Status run(const TransferCall& call);
  std::unique_ptr<Task> issue(const TransferCall& call, TaskGate* gate);
  // The same for a receive of the first message from any rank.
  Status run(const ReceiveAnyCall& call);
  std::unique_ptr<Task> issue(const ReceiveAnyCall& call, TaskGate* gate);
  // Drives until all tasks with a gate have ended. They end even after a failure: then queued tasks end without having begun.
  // Returns the first failure. Does not wait for other ranks.
  Status drain();
  // The tasks with a gate. A stream must claim a task there before it drives it.
  [[nodiscard]] const std::shared_ptr<QueuedTasks>& waiting() const { return queued_; }
  // Drains, and waits until every operation issued here has ended on all ranks. Other ranks need not call it.
  Status finalize();

  // The first reason is kept until destruction and told to the other ranks.
  void fail(const Status& reason, Rank culprit) { failures_.fail(reason, culprit); }
  [[nodiscard]] bool failed() const { return failures_.failed(); }
  [[nodiscard]] Status first_failure() const { return failures_.first(); }
  // For queries while no call is under way. Any thread. Fails the communicator if a peer has failed or died.
  void check_peers() { failures_.check_peers(); }
  // For reports of its state. Any thread, until destruction begins.
  [[nodiscard]] SnapshotSources sources() const { return {members_, order_, *queued_, failures_, *context_, observability_}; }
  // Bound shapes. On the calling thread.
  [[nodiscard]] std::size_t shapes_kept() const { return launches_->kept(); }
  [[nodiscard]] Observability& observability() { return observability_; }
  [[nodiscard]] const Observability& observability() const { return observability_; }

  // For the tasks of this room.
  [[nodiscard]] Members& members() { return members_; }
  [[nodiscard]] OperationOrder& order() { return order_; }
  [[nodiscard]] PeerFailures& failures() { return failures_; }
  [[nodiscard]] QueuedTasks& queued() { return *queued_; }
  [[nodiscard]] PointToPoint& transfers() { return *transfers_; }
  // Binds a call that was issued while ranks agreed on a version, for the holder of the token, in the order of the operations.
  // False: its version is not known yet. A call that cannot be bound is rejected.
  bool bind_late(const Call& call, std::uint64_t operation, Result<BoundShape*>& shape);
  void late_call_ended() { late_calls_.fetch_sub(1, std::memory_order_release); }

 private:
  Communicator(const CommunicatorOptions& options, std::shared_ptr<Context> context, ConnectedRanks ranks);

  void queue(Task& task) { queued_->add(task); }
  // The result of preparing a call. Without a shape it was rejected, or it is bound late.
  struct Prepared {
    BoundShape* shape = nullptr;
    Status rejected;
  };
  Prepared prepared(const Call& call);
  bool enter(std::uint64_t operation);
  static bool settle(CollectiveTask& task, const Call& call, Prepared prepared);

  const std::uint64_t serial_;
  const std::string name_;
  const Config config_;
  const std::shared_ptr<Context> context_;
  Observability observability_;
  Members members_;
  OperationOrder order_;
  const std::shared_ptr<QueuedTasks> queued_ = std::make_shared<QueuedTasks>();
  PeerFailures failures_;
  RateVersions rates_;
  AuditedFlows flows_{members_};
  std::uint64_t calibration_ns_ = 0;
  std::unique_ptr<LaunchCache> launches_;
  std::unique_ptr<PointToPoint> transfers_;
  // Calls that have no shape yet. While there are any, the thread that drives binds shapes, and else the calling thread.
  std::atomic<std::uint64_t> late_calls_{0};
  Call last_call_;
  BoundShape* last_shape_ = nullptr;  // of last_call_
};

}  // namespace seto
