#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "bench/common/algorithms.h"
#include "bench/common/codecs.h"
#include "bench/common/job.h"
#include "bench/common/json.h"
#include "bench/common/options.h"
#include "bench/common/plot.h"
#include "bench/common/program.h"
#include "bench/common/rank_run.h"
#include "bench/common/table.h"

namespace seto::bench {
namespace {

// As in nccl-tests: the run worked, but its data is wrong or its speed is below the minimum.
constexpr int kWrongResult = 1;
constexpr int kMisused = 2;
constexpr int kFailed = 3;

// Sums that may use the communicator's codec are checked against its bound.
void heed_environment(const Program& program, Options& options) {
  const char* const setting = std::getenv("SETO_CODEC");
  if (setting == nullptr || program.reduces == Reduces::no || options.codec_of_calls) return;
  options.codecs = {codec_of_setting(setting)};
  options.codec_of_environment = options.codecs.front() != kExact;
}

std::vector<RowPlan> plan_rows(const Program& program, const Options& options) {
  const std::vector<Op> ops = program.reduces == Reduces::yes ? options.ops : std::vector<Op>{Op::sum};
  std::vector<int> roots = {program.rooted == Rooted::yes ? options.root : -1};
  if (program.rooted == Rooted::yes && options.root == kAllRoots) {
    roots.clear();
    for (int rank = 0; rank < options.ranks(); ++rank) roots.push_back(rank);
  }
  std::vector<RowPlan> rows;
  for (int cycle = 0; cycle < options.cycles; ++cycle)
    for (const std::string& codec : options.codecs)
      for (const setoDataType_t type : options.types)
        for (const Op op : ops) {
          // A call that is exact in any case is measured once.
          const bool coded = takes(codec, type, op);
          if (!coded && !sums(op) && codec != options.codecs.front()) continue;
          for (const int root : roots)
            for (const std::uint64_t size : sizes_of(options.sizes))
              rows.push_back({size, type, op, root, coded ? codec : kExact});
        }
  return rows;
}

std::string host_name() {
  char name[64] = "host";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "processor";
}

// A line on the terminal with the progress of a long run. It is erased before a row is printed.
class Progress final {
 public:
  explicit Progress(std::size_t rows) : rows_(rows), shown_on_(isatty(STDERR_FILENO) != 0) {}
  void show(std::size_t index, const RowPlan& row, Where where) {
    const auto elapsed = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start_).count();
    if (!shown_on_ || elapsed < kQuietSeconds) return;
    std::fprintf(stderr, "\r\033[K# row %zu of %zu: %s %s, %s, after %lld s", index + 1, rows_, size_text(row.size).c_str(),
                 std::string(name_of(row.type)).c_str(), where == Where::in_place ? "in place" : "out of place",
                 static_cast<long long>(elapsed));
    visible_ = true;
  }
  void clear() {
    if (visible_) std::fputs("\r\033[K", stderr);
    visible_ = false;
  }

