#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/result.h"
#include "src/core/choice/cost_model.h"
#include "src/core/connect/connection_cache.h"
#include "src/core/connect/context_transports.h"
#include "src/core/progress/progress.h"

namespace seto {

// The resources that the communicators of one rank in one process share: transports, connections, the progress token. Any thread.
class Context final : public Sleeper {
 public:
  static Result<std::shared_ptr<Context>> create(const Config& config);
  ~Context() override;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] ContextId id() const { return id_; }
  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] Progress& progress() { return *progress_; }
  [[nodiscard]] ContextTransports& transports() { return *transports_; }

  // ConnectionCache, under a lock.
  [[nodiscard]] KnownConnections known(const std::string& host);
  void keep(const Connections& used, const std::string& host);

  // Holds what peers may still read. Checked whenever a communicator is made or destroyed.
  class Cleanup {
   public:
    virtual ~Cleanup() = default;
    // Returns true if no peer needs the object any more; then it is destroyed.
    [[nodiscard]] virtual bool done() = 0;
  };
  void clean_up_later(std::unique_ptr<Cleanup> cleanup);
  void run_cleanups();

  // The cost model that an earlier communicator measured.
  [[nodiscard]] std::optional<CostModel> costs() const;
  void remember(const CostModel& costs);

  // The label of the site that the last attempt which had to look found for this context with that limit
  // (SETO_SITE_ROUND_TRIP_US); empty: none did.
  [[nodiscard]] std::string found_site(std::uint64_t limit_us) const;
  void remember_site(const std::string& label, std::uint64_t limit_us);

  // Turns spinning off if ranks outnumber cores: an 8-byte call took 3 times as long with spinning.
  void expect_ranks_per_core(double ranks_per_core);

  // Sleeper
  void arm() override;
  void disarm() override;
  void await_wakeup(int milliseconds) override;
  void wake() override;
  Moved pump() override;
  [[nodiscard]] bool pumps_now() const override;

 private:
  explicit Context(Config config) : config_(std::move(config)) {}

  Config config_;
  ContextId id_ = 0;
  std::shared_ptr<const Wakeup> wakeup_;
  mutable std::mutex mutex_;
  std::optional<CostModel> costs_;
  std::string found_site_;
  std::uint64_t found_site_limit_us_ = 0;
  double ranks_per_core_ = 1;
  ConnectionCache connection_cache_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<ContextTransports> transports_;
  std::vector<std::unique_ptr<Cleanup>> cleanups_;  // destroyed before the transports, which then send their last output
};

// The number of cores that this process may run on.
int usable_cores();

// How often a wait polls before it gives up its core, by the shipped constants.
std::uint32_t default_spins(double ranks_per_core);

}  // namespace seto
