#include "src/core/communicator.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/core/collective_task.h"
#include "src/core/drain_task.h"
#include "src/core/transfer_task.h"
#include "src/topology/host_identity.h"
#include "transports/slots/slot_circle.h"

namespace seto {
namespace {

constexpr std::uint32_t kFewestPorts = 16;

// A ring uses two channels a hop between neighbours; nothing uses more.
std::uint32_t ports_for(int ranks) { return std::max(kFewestPorts, std::bit_ceil(static_cast<std::uint32_t>(2 * ranks))); }

Status from_peer(Rank rank, const Status& reason) {
  return {reason.code(), "rank " + std::to_string(rank) + ": " + std::string(reason.text())};
}

// The reason of a rejection travels in the words of its note, as far as there is room.
void put_reason(Note& note, std::string_view reason) {
  if (reason.size() > sizeof note.words) reason = reason.substr(0, std::min(reason.find(':'), sizeof note.words));
  std::memcpy(note.words, reason.data(), reason.size());
}

std::string reason_of(const Note& note) {
  char text[sizeof note.words];
  std::memcpy(text, note.words, sizeof text);
  std::string reason(text, strnlen(text, sizeof text));
  for (char& letter : reason)
    if (letter < ' ' || letter > '~') letter = '?';  // garbage, or a text that was cut
  return reason;
}

// The note may be garbage.
std::string text_of(const Note& note) {
  if ((note.words[0] & 0xff) >= kCollectiveCount || (note.words[0] >> 8 & 0xff) >= kDataTypeCount || (note.words[0] >> 16 & 0xff) >= kReduceOpCount)
    return "what is no collective: its note is garbage";
  return describe(static_cast<Collective>(note.words[0] & 0xff), note.words[1], static_cast<DataType>(note.words[0] >> 8 & 0xff),
                  static_cast<ReduceOp>(note.words[0] >> 16 & 0xff), static_cast<Rank>(note.words[2]));
}

}  // namespace

// What a rank says of itself when a communicator is made.
struct Introduction {
  std::string host;
  std::string site;
  std::string process;
  ContextId context = 0;
  std::uint64_t board = 0;
  int cores = 1;  // that it may run on

  [[nodiscard]] std::string encoded() const {
    return host + '\0' + site + '\0' + std::to_string(context) + '\0' + std::to_string(board) + '\0' +
           std::to_string(cores) + '\0' + process;
  }
  static Result<Introduction> decoded(const std::string& text) {
    Introduction result;
    std::string fields[5];
    std::size_t at = 0;
    for (std::string& field : fields) {
      const std::size_t end = text.find('\0', at);
      if (end == std::string::npos) return failure(Code::remote_error, "its introduction is cut short");
      field = text.substr(at, end - at);
      at = end + 1;
    }
    result.host = fields[0];
    result.site = fields[1];
    result.context = std::strtoull(fields[2].c_str(), nullptr, 10);
    result.board = std::strtoull(fields[3].c_str(), nullptr, 10);
    result.cores = std::max(1, std::atoi(fields[4].c_str()));
    result.process = text.substr(at);
    return result;
  }
};

namespace {

// Ranks a core on the most crowded node, from what all ranks said, so that all get the same.
double crowding(const std::vector<Introduction>& all) {
  double most = 1;
  for (const Introduction& one : all) {
    const auto ranks = std::count_if(all.begin(), all.end(), [&](const Introduction& other) { return other.host == one.host; });
    most = std::max(most, static_cast<double>(ranks) / one.cores);
  }
  return most;
}

// A code, then what happened; empty if all is well.
std::string outcome_text(const Status& made) {
  return made.ok() ? std::string() : std::string(1, static_cast<char>(made.code())) + std::string(made.text());
}

// Who waited in vain waited for somebody with a reason: that one is told, wherever it came from.
Status common_outcome(const Status& own, const std::vector<std::string>& outcomes) {
  if (!own.ok() && own.code() != Code::timeout) return own;
  Status late = own;
  for (std::size_t peer = 0; peer < outcomes.size(); ++peer) {
    if (outcomes[peer].empty()) continue;
    Status theirs = failure(Code::remote_error, "rank %zu could not connect: %s", peer, outcomes[peer].c_str() + 1);
    if (outcomes[peer].front() != static_cast<char>(Code::timeout)) return theirs;
    if (late.ok()) late = std::move(theirs);
  }
  return late;
}

}  // namespace

class Communicator::Bells final : public slots::Doorbell {
 public:
  explicit Bells(const std::vector<Member>& members) : members_(members) {}
  void ring(std::uint32_t member) override { members_[member].connection->ring(); }