 private:
  static constexpr long long kQuietSeconds = 5;
  std::size_t rows_;
  bool shown_on_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct Run {
  const Program& program;
  const Options& options;
  Job& job;
  std::vector<std::string> arguments;
  std::vector<PlotSeries> earlier;  // the series of --plot-add
};

// Errors that can be detected before the measurement are reported before it.
std::string prepare_files(const Options& options, std::vector<PlotSeries>& earlier) {
  for (const auto& [option, path] : {std::pair{"-J", options.json_path}, std::pair{"--plot", options.plot_path}}) {
    if (path.empty()) continue;
    if (std::string problem = check_writable(path); !problem.empty()) return std::string(option) + ": " + problem;
  }
  for (const std::string& entry : options.plot_add)
    if (std::string problem = add_series(entry, earlier); !problem.empty()) return "--plot-add: " + problem;
  return {};
}

// Only the library knows the algorithms, and it must not be used before the fork. If it fails, init reports the reason.
std::string pin_problem(const Run& run) {
  if (run.options.algorithm.empty()) return {};
  std::size_t size = 0;
  if (setoInfo("algorithms", setoFormatJson, nullptr, 0, &size) != setoSuccess) return {};
  std::string json(size + 1, '\0');
  if (setoInfo("algorithms", setoFormatJson, json.data(), json.size(), nullptr) != setoSuccess) return {};
  json.resize(size);
  return check_algorithm(run.program, run.options.algorithm, json);
}

// Reports unknown codecs, and codecs that accept none of the types, before the measurement.
std::string codec_problem(const Run& run) {
  if (!run.options.coded() || run.options.codec_of_environment) return {};
  if (run.program.reduces == Reduces::no)
    return "--codec: " + std::string(run.program.name) + " does not reduce, so codecs do not apply to it";
  const std::vector<setoDataType_t>& types = run.options.types;
  for (const std::string& name : run.options.codecs) {
    std::size_t size = 0;
    const auto taken = [&](setoDataType_t type) { return setoCodecSize(codec_named(name), type, 1, &size) == setoSuccess; };
    // Rows of other types are measured exactly, once.
    if (codec_named(name) == 0 || std::none_of(types.begin(), types.end(), taken))
      return std::string("--codec: ") + setoGetLastError(nullptr);
  }
  return {};
}

// The work of rank 0 besides being a rank.
class Reporter final {
 public:
  explicit Reporter(const Run& run) : run_(run) {}

  void begin() {
    int library = 0;
    (void)setoGetVersion(&library);
    report_.heading = {run_.program.name, SETO_VERSION_CODE, library, host_name(), processor_name(), {}, {}};
    for (int rank = 0; rank < run_.job.ranks(); ++rank) {
      report_.heading.process_ids.push_back(run_.job.process_id(rank));
      report_.heading.hosts.push_back(run_.job.host(rank));
    }
    report_.arguments = run_.arguments;
    report_.start_time = timestamp_now();
    print(heading_text(report_.heading, run_.options) + columns_text(run_.options));
  }

  void add(const RowPlan& plan, const Placement& out_of_place, const std::optional<Placement>& in_place) {
    const std::size_t element_size = size_of(plan.type);
    const Layout layout = run_.program.layout(plan.size / element_size, element_size, run_.job.ranks());
    const bool reduces = run_.program.reduces == Reduces::yes;
    report_.rows.push_back(
        {.size = std::max(layout.send_count, layout.receive_count) * element_size,
         .count = layout.count,
         .type = std::string(name_of(plan.type)),
         .op = reduces ? std::string(name_of(plan.op)) : "none",
         .root = plan.root,
         .codec = plan.codec,
         .travelled_in = out_of_place.travelled_in,
         .wire_bytes = size_in(out_of_place.travelled_in, plan.type, std::max(layout.send_count, layout.receive_count)),
         .timestamp = timestamp_now(),
         .out_of_place = out_of_place,
         .in_place = in_place});
    print(row_text(report_.rows.back(), run_.options) + tolerance_text(report_.rows.back()));
  }

  int finish() {
    report_.end_time = timestamp_now();
    const Totals totals = totals_of(report_.rows);
    print(conclusion_text(run_.program.name, totals));
    int code = totals.wrong == 0 ? 0 : kWrongResult;
    if (totals.average_bus_bandwidth < 0.9 * run_.options.min_bandwidth) {
      std::fprintf(stderr, "%s: average bus bandwidth is below 0.9 x %g GB/s (--min-bw)\n", run_.program.name,
                   run_.options.min_bandwidth);
      code = kWrongResult;
    }
    if (!run_.options.json_path.empty()) code = std::max(code, write(run_.options.json_path, json_text(report_, run_.options)));
    if (!run_.options.plot_path.empty()) code = std::max(code, plot());
    return code;
  }

 private:
  // The output is flushed, so that the reader of a pipe sees each row when it is measured.
  static void print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  int write(const std::string& path, const std::string& text) const {
    const std::string problem = write_file(path, text);
    if (problem.empty()) return 0;
    std::fprintf(stderr, "%s: %s\n", run_.program.name, problem.c_str());
    return kFailed;
  }

