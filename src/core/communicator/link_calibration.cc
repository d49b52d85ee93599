#include "src/core/communicator/link_calibration.h"

#include <algorithm>
#include <bitset>
#include <chrono>
#include <vector>

#include "src/base/log.h"
#include "src/core/choice/kept_constants.h"
#include "src/core/choice/settings_agreement.h"
#include "src/core/communicator/cache_probe.h"
#include "src/core/communicator/link_probe.h"

namespace seto {
namespace {

// Shared memory for the slots of the measurement. If a rank may use less, no rank measures.
constexpr std::uint64_t kMemoryNeeded = 4 << 20;

// How a rank gets its cost model: the first letter of its statement. The rest of the statement is the cost model. `kept`: it
// leads the measurement of nodes, and earlier jobs have measured this machine often enough.
enum class Wish : char { fixed = 'f', known = 'k', kept = 'p', unknown = 'u', unable = 'n' };

std::string statement_of(Wish wish, const CostModel& costs) {
  std::string statement{static_cast<char>(wish)};
  statement.append(name_of(costs.source)).append("\n").append(costs_text(costs));
  return statement;
}

// The kernel has measured the round trip of a far link between sites when it was connected.
bool needs_exchanges(const Communicator& communicator, int tier) {
  return communicator.tiers().kind(tier) != TierKind::world || !CostModel::knows_link(communicator.sites());
}

using TierSet = std::bitset<kMostTiers>;

TierSet tiers_to_measure(const Communicator& communicator) {
  TierSet tiers;
  for (int tier = 0; tier < communicator.tiers().count(); ++tier)
    tiers.set(static_cast<std::size_t>(tier), needs_exchanges(communicator, tier));
  return tiers;
}

bool knows_all(const CostModel& known, const Communicator& communicator) {
  if (known.source != CostSource::measured) return false;
  for (int tier = 0; tier < communicator.tiers().count(); ++tier)
    if (needs_exchanges(communicator, tier) && !known.has_measured(communicator.tiers().kind(tier))) return false;
  return true;
}

bool is_node(const Communicator& communicator, int tier) { return communicator.tiers().kind(tier) == TierKind::node; }

// The rank whose figures of a node all ranks use; none where no ranks share a node. A node is the innermost tier.
std::optional<Rank> leader_on_node(const Communicator& communicator) {
  const Tiers& tiers = communicator.tiers();
  return tiers.count() > 0 && is_node(communicator, 0) ? std::optional(tiers.ends(0).first) : std::nullopt;
}

MeasuredMachine machine_of(const Communicator& communicator) {
  return MeasuredMachine::here(usable_cores(), communicator.ranks_a_core());
}

// Neither measured nor kept: the kernel says it at once.
TierCost with_last_level(TierCost node) {
  if (const double bytes = last_level_cache_bytes(); bytes > 0) node.last_level_bytes = bytes;
  return node;
}

// The file of the user wins over the figures that this process remembers.
std::optional<KeptConstants> kept_of(const MeasuredMachine& machine) {
  std::optional<KeptConstants> kept = KeptFiles::of_user().read(machine);
  return kept ? kept : remembered_constants(machine);
}

// The constants of a node that the leader takes from earlier jobs instead of measuring. The other ranks need not look.
std::optional<TierCost> kept_node(const Communicator& communicator) {
  if (communicator.config().calibrate != Calibrate::automatic || leader_on_node(communicator) != communicator.rank())
    return std::nullopt;
  const std::optional<KeptConstants> kept = kept_of(machine_of(communicator));
  return kept && kept->suffices() ? std::optional(kept->node) : std::nullopt;
}

// Adds a measurement to those of earlier jobs, and returns what is known then. One that was not believed adds nothing.
TierCost keep_node(const Communicator& communicator, const TierCost& measured) {
  CostModel found;
  found.node = measured;
  if (found.has_shipped(TierKind::node)) return measured;
  const MeasuredMachine machine = machine_of(communicator);
  KeptConstants kept;
  if (communicator.config().calibrate == Calibrate::automatic) kept = kept_of(machine).value_or(kept);
  kept.take(measured);
  if (const Status written = KeptFiles::of_user().write(machine, kept); !written.ok()) {
    SETO_LOG(debug, "only this process keeps the constants of this machine: %s", std::string(written.text()).c_str());
    remember_constants(machine, kept);
  }
  return kept.node;
}

Result<std::string> own_statement(const Communicator& communicator) {
  const Config& config = communicator.config();
  if (!config.tuning_file.empty()) {
    SETO_ASSIGN(const CostModel costs, read_costs(config.tuning_file));
    return statement_of(Wish::fixed, costs);
  }
  if (config.deterministic || config.calibrate == Calibrate::off || communicator.ranks() == 1)
    return statement_of(Wish::fixed, {});
  const CostModel known = communicator.context()->costs().value_or(CostModel());
  if (knows_all(known, communicator) && config.calibrate == Calibrate::automatic) return statement_of(Wish::known, known);
  if (config.shared_memory_limit < kMemoryNeeded) return statement_of(Wish::unable, {});
  if (const std::optional<TierCost> node = kept_node(communicator)) {
    CostModel costs;
    costs.node = with_last_level(*node);
    return statement_of(Wish::kept, costs);
  }
  return statement_of(Wish::unknown, {});
}

// Sends to and receives from the partner, each in a call of its own. The leader decides the order.
class Line final {
 public:
  Line(Communicator& communicator, Rank peer, Deadline until) : communicator_(communicator), peer_(peer), until_(until) {}