 private:
  const std::vector<Member>& members_;
};

Result<std::unique_ptr<Communicator>> Communicator::create(Bootstrap& bootstrap, const CommunicatorOptions& options) {
  std::unique_ptr<Communicator> communicator(new Communicator());
  communicator->rank_ = bootstrap.rank();
  communicator->ranks_ = bootstrap.size();
  communicator->name_ = options.name;
  communicator->config_ = options.config;
  communicator->context_ = options.context;
  if (communicator->context_ == nullptr) {
    SETO_ASSIGN(communicator->context_, Context::create(options.config));
  }
  SETO_TRY(communicator->meet(bootstrap));
  communicator->launches_ = std::make_unique<LaunchCache>(
      LaunchCache::Setup{communicator->rank_, communicator->ranks_, &communicator->tiers_, &communicator->costs_, &communicator->config_,
                         communicator->circle_.get(), communicator->crowding_});
  communicator->transfers_ = std::make_unique<Transfers>(communicator->rank_, communicator->ranks_, *communicator->circle_);
  return communicator;
}

Status Communicator::meet(Bootstrap& bootstrap) {
  const Deadline until = Deadline::after_ms(config_.init_timeout_ms);
  const std::uint32_t ports = ports_for(ranks_);
  SETO_ASSIGN(board_, context_->pool().reserve(slots::BoardLayout(static_cast<std::uint32_t>(ranks_), ports).size()));
  SETO_ASSIGN(MeetingPoint* const meetings, MeetingPoint::of_process());
  Introduction own;
  SETO_ASSIGN(own.host, host_identity(config_.host_id));
  own.site = config_.site_id;
  own.process = meetings->address();
  own.context = context_->id();
  own.board = board_;
  own.cores = usable_cores();
  SETO_ASSIGN(const std::vector<std::string> texts, bootstrap.all_gather(own.encoded(), until));
  std::vector<Introduction> all;
  std::vector<Home> homes;
  int on_node = 0;
  for (Rank peer = 0; peer < ranks_; ++peer) {
    Result<Introduction> introduction = Introduction::decoded(texts[static_cast<std::size_t>(peer)]);
    if (!introduction.ok()) return from_peer(peer, introduction.status());
    all.push_back(std::move(introduction).value());
    const auto same = [&](auto&& field) {
      return static_cast<std::uint32_t>(
          std::find_if(all.begin(), all.end(), [&](const Introduction& other) { return field(other) == field(all.back()); }) - all.begin());
    };
    homes.push_back({same([](const Introduction& i) { return i.host; }), same([](const Introduction& i) { return i.site; })});
    if (all.back().host == own.host) ++on_node;
    if (peer != rank_ && all.back().process == own.process && all.back().context == own.context)
      return failure(Code::invalid_usage, "rank %d joins the context of rank %d: ranks of one process need one each", rank_, peer);
  }
  tiers_ = Tiers::of(homes);
  crowding_ = crowding(all);
  context_->expect_ranks_on_node(on_node);
  Status made = make_circle(all, ports, Deadline::after_ms(static_cast<std::uint64_t>(until.remaining_ms()) / 10 * 9));
  // A second round, so that nobody goes on alone: whoever could not connect tells all. It needs time that is left after the
  // deadline of those who wait for one that gave up.
  const Result<std::vector<std::string>> gathered = bootstrap.all_gather(outcome_text(made), until);
  if (!gathered.ok()) return made.ok() ? gathered.status() : made;
  return common_outcome(made, gathered.value());
}

Status Communicator::make_circle(const std::vector<Introduction>& all, std::uint32_t ports, Deadline until) {
  slots::CircleSetup setup;
  setup.own = static_cast<std::uint32_t>(rank_);
  setup.ports = ports;
  setup.pool = &context_->pool();
  members_.resize(all.size());
  for (Rank peer = 0; peer < ranks_; ++peer) {
    const Introduction& introduction = all[static_cast<std::size_t>(peer)];
    slots::Member member{context_->segment().segment.data(), context_->segment().segment.size(), introduction.board, nullptr};
    if (peer != rank_) {
      if (introduction.host != all[static_cast<std::size_t>(rank_)].host)
        return failure(Code::invalid_usage, "rank %d is on another host; transports between hosts are not in this version", peer);
      Result<std::shared_ptr<Connection>> connection = context_->connect({introduction.process, introduction.context}, until);
      if (!connection.ok()) return from_peer(peer, connection.status());
      members_[static_cast<std::size_t>(peer)].connection = std::move(connection).value();
      const Connection& opened = *members_[static_cast<std::size_t>(peer)].connection;
      member.segment = opened.memory();
      member.segment_size = opened.size();
      member.armed = &reinterpret_cast<SegmentHead*>(opened.memory())->armed;
    }
    setup.members.push_back(member);
  }
  bells_ = std::make_unique<Bells>(members_);
  setup.doorbell = bells_.get();
  SETO_ASSIGN(circle_, slots::SlotCircle::create(std::move(setup)));
  return {};
}

// What a slower peer may still look at, in a context that others go on using: the lines and slots of this rank's last operations.
class Communicator::Remains final : public Context::Retired {
 public:
  Remains(std::vector<Member> members, std::unique_ptr<Circle> circle, std::unique_ptr<Transfers> transfers, std::uint64_t issued)
      : members_(std::move(members)), circle_(std::move(circle)), transfers_(std::move(transfers)), issued_(issued) {}

