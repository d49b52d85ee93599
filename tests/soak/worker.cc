#include "tests/soak/worker.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "tests/soak/cutter.h"
#include "tests/soak/ending_run.h"
#include "tests/soak/making.h"
#include "tests/soak/player.h"
#include "tests/soak/resources.h"

namespace seto::soak {
namespace {

// By then every ending, way and medium has occurred once, so the process has all resources that it keeps.
constexpr int kWarmUp = 2 * kEndings;
constexpr int kCompared =
    50;  // generations after the warm-up, of which the least counts, because some resources stay a while after a failure

// One write, so that texts of several processes do not mix.
void say(const Setting& setting, int process, const std::string& text) {
  const std::string line =
      "soak: seed " + std::to_string(setting.shape.seed) + ", process " + std::to_string(process) + ", " + text + "\n";
  static_cast<void>(!write(STDERR_FILENO, line.data(), line.size()));
}

class Worker final {
 public:
  Worker(const Setting& setting, int process)
      : setting_(setting), process_(process), cutter_(setting.shape, setting.board, process) {
    for (int rank = 0; rank < setting.shape.ranks; ++rank)
      if (setting.shape.process_of(rank) == process) ranks_.push_back(rank);
  }

  bool play(std::uint64_t generation) {
    const Plan plan = plan_of(setting_.shape, generation);
    const Job job{setting_.shape, plan, generation, setting_.board, setting_.directory, cutter_};
    cutter_.permit();
    const bool well = play(job);
    cutter_.forbid();
    if (++lived_ > kWarmUp && lived_ <= kWarmUp + kCompared) compare();
    return well;
  }

  Report account() {
    if (lived_ <= kWarmUp + 4) return {true, false};
    Resources now = resources_now();
    static_cast<void>(eventually([&] { return as_few(*first_, now = resources_now()); }, kSettleMs));
    const std::string grown = growth(*first_, now);
    say(setting_, process_,
        std::to_string(lived_) + " generations: " + first_->text() + "; at the end " + now.text() +
            (grown.empty() ? "" : "; GROWN: " + grown));
    return {grown.empty(), true};
  }

 private:
  void compare() {
    const Resources now = resources_now();
    if (first_.has_value())
      keep_least(*first_, now);
    else
      first_ = now;
  }

  bool play(const Job& job) {
    std::vector<Problem> problems(ranks_.size());
    std::vector<setoContext_t> contexts(ranks_.size(), nullptr);
    std::vector<Seat> seats(ranks_.size());
    if (job.plan.own_context)
      for (std::size_t i = 0; i < ranks_.size(); ++i) problems[i] = make_context(job, ranks_[i], contexts[i]);
    if (job.plan.way == Way::grouped) {
      const CallResult made = make_together(job, ranks_, contexts, seats);
      if (!made.ok()) problems[0] = "making in a group: " + made.description();
    }
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      threads.emplace_back([&, i] {
        if (problems[i].empty()) problems[i] = play_rank(job, ranks_[i], contexts[i], seats[i]);
        if (!problems[i].empty()) job.board.given_up = true;
      });
    for (std::thread& thread : threads) thread.join();
    bool well = true;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (contexts[i] != nullptr)
        if (const CallResult ended = call_result_of(setoContextDestroy(contexts[i])); !ended.ok() && problems[i].empty())
          problems[i] = "setoContextDestroy: " + ended.description();
      if (problems[i].empty()) continue;
      well = false;
      say(setting_, process_,
          "generation " + std::to_string(job.generation) + " (" + job.plan.text() + "), rank " + std::to_string(ranks_[i]) +
              ": " + problems[i]);
    }
    return well;
  }

  static Problem make_context(const Job& job, int rank, setoContext_t& context) {
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    const std::string host = host_of(job, rank);
    if (job.plan.medium != Medium::automatic) config.hostId = host.c_str();
    if (job.shape.cuts > 0) config.siteId = host.c_str();
    const CallResult made = call_result_of(setoContextCreate(&context, &config));
    return made.ok() ? Problem{} : "setoContextCreate: " + made.description();
  }

  // A rank that dies while it makes its communicator may or may not make the others fail.
  static Problem play_rank(const Job& job, int rank, setoContext_t context, Seat seat) {
    const bool may_fail = job.plan.ending == Ending::kill_while_making;
    const std::uint64_t begun = now_ns();
    std::thread killer;
    if (may_fail && rank == job.plan.culprit) killer = kill_this_process(job, [&] { return job.board.id_ready[0].load(); });
    const CallResult made = seat.comm == nullptr ? make(job, rank, context, seat) : CallResult{};
    Problem problem;
    if (made.ok()) {
      ++job.board.made;
      problem = Player(job, rank, seat).play();
    } else {
      const std::uint64_t took_ms = (now_ns() - begun) / 1'000'000;
      const int lost = job.shape.process_of(job.plan.culprit);
      bool named = lost == job.shape.process_of(0) && made.text.find("the process that made it has ended") != std::string::npos;
      for (int one = 0; one < job.shape.ranks; ++one) named = named || (job.shape.process_of(one) == lost && made.names(one));
      if (!may_fail || !named || took_ms > kShortInitMs + kNoticeMs)
        problem = "making (" + std::to_string(took_ms) + " ms): " + made.description();
      if (seat.comm != nullptr) setoCommDestroy(seat.comm);
    }
    if (killer.joinable()) killer.join();
    return problem;
  }

  const Setting& setting_;
  int process_;
  Cutter cutter_;
  std::vector<int> ranks_;
  int lived_ = 0;
  std::optional<Resources> first_;
};

}  // namespace

void work(const Setting& setting, int process, int commands, int reports) {
  make_heap_plain();
  {
    Worker worker(setting, process);
    Command command{};
    while (read(commands, &command, sizeof command) == sizeof command && command.order != Order::end) {
      const Report report = command.order == Order::play ? Report{worker.play(command.generation), false} : worker.account();
      if (write(reports, &report, sizeof report) != sizeof report) break;
    }
  }
  std::exit(0);
}

}  // namespace seto::soak