  Status send(const void* data, std::uint64_t bytes) {
    return move({LocalTransfer::Direction::send, peer_, data, nullptr, bytes, DataType::uint8, {}});
  }
  Status receive(void* data, std::uint64_t bytes) {
    return move({LocalTransfer::Direction::receive, peer_, nullptr, data, bytes, DataType::uint8, {}});
  }

 private:
  Status move(const Transfer& transfer) {
    TransferCall call;
    call.transfers = {&transfer, 1};
    call.until = until_;
    return communicator_.run(call);
  }

  Communicator& communicator_;
  Rank peer_;
  Deadline until_;
};

// The leader announces each exchange by the bytes that it sends next, this announcement included, and by how many further
// announcements follow without an answer. 0 ends the measurement.
using Order = std::uint64_t;
constexpr Order kEnd = 0;
constexpr Order kOneMore = Order{1} << 32;

Status follow(Line& line) {
  std::vector<std::byte> target(kProbeBytes);
  for (Order order = 1; order != kEnd;) {
    SETO_TRY(line.receive(&order, sizeof order));
    const Order bytes = order % kOneMore;
    if (bytes > kProbeBytes || order / kOneMore >= kProbeBurst)
      return failure(Code::internal, "a calibration asks for %llu messages of %llu bytes",
                     static_cast<unsigned long long>(order / kOneMore + 1), static_cast<unsigned long long>(bytes));
    if (bytes > sizeof order) SETO_TRY(line.receive(target.data(), bytes));
    for (Order left = order / kOneMore; left > 0; --left) SETO_TRY(line.receive(&order, sizeof order));
    SETO_TRY(line.send(&order, sizeof order));
  }
  return {};
}

Result<TierCost> lead(Line& line, TierKind tier, bool known_near) {
  const std::vector<std::byte> source(kProbeBytes);
  ProbeActions actions;
  actions.exchange = [&](std::uint64_t bytes) -> Status {
    Order order = std::max<std::uint64_t>(bytes, sizeof(Order));
    SETO_TRY(line.send(&order, sizeof order));
    if (order > sizeof order) SETO_TRY(line.send(source.data(), order));
    return line.receive(&order, sizeof order);
  };
  actions.burst = [&](int messages) -> Status {
    Order order = sizeof(Order) + static_cast<Order>(messages - 1) * kOneMore;
    for (int sent = 0; sent < messages; ++sent) SETO_TRY(line.send(&order, sizeof order));
    return line.receive(&order, sizeof order);
  };
  actions.seconds = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  if (tier == TierKind::node) actions.pass = SumPass();
  SETO_ASSIGN(const TierCost cost, probe_link(actions, tier, known_near));
  Order end = kEnd;
  SETO_TRY(line.send(&end, sizeof end));
  SETO_TRY(line.receive(&end, sizeof end));
  return cost;
}

// Two ranks measure each tier. A rank takes part in one measurement at a time, and all ranks go through the tiers from the
// innermost to the outermost.
Result<CostModel> measure(Communicator& communicator, const TierSet& needed, Deadline until) {
  CostModel costs;
  costs.source = CostSource::measured;
  const Tiers& tiers = communicator.tiers();
  for (int tier = 0; tier < tiers.count(); ++tier) {
    if (!needed.test(static_cast<std::size_t>(tier))) continue;
    const auto [leader, follower] = tiers.ends(tier);
    if (communicator.rank() == leader) {
      Line line(communicator, follower, until);
      const TierKind kind = tiers.kind(tier);
      SETO_ASSIGN(costs.of(kind), lead(line, kind, CostModel::knows_near_link(communicator.sites(), kind)));
      if (kind == TierKind::node) costs.node = with_last_level(keep_node(communicator, costs.node));
    } else if (communicator.rank() == follower) {
      Line line(communicator, leader, until);
      SETO_TRY(follow(line));
    }
  }
  return costs;
}

Status disagreement(Rank rank, Rank other) {
  return failure(
      Code::invalid_usage,
      "rank %d and rank %d want different constants of choice: SETO_TUNING_FILE and SETO_CALIBRATE must be the same on all ranks",
      rank, other);
}

Wish wish_of(const std::string& statement) { return statement.empty() ? Wish::unknown : static_cast<Wish>(statement.front()); }

// A rank sends its settings, this separator, and its statement.
constexpr char kStatementFollows = '\0';

// Removes the settings from the messages of all ranks and compares them. An empty message means that the rank failed to make one.
Status take_settings(std::vector<std::string>& said) {
  std::vector<std::string> settings;
  for (std::size_t rank = 0; rank < said.size(); ++rank) {
    if (said[rank].empty()) return failure(Code::remote_error, "rank %zu: its SETO_TUNING_FILE could not be read", rank);
    const std::size_t end = said[rank].find(kStatementFollows);
    if (end == std::string::npos) return failure(Code::remote_error, "rank %zu: its settings are cut short", rank);
    settings.push_back(said[rank].substr(0, end));
    said[rank].erase(0, end + 1);
  }
  return check_same(settings);
}

// The cost model that all statements agree on, or none if it must be measured.
Result<std::optional<CostModel>> common(const std::vector<std::string>& statements) {
  bool equal = true;
  for (std::size_t rank = 1; rank < statements.size(); ++rank) {
    const bool fixed = wish_of(statements[0]) == Wish::fixed;
    if (fixed != (wish_of(statements[rank]) == Wish::fixed) || (fixed && statements[rank] != statements[0]))
      return disagreement(0, static_cast<Rank>(rank));
    equal = equal && statements[rank] == statements[0];
  }
  const auto is_unable = [](const std::string& statement) { return wish_of(statement) == Wish::unable; };
  if (std::any_of(statements.begin(), statements.end(), is_unable)) return std::optional<CostModel>(std::in_place);
  if (!equal || wish_of(statements[0]) == Wish::unknown) return std::optional<CostModel>();
  const std::string_view statement(statements[0]);
  const auto end = statement.find('\n');
  CostSource source = CostSource::measured;
  for (const CostSource one : {CostSource::shipped, CostSource::file})
    if (statement.substr(1, end - 1) == name_of(one)) source = one;
  SETO_ASSIGN(const CostModel costs, parse_costs(statement.substr(end + 1), source));
  return std::optional<CostModel>(costs);
}

void take_tier(CostModel& costs, const CostModel& from, TierKind kind) {
  costs.of(kind) = from.of(kind);
  costs.measured = static_cast<std::uint8_t>(costs.measured | 1U << static_cast<unsigned>(kind));
}

// True: the statement of the leader has the constants of a node, and all ranks use them.
Result<bool> take_kept(CostModel& costs, const std::string& statement) {
  if (wish_of(statement) != Wish::kept) return false;
  SETO_ASSIGN(const CostModel theirs, parse_costs(statement.substr(statement.find('\n') + 1), CostSource::measured));
  take_tier(costs, theirs, TierKind::node);
  return true;
}

// The cost of each tier is that measured by its leader. `figures`: of all ranks.
Status take_figures(CostModel& costs, const Communicator& communicator, const TierSet& measured,
                    const std::vector<std::string>& figures) {
  for (int tier = 0; tier < communicator.tiers().count(); ++tier) {
    if (!measured.test(static_cast<std::size_t>(tier))) continue;
    const auto leader = static_cast<std::size_t>(communicator.tiers().ends(tier).first);
    if (figures[leader].empty()) return failure(Code::remote_error, "rank %zu could not measure its links", leader);
    SETO_ASSIGN(const CostModel theirs, parse_costs(figures[leader], CostSource::measured));
    take_tier(costs, theirs, communicator.tiers().kind(tier));
  }
  return {};
}

// The constants without the links between sites.
Result<CostModel> agree_on_constants(Communicator& communicator, Bootstrap& bootstrap, Deadline until) {
  // A rank whose file is wrong still takes part in the round, since the others wait for it.
  Result<std::string> own = own_statement(communicator);
  std::string mine;
  if (own.ok()) mine = planning_settings(communicator.config()) + kStatementFollows + own.value();
  SETO_ASSIGN(std::vector<std::string> statements, bootstrap.all_gather(std::move(mine), until));
  if (!own.ok()) return own.status();
  SETO_TRY(take_settings(statements));
  SETO_ASSIGN(const std::optional<CostModel> agreed, common(statements));
  if (agreed) return *agreed;
  CostModel costs;
  costs.source = CostSource::measured;
  TierSet needed = tiers_to_measure(communicator);
  if (needed.none()) return costs;
  if (const std::optional<Rank> leader = leader_on_node(communicator)) {
    SETO_ASSIGN(const bool is_kept, take_kept(costs, statements[static_cast<std::size_t>(*leader)]));
    if (is_kept) needed.reset(0);
  }
  if (needed.any()) {
    const Result<CostModel> measured = measure(communicator, needed, until);
    const Result<std::vector<std::string>> gathered =
        bootstrap.all_gather(measured.ok() ? costs_text(measured.value()) : "", until);
    if (!measured.ok()) return measured.status();
    SETO_TRY(gathered.status());
    SETO_TRY(take_figures(costs, communicator, needed, gathered.value()));
  }
  communicator.context()->remember(costs);
  return costs;
}

}  // namespace

Result<CostModel> agree_on_costs(Communicator& communicator, Bootstrap& bootstrap, Deadline until) {
  SETO_ASSIGN(CostModel costs, agree_on_constants(communicator, bootstrap, until));
  costs.use(communicator.sites());
  return costs;
}

}  // namespace seto