  [[nodiscard]] bool over() const override {
    for (std::uint32_t peer = 0; peer < members_.size(); ++peer) {
      const std::shared_ptr<Connection>& connection = members_[peer].connection;
      const bool gone = connection == nullptr || connection->dead() || circle_->fate_of(peer).reason != 0;
      if (!gone && circle_->completed_by(peer) < issued_) return false;
    }
    return true;
  }

 private:
  std::vector<Member> members_;
  std::unique_ptr<Circle> circle_;
  std::unique_ptr<Transfers> transfers_;
  std::uint64_t issued_;
};

Communicator::~Communicator() {
  if (circle_ == nullptr) return;
  if (under_way_.load(std::memory_order_acquire) > 0) {
    fail(failure(Code::aborted, "rank %d destroyed the communicator before its operations had ended", rank_), rank_);
    drain();
  }
  launches_.reset();
  circle_->leave({static_cast<std::uint32_t>(Code::invalid_usage), static_cast<std::uint32_t>(rank_)});
  context_->retire(std::make_unique<Remains>(std::move(members_), std::move(circle_), std::move(transfers_), issued_));
}

// ---- operations ----------------------------------------------------------------------------------------------------------------

Status Communicator::run(const Call& call) {
  if (failed()) return first_failure();
  Status rejected;
  BoundShape* const shape = prepared(call, rejected);
  CollectiveTask task(*this, call, shape, count_operation(), nullptr);
  if (shape == nullptr) task.reject(std::move(rejected));
  context_->progress().run(task);
  return task.status();
}

// Checked, chosen and bound. A call that repeats the last one, buffers included, was all of that before: a sixth of the time of
// an 8-byte all-reduce.
BoundShape* Communicator::prepared(const Call& call, Status& rejected) {
  if (last_shape_ != nullptr && repeats(last_call_, call)) return last_shape_;
  last_shape_ = nullptr;
  rejected = check(call, rank_, ranks_);
  if (!rejected.ok()) return nullptr;
  Result<BoundShape*> found = launches_->find(call, !context_->progress().idle());
  if (!found.ok()) {
    rejected = found.status();
    return nullptr;
  }
  last_call_ = call;
  last_call_.counts = last_call_.displacements = {};
  last_shape_ = call.counts.empty() ? found.value() : nullptr;
  return found.value();
}

std::unique_ptr<Task> Communicator::issue(const Call& call, TaskGate* gate) {
  Status rejected;
  BoundShape* const shape = prepared(call, rejected);
  auto task = std::make_unique<CollectiveTask>(*this, call, shape, count_operation(), gate);
  if (shape == nullptr) task->reject(std::move(rejected));
  if (gate != nullptr) under_way_.fetch_add(1, std::memory_order_relaxed);
  return task;
}

Status Communicator::run(const TransferCall& call) {
  if (failed()) return first_failure();
  TransferTask task(*this, transfers_->prepare(call), call.deadline_ms, nullptr);
  context_->progress().run(task);
  return task.status();
}

std::unique_ptr<Task> Communicator::issue(const TransferCall& call, TaskGate* gate) {
  auto task = std::make_unique<TransferTask>(*this, transfers_->prepare(call), call.deadline_ms, gate);
  if (gate != nullptr) under_way_.fetch_add(1, std::memory_order_relaxed);
  return task;
}

void Communicator::drain() {
  Progress& progress = context_->progress();
  for (std::uint32_t idle = 0; under_way_.load(std::memory_order_acquire) > 0;) {
    if (progress.pass())
      idle = 0;
    else
      progress.relax(idle++);
  }
}

void Communicator::begin(const Note& note) {
  begun_ = note.operation;
  circle_->begin(note);
}

void Communicator::begin_rejected(Note note, const Status& reason) {
  note.verdict = static_cast<std::uint32_t>(reason.code());
  put_reason(note, reason.text());
  begin(note);
}

// Two operations may be under way, and the later may end first: others are told only of an unbroken row.
void Communicator::complete(std::uint64_t operation) {
  std::uint64_t done = done_.load(std::memory_order_relaxed);
  if (operation != done + 1) {
    ended_early_[operation % ended_early_.size()] = operation;
    return;
  }
  ++done;
  while (ended_early_[(done + 1) % ended_early_.size()] == done + 1) ++done;
  circle_->complete(done);
  done_.store(done, std::memory_order_release);
}

Status Communicator::finalize() {
  drain();
  if (failed()) return first_failure();
  DrainTask task(*this);
  context_->progress().run(task);
  return task.status();
}

// ---- failures ------------------------------------------------------------------------------------------------------------------

// Called while an operation has not moved for a while: is there a reason?
Status Communicator::look_around(const Note& own, Deadline deadline) {
  // Who is gone is asked before the notes are compared: who left because of a note has seen it, so it is there to be seen.
  Rank culprit = rank_;
  Status reason;
  for (Rank peer = 0; peer < ranks_ && reason.ok(); ++peer) {
    culprit = peer;
    reason = died(peer, own);
  }
  for (Rank peer = 0; peer < ranks_ && reason.ok(); ++peer) {
    culprit = blamed_by(peer);
    reason = left(peer, own);
  }
  for (Rank peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) SETO_TRY(heed(peer, own));
  if (!reason.ok()) SETO_TRY(heed_earlier(own.operation));
  if (reason.ok()) {
    reason = circle_->failure();
    culprit = rank_;
  }
  if (reason.ok() && deadline.passed()) reason = overdue(own);
  if (!reason.ok()) {
    fail(reason, culprit);
    return first_failure();
  }
  return {};
}

// What a peer's note says against this rank's. That it rejected the call ends the operation; that it makes another call ends the
// communicator.
Status Communicator::heed(Rank peer, const Note& own) {
  Note theirs;
  if (!circle_->note_of(static_cast<std::uint32_t>(peer), own.operation, theirs)) return {};
  const auto operation = static_cast<unsigned long long>(own.operation);
  if (theirs.verdict != 0)
    return failure(Code::remote_error, "operation %llu: rank %d rejected its call (%s), so it ends on every rank", operation, peer,
                   reason_of(theirs).c_str());
  if (theirs.digest == own.digest) return {};
  fail(failure(Code::remote_error, "operation %llu: rank %d calls %s, but rank %d calls %s", operation, rank_, text_of(own).c_str(), peer,
               text_of(theirs).c_str()),
       peer);
  return first_failure();
}

// A rank that only sends may have gone on from an operation before another came to it with a different call.
Status Communicator::heed_earlier(std::uint64_t before) {
  for (std::uint64_t operation = before - 1; operation > 0; --operation) {
    Note own;
    if (!circle_->note_of(static_cast<std::uint32_t>(rank_), operation, own)) return {};
    for (Rank peer = 0; peer < ranks_; ++peer) {
      Note theirs;
      const bool told = peer != rank_ && circle_->note_of(static_cast<std::uint32_t>(peer), operation, theirs);
      if (told && own.verdict == 0 && theirs.verdict == 0) SETO_TRY(heed(peer, own));
    }
  }
  return {};
}

// For an operation in which nothing comes here whose header would tell of another call. Of two ranks that disagree at least one
// sees the other's note: both write their own before they look.
Status Communicator::compare_notes(const Note& own) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (Rank peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) SETO_TRY(heed(peer, own));
  return {};
}

