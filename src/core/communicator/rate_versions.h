#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "src/core/choice/cost_model.h"
#include "src/core/choice/rate_messages.h"
#include "src/core/choice/version_switch.h"
#include "src/core/communicator/members.h"
#include "src/core/communicator/operation_order.h"
#include "src/core/communicator/peer_failures.h"
#include "src/core/connect/member_messages.h"

namespace seto {

// Replaces what TCP measures, for tests on one host: all sites are this far from each other, and this end sends so fast.
struct PretendedLinks {
  // Null in every process that does not test. Set before any communicator is made.
  static std::shared_ptr<const PretendedLinks>& of_process();

  double round_trip_seconds = 0;
  std::function<std::uint64_t(Rank to)> bytes_per_second;  // it is measured at every look
};

// The rates of links between sites while a job runs, in versions on which all ranks of a communicator agree (decision 19). A
// communicator without far links has version 0 for ever and sends nothing.
class RateVersions final {
 public:
  struct Parts {
    const Members& members;
    const OperationOrder& order;
    Context& context;
    PeerFailures& failures;
  };
  explicit RateVersions(const Parts& parts) : parts_(parts) {}
  RateVersions(const RateVersions&) = delete;
  RateVersions& operator=(const RateVersions&) = delete;

  // Before a round of the bootstrap. Does nothing where rates cannot change: no far sites, or their rates are stated.
  Status open(const Config& config);
  // When the constants are agreed. `constants`: without the links between sites.
  void start(const CostModel& constants, const std::optional<InheritedRates>& inherited);
  // Ends the messages, when no call is under way any more. Before the members end.
  void stop();

  // For the calling thread: the shape of the last call may be used for this operation.
  [[nodiscard]] bool keeps(std::uint64_t operation) const { return operation <= limit_.load(std::memory_order_relaxed); }

  // The input of choice for an operation that is bound now.
  struct Known {
    std::uint64_t version = 0;
    CostModel costs;
  };
  // Operations are entered in order, by one thread at a time. Absent: the operation waits for an agreement, whose end wakes the
  // context. Only the calling thread, and only while no task waits, lets keeps() be true again.
  std::optional<Known> enter(std::uint64_t operation, bool on_calling_thread);

  // By the holder of the token, after a long operation: reports what the links have carried.
  void look();

  // Any thread: what the latest operation was bound with.
  [[nodiscard]] Known known() const;
  [[nodiscard]] Sites sites() const;
  [[nodiscard]] InheritedRates for_part(const std::vector<Rank>& part) const;

 private:
  struct FarRank {
    Rank rank = 0;
    std::uint32_t site = 0;
  };
  struct Told {
    SiteLinkRate rate;
    std::uint64_t at_ns = 0;
    std::uint64_t seen_ns = 0;
  };

  void receive(Rank from, std::string_view bytes);
  // The rate at which this rank sends to another one, or to all of a site.
  struct Sending {
    double bytes_per_second = 0;
    bool is_bound = true;  // the link was not full of late: it carries this at least
    double round_trip_s = 0;
    std::uint64_t seen_ns = 0;
  };
  [[nodiscard]] Sending sending_to(Rank rank, std::uint64_t now_ns) const;
  [[nodiscard]] std::map<std::uint32_t, Sending> sending_to_sites(std::uint64_t now_ns) const;
  struct News {
    SiteLinkRates rates;
    SiteLinkRates bounds;
  };
  [[nodiscard]] News worth_telling(std::uint64_t now_ns);
  // A rank reports links that begin at its own site.
  [[nodiscard]] bool are_rates_of(Rank rank, const SiteLinkRates& rates) const;
  // The caller of each of these holds the mutex.
  void take_reports(Rank from, const SiteLinkRates& rates, bool are_bounds, std::uint64_t now_ns);
  void propose_if_changed(std::uint64_t now_ns);
  std::uint64_t promise();
  void take_answer(Rank from, std::uint64_t version, std::uint64_t issued);
  bool commit(const RateMessage& message);
  void use_version(std::uint64_t version);
  void send_to_others(const RateMessage& message) const;

  const Parts parts_;
  const std::shared_ptr<const PretendedLinks> pretended_ = PretendedLinks::of_process();
  std::vector<FarRank> far_;            // ranks of other sites over far links
  std::map<std::uint32_t, Told> told_;  // token held: by site, what rank 0 was told last
  std::atomic<std::uint64_t> limit_{VersionSwitch::kAlways};

  mutable std::mutex mutex_;
  bool started_ = false;
  CostModel constants_;
  CostModel costs_;            // of the version in use
  std::uint64_t version_ = 0;  // in use
  VersionSwitch switch_{0};
  std::map<std::uint64_t, SiteLinkRates> rates_;  // by version, from the one in use
  // On rank 0.
  std::optional<RateReports> reports_;
  std::optional<VersionVote> vote_;
  SiteLinkRates proposed_;

  std::unique_ptr<MemberMessages> messages_;  // last: its handler uses the others
};

}  // namespace seto
