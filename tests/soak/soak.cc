// Random collectives of random sizes, splits, aborts and kills, for a given time; see README.md of this folder.
//
//   soak [--seconds N] [--seed S] [--ranks N] [--processes N] [--transport auto|tcp|mixed] [--from G] [--generations N]
//        [--patience N]: time limits are N times as long; [--ending NAME]: all generations end in this way (Ending in plan.h)
//        [--minutes N]; [--cuts N]: so many cuts of connections a minute, between processes of one rank at sites of their own

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <string>

#include "tests/soak/cutter.h"
#include "tests/soak/processes.h"
#include "tests/support/leftovers.h"

namespace seto::soak {
namespace {

constexpr int kMostFailures = 10;
constexpr int kRanksOfCuts = 3;

volatile sig_atomic_t stop_asked = 0;
void ask_stop(int) { stop_asked = 1; }

struct Options {
  Shape shape;
  std::uint64_t seconds = 15;
  std::uint64_t from = 0;
  std::uint64_t generations = ~std::uint64_t{0};
  int ranks = 0;        // 0: not stated
  bool places = false;  // where the ranks are was stated
};

bool number(const char* text, std::uint64_t least, std::uint64_t most, std::uint64_t& value) {
  char* end = nullptr;
  value = std::strtoull(text, &end, 10);
  return *text != 0 && *end == 0 && value >= least && value <= most;
}

bool transport(const std::string& name, Transport& value) {
  value = name == "tcp" ? Transport::tcp : name == "mixed" ? Transport::mixed : Transport::automatic;
  return name == "tcp" || name == "mixed" || name == "auto";
}

bool ending(const std::string& name, int& value) {
  value = 0;
  while (value < kEndings && name != name_of(static_cast<Ending>(value))) ++value;
  return value < kEndings;
}

bool read_option(const std::string& name, const char* text, Options& options) {
  std::uint64_t value = 0;
  constexpr std::uint64_t kAny = ~std::uint64_t{0};
  options.places = options.places || name == "--transport" || name == "--processes";
  if (name == "--transport") return transport(text, options.shape.transport);
  if (name == "--seconds") return number(text, 0, kAny, options.seconds);
  if (name == "--minutes" && number(text, 1, 100'000, value)) options.seconds = 60 * value;
  if (name == "--cuts") return number(text, 1, 100'000, options.shape.cuts);
  if (name == "--seed") return number(text, 0, kAny, options.shape.seed);
  if (name == "--ending") return ending(text, options.shape.ending);
  if (name == "--patience") return number(text, 1, 100, options.shape.patience);
  if (name == "--from") return number(text, 0, kAny, options.from);
  if (name == "--generations") return number(text, 1, kAny, options.generations);
  if (name == "--ranks" && number(text, 2, kMostRanks, value)) options.ranks = static_cast<int>(value);
  if (name == "--processes" && number(text, 1, kMostRanks, value)) options.shape.processes = static_cast<int>(value);
  return value != 0;
}

bool read_options(int count, char** arguments, Options& options) {
  options.shape.seed = std::random_device{}();
  for (int i = 1; i < count; i += 2)
    if (i + 1 == count || !read_option(arguments[i], arguments[i + 1], options)) return false;
  Shape& shape = options.shape;
  if (shape.cuts > 0 && options.places) return false;  // each rank of a run with cuts is a process at a site of its own
  if (shape.cuts > 0) {
    shape.transport = Transport::tcp;
    shape.ranks = shape.processes = kRanksOfCuts;
  }
  if (options.ranks > 0) shape.ranks = options.ranks;
  if (shape.cuts > 0) shape.processes = shape.ranks;
  return shape.processes <= shape.ranks;
}

unsigned long long plain(std::uint64_t value) { return value; }

void print_progress(const char* head, const Options& options, std::uint64_t seconds, std::uint64_t played, int failures) {
  std::printf("%s: seed %llu, %llu s, %llu generations, failures: %d\n", head, plain(options.shape.seed), plain(seconds),
              plain(played), failures);
  std::fflush(stdout);
}

void print_summary(const Tally& tally) {
  std::printf(
      "%llu communicators of a rank, %llu operations, %llu MiB, %llu splits, %llu aborts, %llu kills, %llu wrong calls, "
      "%llu dumps, %llu results checked\n",
      plain(tally.communicators), plain(tally.operations), plain(tally.bytes >> 20), plain(tally.splits), plain(tally.aborts),
      plain(tally.kills), plain(tally.wrong_calls), plain(tally.dumps), plain(tally.checks));
  std::printf("the slowest rank reported an abort after %.1f ms, of a kill after %.1f ms, of a disagreement after %.1f ms\n",
              static_cast<double>(tally.slowest_abort_us) / 1e3, static_cast<double>(tally.slowest_kill_us) / 1e3,
              static_cast<double>(tally.slowest_mismatch_us) / 1e3);
}

void print_cuts(const Tally& tally, const std::string& log) {
  std::uint64_t all = 0;
  std::string kinds;
  for (std::size_t kind = 0; kind < kCuts; ++kind) {
    all += tally.cuts[kind];
    kinds +=
        (kind == 0 ? "" : ", ") + std::string(name_of(static_cast<Cut>(kind))) + " " + std::to_string(tally.cuts[kind].load());
  }
  std::printf("%llu cuts (%s) of %llu connections, %llu of them while their process computed\n%s\n", plain(all), kinds.c_str(),
              plain(tally.cut_connections), plain(tally.cuts_while_computing), resumptions_in(log).c_str());
}

// Without any, the run shows nothing: connections are found by their marks, which a system may hide.
bool was_cut(const Tally& tally, std::uint64_t expected) {
  constexpr std::uint64_t kMany = 10;
  if (expected < kMany || tally.cut_connections > 0) return true;
  std::printf("soak: no connection was cut, about %llu cuts were to come\n", plain(expected));
  return false;
}

bool nothing_left(const std::set<std::string>& before) {
  bool nothing = true;
  for (const std::string& name : testing::shared_memory_files())
    if (before.count(name) == 0) {
      std::printf("soak: %s was left behind\n", name.c_str());
      nothing = false;
    }
  if (waitpid(-1, nullptr, WNOHANG) == -1) return nothing;
  std::printf("soak: a process was left behind\n");
  return false;
}

// Variables that the processes inherit, unless the caller has set them.
void set_environment(const std::string& directory) {
  setenv("SETO_DUMP_FILE", (directory + "/dump-%p-%r.json").c_str(), 0);
  setenv("SETO_DUMP_SIGNAL", std::to_string(SIGUSR1).c_str(), 0);
  setenv("SETO_LOG", "error", 0);
  setenv("SETO_INIT_TIMEOUT_MS", std::to_string(kIdleIdMs).c_str(), 0);  // for ids only; each communicator has its own deadline
}

int run(const Options& options, const std::string& directory, const std::string& log) {
  const std::set<std::string> before = testing::shared_memory_files();
  Board& board = make_board();
  const Setting setting{options.shape, board, directory};
  int failures = 0, judged = 0;
  std::uint64_t played = 0;
  const std::uint64_t begun = now_ns(), every = isatty(STDOUT_FILENO) != 0 ? 5 : 60;
  const auto seconds = [&] { return (now_ns() - begun) / 1'000'000'000; };
  {
    Processes processes(setting);
    std::uint64_t said = 0;
    while (played < options.generations && seconds() < options.seconds && failures < kMostFailures && stop_asked == 0) {
      failures += processes.play(options.from + played++) ? 0 : 1;
      if (seconds() / every <= said) continue;
      said = seconds() / every;
      print_progress("soak", options, seconds(), played, failures);
    }
    failures += processes.account(judged) ? 0 : 1;
    failures += processes.end() ? 0 : 1;
  }
  failures += nothing_left(before) ? 0 : 1;
  failures += was_cut(board.tally, options.shape.cuts * seconds() / 60) ? 0 : 1;
  print_summary(board.tally);
  if (options.shape.cuts > 0) print_cuts(board.tally, log);
  std::printf("%d processes ran long enough to compare their resources\n", judged);
  print_progress("soak ended", options, seconds(), played, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace seto::soak

// Races and leaks end the process in which they are found, and so fail the run. Killed ranks join no threads, and threads that
// dialed again are joined by the next ones. The sanitizer only finds what is visible.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "halt_on_error=1:report_thread_leaks=0";
}

int main(int count, char** arguments) {
  using namespace seto::soak;
  Options options;
  if (!read_options(count, arguments, options)) {
    std::fprintf(stderr,
                 "usage: soak [--seconds N] [--seed S] [--ranks 2-%d] [--processes N] [--transport auto|tcp|mixed]\n"
                 "            [--patience N] [--ending NAME] [--from GENERATION] [--generations N] [--minutes N]\n"
                 "            [--cuts N]: in a minute; without --processes and --transport, for %d ranks\n",
                 kMostRanks, kRanksOfCuts);
    return 2;
  }
  struct sigaction action {};
  action.sa_handler = ask_stop;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans become children of this process, which detects them
  std::string directory = std::filesystem::temp_directory_path() / "soak-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return 2;
  const std::string log = directory + ".log";
  if (options.shape.cuts > 0) set_environment_of_cuts(log);
  set_environment(directory);
  print_progress("soak begins", options, 0, 0, 0);
  const int result = run(options, directory, log);
  std::filesystem::remove_all(directory);
  if (result == 0) std::filesystem::remove(log);
  if (result != 0 && options.shape.cuts > 0) std::printf("soak: the log of the library is %s\n", log.c_str());
  return result;
}