bool Communicator::others_follow(std::uint64_t operation) const {
  for (Rank peer = 0; peer < ranks_; ++peer) {
    const auto member = static_cast<std::uint32_t>(peer);
    if (peer != rank_ && circle_->completed_by(member) + circle_->window() < operation && circle_->fate_of(member).reason == 0 &&
        !members_[member].connection->dead())
      return false;
  }
  return true;
}

// A peer that has completed the operation owes nothing here, whatever became of it; one that said why it left did not die of it.
Status Communicator::died(Rank peer, const Note& own) const {
  const auto member = static_cast<std::uint32_t>(peer);
  if (peer == rank_ || !members_[member].connection->dead()) return {};
  if (circle_->completed_by(member) >= own.operation || circle_->fate_of(member).reason != 0) return {};
  return failure(Code::remote_error, "operation %llu (%s): the process of rank %d has ended", static_cast<unsigned long long>(own.operation),
                 text_of(own).c_str(), peer);
}

Status Communicator::left(Rank peer, const Note& own) const {
  const auto member = static_cast<std::uint32_t>(peer);
  const Fate fate = circle_->fate_of(member);
  if (peer == rank_ || fate.reason == 0 || circle_->completed_by(member) >= own.operation) return {};
  std::string why;
  if (fate.reason == static_cast<std::uint32_t>(Code::timeout))
    why = " at a deadline: " + absentees(own);
  else if (fate.culprit != member)
    why = " because of rank " + std::to_string(fate.culprit);
  return failure(Code::remote_error, "operation %llu (%s): rank %d has left the communicator%s", static_cast<unsigned long long>(own.operation),
                 text_of(own).c_str(), peer, why.c_str());
}