  int plot() const {
    const std::string mine = std::string(run_.program.name) + ", " + std::to_string(run_.job.ranks()) +
                             (run_.options.processes == 1 ? " threads" : " ranks");
    std::vector<PlotSeries> all = series_of(report_.rows, mine);
    all.insert(all.end(), run_.earlier.begin(), run_.earlier.end());
    return write(run_.options.plot_path, plot_svg("Bus bandwidth on " + report_.heading.machine, all));
  }

  const Run& run_;
  Report report_;
};

int run_rank(const Run& run, int rank) {
  const Options& options = run.options;
  const bool watches = rank % options.ranks_of_process() == 0 && options.timeout_s > 0;
  run.job.introduce(rank);
  std::string problem = pin_problem(run);
  if (problem.empty()) problem = codec_problem(run);
  if (!problem.empty()) {
    if (rank == 0) std::fprintf(stderr, "%s: %s\n", run.program.name, problem.c_str());
    return kMisused;
  }
  if (watches) Job::arm_watchdog(options.timeout_s + 2);
  RankRun mine(run.program, options, run.job, rank);
  if (!mine.open()) return kFailed;
  const std::vector<RowPlan> rows = plan_rows(run.program, options);
  Progress progress(rows.size());
  Reporter reporter(run);
  if (rank == 0) reporter.begin();
  for (std::size_t index = 0; index < rows.size(); ++index) {
    Placement out_of_place;
    std::optional<Placement> in_place;
    for (const Where where : {Where::out_of_place, Where::in_place}) {
      if (where == Where::in_place && run.program.in_place == InPlace::unsupported) continue;
      if (rank == 0) progress.show(index, rows[index], where);
      // The library's own deadline of the same length should pass first, because its text names the missing rank.
      if (watches) Job::arm_watchdog(options.timeout_s + 2);
      Placement& result = where == Where::in_place ? in_place.emplace() : out_of_place;
      if (!mine.measure(rows[index], where, result)) return kFailed;
    }
    if (rank != 0) continue;
    progress.clear();
    reporter.add(rows[index], out_of_place, in_place);
  }
  if (!mine.close()) return kFailed;
  if (watches) Job::arm_watchdog(0);
  return rank == 0 ? reporter.finish() : 0;
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  const Parsed parsed = parse_options(argc, argv);
  if (!parsed.run) {
    std::fputs(parsed.text.c_str(), parsed.exit_code == 0 ? stdout : stderr);
    return parsed.exit_code;
  }
  Options options = parsed.options;
  heed_environment(program, options);
  // Joins a launcher's job only if the flags ask for one rank: --ranks and -t start ranks on this machine.
  std::unique_ptr<Launched> launched;
  if (options.ranks() == 1) {
    std::string problem;
    launched = Launched::join(problem);
    if (!problem.empty()) {
      std::fprintf(stderr, "%s: init: %s\n", program.name, problem.c_str());
      return kFailed;
    }
    if (launched != nullptr) options.processes = launched->ranks();
  }
  std::vector<PlotSeries> earlier;
  if (const std::string problem = prepare_files(options, earlier); !problem.empty()) {
    std::fprintf(stderr, "%s: %s\n", program.name, problem.c_str());
    return kMisused;
  }
  const std::size_t slots = options.report_iterations ? static_cast<std::size_t>(options.iterations) : 0;
  const auto job = Job::create({options.processes, options.ranks_of_process(), slots}, std::move(launched));
  if (job == nullptr) {
    std::fprintf(stderr, "%s: no shared memory for %d ranks: %s\n", program.name, options.ranks(), std::strerror(errno));
    return kFailed;
  }
  const Run run = {program, options, *job, std::vector<std::string>(argv, argv + argc), std::move(earlier)};
  return job->run([&](int rank) { return run_rank(run, rank); });
}

}  // namespace seto::bench
