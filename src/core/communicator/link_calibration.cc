#include "src/core/communicator/link_calibration.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "src/core/choice/settings_agreement.h"

namespace seto {
namespace {

// One pair takes a few milliseconds on an idle machine; a busy one may not take longer than this.
constexpr auto kBudget = std::chrono::milliseconds(16);
constexpr int kMostExchanges = 400;
constexpr int kExchangesABatch = 20;
constexpr int kMostCopies = 12;
constexpr std::uint64_t kCopyBytes = 512 << 10;  // fits a second-level cache together with its slots

// Of shared memory, for its slots: a rank that may not have as much does without.
constexpr std::uint64_t kMemoryNeeded = 4 << 20;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// What a rank says it wants, first letter of its statement; the rest is constants.
enum class Wish : char { fixed = 'f', known = 'k', unknown = 'u', unable = 'n' };

std::string statement_of(Wish wish, const CostModel& costs) {
  std::string statement{static_cast<char>(wish)};
  statement.append(name_of(costs.source)).append("\n").append(costs_text(costs));
  return statement;
}

Result<std::string> own_statement(const Communicator& communicator) {
  const Config& config = communicator.config();
  if (!config.tuning_file.empty()) {
    SETO_ASSIGN(const CostModel costs, read_costs(config.tuning_file));
    return statement_of(Wish::fixed, costs);
  }
  if (config.deterministic || config.calibrate == Calibrate::off || communicator.ranks() == 1)
    return statement_of(Wish::fixed, {});
  const std::optional<CostModel> known = communicator.context()->costs();
  if (known && known->has_measured(communicator.tiers()) && config.calibrate == Calibrate::automatic)
    return statement_of(Wish::known, *known);
  return statement_of(config.shared_memory_limit < kMemoryNeeded ? Wish::unable : Wish::unknown, {});
}

// Sends to and receives from the partner, each of its own call, so that both ends agree on their order by who leads.
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

// What the leader says before each exchange: a number of bytes that it sends next, 0 for the end.
using Order = std::uint64_t;
constexpr Order kEnd = 0;

Status follow(Line& line) {
  std::vector<std::byte> target(kCopyBytes);
  for (Order order = 1; order != kEnd;) {
    SETO_TRY(line.receive(&order, sizeof order));
    if (order > kCopyBytes)
      return failure(Code::internal, "a calibration asks for %llu bytes", static_cast<unsigned long long>(order));
    if (order > sizeof order) SETO_TRY(line.receive(target.data(), order));
    SETO_TRY(line.send(&order, sizeof order));
  }
  return {};
}

// The shortest of several batches: whatever disturbs makes it longer. A batch that is cut short by the budget counts.
Result<double> exchange_seconds(Line& line, Clock::time_point start) {
  double best = INFINITY;
  for (int done = 0; done < kMostExchanges && (done == 0 || Clock::now() - start < kBudget / 2); done += kExchangesABatch) {
    const Clock::time_point batch = Clock::now();
    for (int i = 0; i < kExchangesABatch; ++i) {
      Order order = sizeof(Order);
      SETO_TRY(line.send(&order, sizeof order));
      SETO_TRY(line.receive(&order, sizeof order));
    }
    best = std::min(best, seconds_since(batch) / kExchangesABatch);
  }
  return best;
}

Result<TierCost> lead(Line& line) {
  const Clock::time_point start = Clock::now();
  SETO_ASSIGN(const double exchange, exchange_seconds(line, start));
  const std::vector<std::byte> source(kCopyBytes);
  double best = INFINITY;
  for (int i = 0; i < kMostCopies && (i < 2 || Clock::now() - start < kBudget); ++i) {
    Order order = kCopyBytes;
    const Clock::time_point copy = Clock::now();
    SETO_TRY(line.send(&order, sizeof order));
    SETO_TRY(line.send(source.data(), order));
    SETO_TRY(line.receive(&order, sizeof order));
    best = std::min(best, seconds_since(copy));
  }
  Order end = kEnd;
  SETO_TRY(line.send(&end, sizeof end));
  SETO_TRY(line.receive(&end, sizeof end));
  // The orders around a copy are an exchange; what is left of a clock's grain must not make a rate of nothing.
  const double moving = std::max(best - exchange, best / 8);
  return TierCost{exchange / 2, static_cast<double>(kCopyBytes) / moving};
}

// The first two members of rank 0's group at each tier measure it. Every rank takes part in at most one measurement at a time,
// and tiers go from the innermost out on all.
Result<CostModel> measure(Communicator& communicator, Deadline until) {
  CostModel costs;
  costs.source = CostSource::measured;
  const Tiers& tiers = communicator.tiers();
  for (int tier = 0; tier < tiers.count(); ++tier) {
    const std::vector<Rank> group = tiers.group(0, tier);
    const Rank leader = group[0];
    const Rank follower = group[1];
    if (communicator.rank() == leader) {
      Line line(communicator, follower, until);
      SETO_ASSIGN(costs.of(tiers.kind(tier)), lead(line));
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

// What a rank says: its settings, and behind them its statement.
constexpr char kStatementFollows = '\0';

// Takes the settings off the front of what all said. A rank without a statement could not make one.
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

// Nothing when they must be measured.
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

}  // namespace

Result<CostModel> agree_on_costs(Communicator& communicator, Bootstrap& bootstrap, Deadline until) {
  // A rank whose file is wrong still answers, or the others would wait for it.
  Result<std::string> own = own_statement(communicator);
  std::string mine;
  if (own.ok()) mine = planning_settings(communicator.config()) + kStatementFollows + own.value();
  SETO_ASSIGN(std::vector<std::string> statements, bootstrap.all_gather(std::move(mine), until));
  if (!own.ok()) return own.status();
  SETO_TRY(take_settings(statements));
  SETO_ASSIGN(const std::optional<CostModel> agreed, common(statements));
  if (agreed) return *agreed;
  const Result<CostModel> measured = measure(communicator, until);
  const Result<std::vector<std::string>> gathered =
      bootstrap.all_gather(measured.ok() ? costs_text(measured.value()) : "", until);
  if (!measured.ok()) return measured.status();
  if (!gathered.ok()) return gathered.status();
  const std::vector<std::string>& figures = gathered.value();
  // Each tier's constants are those of its leader.
  CostModel costs;
  costs.source = CostSource::measured;
  for (int tier = 0; tier < communicator.tiers().count(); ++tier) {
    const auto leader = static_cast<std::size_t>(communicator.tiers().group(0, tier)[0]);
    if (figures[leader].empty()) return failure(Code::remote_error, "rank %zu could not measure its links", leader);
    SETO_ASSIGN(const CostModel theirs, parse_costs(figures[leader], CostSource::measured));
    const TierKind kind = communicator.tiers().kind(tier);
    costs.of(kind) = theirs.of(kind);
    costs.measured = static_cast<std::uint8_t>(costs.measured | 1U << static_cast<unsigned>(kind));
  }
  communicator.context()->remember(costs);
  return costs;
}

}  // namespace seto