// Whom a rank that left blames, so that all blame the same one however the news travelled.
Rank Communicator::blamed_by(Rank peer) const {
  const Fate fate = circle_->fate_of(static_cast<std::uint32_t>(peer));
  return fate.culprit < static_cast<std::uint32_t>(ranks_) ? static_cast<Rank>(fate.culprit) : peer;
}

Status Communicator::why_gone(Rank peer) const {
  const auto member = static_cast<std::uint32_t>(peer);
  if (const Fate fate = circle_->fate_of(member); fate.reason != 0)
    return failure(Code::remote_error, "rank %d has left the communicator%s", peer,
                   fate.culprit == member ? "" : (" because of rank " + std::to_string(fate.culprit)).c_str());
  if (members_[static_cast<std::size_t>(peer)].connection->dead()) return failure(Code::remote_error, "the process of rank %d has ended", peer);
  return {};
}

std::string Communicator::absentees(const Note& own) const {
  std::vector<Rank> missing;
  for (Rank peer = 0; peer < ranks_; ++peer) {
    Note theirs;
    const auto member = static_cast<std::uint32_t>(peer);
    if (peer != rank_ && !circle_->note_of(member, own.operation, theirs) && circle_->completed_by(member) < own.operation)
      missing.push_back(peer);
  }
  return missing.empty() ? "all ranks came" : rank_list(missing) + " never came";
}

Status Communicator::overdue(const Note& own) const {
  return failure(Code::timeout, "operation %llu (%s) did not end before its deadline: %s", static_cast<unsigned long long>(own.operation),
                 text_of(own).c_str(), absentees(own).c_str());
}

void Communicator::fail(const Status& reason, Rank culprit) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (!failure_.ok()) return;
    failure_ = reason;
  }
  failed_.store(true, std::memory_order_release);
  circle_->leave({static_cast<std::uint32_t>(reason.code()), static_cast<std::uint32_t>(culprit)});
  context_->wake();
}

Status Communicator::first_failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

}  // namespace seto
