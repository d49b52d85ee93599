#include "bench/common/options.h"

#include <getopt.h>

#include <charconv>
#include <cstring>
#include <functional>
#include <limits>

namespace seto::bench {
namespace {

constexpr std::string_view kSvg = ".svg";

// The values that an option takes, for the text of an error: "give ...".
constexpr char kFromOne[] = "a whole number, 1 or more";
constexpr char kFromZero[] = "a whole number, 0 or more";
constexpr char kSwitch[] = "0 or 1";
constexpr const char* kMemories = "host or device";
constexpr char kOneOfFour[] = "0, 1, 2 or 3";
constexpr char kSize[] = "a size such as 8, 64K, 1.5M or 2G";
constexpr char kFile[] = "the name of a file";

// One row for each option: what getopt needs, the help text, the values, and the effect. Long names follow nccl-tests.
struct Row {
  int key;  // the letter, or a number from 256 where there is none
  const char* name;
  const char* argument;  // null: the option takes no value
  const char* help;
  std::string allowed;
  std::function<bool(Options&, const std::string&)> apply;
};

bool to_int(const std::string& text, int low, int& target) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low) return false;
  target = value;
  return true;
}

bool to_flag(const std::string& text, bool& target) {
  if (text != "0" && text != "1") return false;
  target = text == "1";
  return true;
}

bool to_size(const std::string& text, std::uint64_t& target) {
  const auto size = parse_size(text);
  if (size) target = *size;
  return size.has_value();
}

template <class Enum>
bool to_enum(const std::string& text, int count, Enum& target) {
  int value = 0;
  if (!to_int(text, 0, value) || value >= count) return false;
  target = static_cast<Enum>(value);
  return true;
}

template <class Value, class Parse, class All>
bool to_list(const std::string& text, Parse parse, All all, std::vector<Value>& target) {
  if (text == "all") {
    target.assign(all.begin(), all.end());
    return true;
  }
  target.clear();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto value = parse(std::string_view(text).substr(begin, end - begin));
    if (!value) return false;
    target.push_back(*value);
    begin = end + 1;
  }
  return true;
}

bool to_codecs(const std::string& text, Options& options) {
  std::vector<std::string>& target = options.codecs;
  target.clear();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end == begin) return false;
    target.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  options.codec_of_calls = true;
  return true;
}

bool to_seconds_or_bandwidth(const std::string& text, double& target) {
  char* end = nullptr;
  target = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && target >= 0;
}

bool to_memory(const std::string& text, bool& on_device) {
  on_device = text == "device";
  return on_device || text == "host";
}

bool to_root(const std::string& text, int& target) {
  if (text != "all") return to_int(text, 0, target);
  target = kAllRoots;
  return true;
}

bool to_files(const std::string& text, std::vector<std::string>& target) {
  target.push_back(text);
  return !text.empty();
}

bool to_svg(const std::string& text, std::string& target) {
  target = text;
  return text.size() > kSvg.size() && text.ends_with(kSvg);
}

template <class All>
std::string names_in(const All& all) {
  std::string text;
  for (const auto value : all) text += std::string(name_of(value)) + ", ";
  return text + "several separated by commas, or all";
}

const std::vector<Row>& rows() {
  using O = Options;
  using S = const std::string;
  static const std::vector<Row> table = {
      {256, "ranks", "N", "processes to fork, each a rank (1, or those of a launcher)", kFromOne,
       [](O& o, S& v) { return to_int(v, 1, o.processes); }},
      {'t', "nthreads", "N", "threads of each process, each a rank (1)", kFromOne,
       [](O& o, S& v) { return to_int(v, 1, o.threads); }},
      {'g', "ngpus", "N", "with --memory device: GPUs of each of these threads, each a rank (1)", kFromOne,
       [](O& o, S& v) { return to_int(v, 1, o.gpus); }},
      {'G', "cudagraph", "N", "with --memory device: capture the timed calls in a graph, launch it N times; 0: no graph (0)",
       kFromZero, [](O& o, S& v) { return to_int(v, 0, o.graph_launches); }},
      {'b', "minbytes", "SIZE", "smallest size (32M); K, M, G are binary", kSize,
       [](O& o, S& v) { return to_size(v, o.sizes.min); }},
      {'e', "maxbytes", "SIZE", "largest size (32M)", kSize, [](O& o, S& v) { return to_size(v, o.sizes.max); }},
      {'i', "stepbytes", "SIZE", "added to each size (1M)", "a size of 1 or more, such as 64K",
       [](O& o, S& v) { return to_size(v, o.sizes.step) && o.sizes.step > 0; }},
      {'f', "stepfactor", "N", "factor between sizes", "a whole number; below 2, -i is added instead",
       [](O& o, S& v) { return to_size(v, o.sizes.factor); }},
      {'n', "iters", "N", "timed iterations (20)", kFromOne, [](O& o, S& v) { return to_int(v, 1, o.iterations); }},
      {'m', "agg_iters", "N", "calls of each iteration, in one group (1)", kFromOne,
       [](O& o, S& v) { return to_int(v, 1, o.aggregated); }},
      {'w', "warmup_iters", "N", "iterations before the clock starts (1)", kFromZero,
       [](O& o, S& v) { return to_int(v, 0, o.warmups); }},
      {'N', "run_cycles", "N", "repeat the whole table (1)", kFromOne, [](O& o, S& v) { return to_int(v, 1, o.cycles); }},
      {'c', "check", "N", "checked calls of each row; 0: none (1)", kFromZero, [](O& o, S& v) { return to_int(v, 0, o.checks); }},
      {'o', "op", "OP,...|all", "sum prod max min avg mulsum (sum)", names_in(all_ops()),
       [](O& o, S& v) { return to_list(v, parse_op, all_ops(), o.ops); }},
      {'d', "datatype", "TYPE,...|all", "element type (float)", names_in(all_types()),
       [](O& o, S& v) { return to_list(v, parse_type, all_types(), o.types); }},
      {'r', "root", "RANK|all", "root of rooted collectives (0)", "the number of a rank, or all",
       [](O& o, S& v) { return to_root(v, o.root); }},
      {'z', "blocking", "0..3", "0 blocking calls, 1 a barrier after each, 2 queued on a stream, 3 queued, a wait after each (0)",
       kOneOfFour, [](O& o, S& v) { return to_enum(v, 4, o.issue); }},
      {'a', "average", "0..3", "time of rank 0, mean, min or max over ranks (1)", kOneOfFour,
       [](O& o, S& v) { return to_enum(v, 4, o.average); }},
      {'C', "report_cputime", "0|1", "time until calls return, not until they end (0)", kSwitch,
       [](O& o, S& v) { return to_flag(v, o.report_cpu_time); }},
      {'I', "report_iterations", "0|1", "time every iteration: min, max, p99, variation (0)", kSwitch,
       [](O& o, S& v) { return to_flag(v, o.report_iterations); }},
      {'S', "report_timestamps", "0|1", "a time stamp on each row (0)", kSwitch,
       [](O& o, S& v) { return to_flag(v, o.report_timestamps); }},
      {265, "memory", "host|device", "memory of the buffers; device: rank n has GPU n modulo their number (host)", kMemories,
       [](O& o, S& v) { return to_memory(v, o.on_device); }},
      {'R', "local_register", "0|1", "buffers are registered, those of the host are from setoMemAlloc (0)", kSwitch,
       [](O& o, S& v) { return to_flag(v, o.registered); }},
      {'T', "timeout", "SECONDS", "give up when a row takes longer; 0: never (0)", "whole seconds, 0 or more",
       [](O& o, S& v) { return to_int(v, 0, o.timeout_s); }},
      {'J', "output_file", "FILE", "write results as JSON", kFile, [](O& o, S& v) { return !(o.json_path = v).empty(); }},
      {257, "json", "FILE", "the same", kFile, [](O& o, S& v) { return !(o.json_path = v).empty(); }},
      {258, "plot", "FILE.svg", "draw bus bandwidth over size", "the name of a file that ends in .svg",
       [](O& o, S& v) { return to_svg(v, o.plot_path); }},
      {259, "plot-add", "FILE[=LABEL]", "overlay an earlier run's JSON; repeatable", kFile,
       [](O& o, S& v) { return to_files(v, o.plot_add); }},
      {260, "algorithm", "NAME", "pin an algorithm", "a name; seto info algorithms lists them",
       [](O& o, S& v) { return !(o.algorithm = v).empty(); }},
      {264, "codec", "NAME,...", "permit these codecs for sums, one table for each (none)",
       "names separated by commas; seto info codecs lists them", [](O& o, S& v) { return to_codecs(v, o); }},
      {263, "one-place", "0|1", "each call uses the same part of the buffers, warm in the cache (0)", kSwitch,
       [](O& o, S& v) { return to_flag(v, o.one_place); }},
      {261, "deterministic", "0|1", "choose by shipped constants only (0)", kSwitch,
       [](O& o, S& v) { return to_flag(v, o.deterministic); }},
      {262, "min-bw", "GB/S", "fail below 0.9 of this average", "a number, 0 or more",
       [](O& o, S& v) { return to_seconds_or_bandwidth(v, o.min_bandwidth); }},
      {'h', "help", nullptr, "this text", "", {}},
  };
  return table;
}

std::string usage(const char* program) {
  std::string text = std::string("usage: ") + program + " [options]\n";
  for (const Row& row : rows()) {
    std::string left = row.key < 256 ? std::string("  -") + static_cast<char>(row.key) + ", --" : std::string("      --");
    left += row.name;
    if (row.argument != nullptr) left += std::string(" ") + row.argument;
    left.resize(std::max<std::size_t>(left.size() + 1, 36), ' ');
    text += left + row.help + "\n";
  }
  return text;
}

Parsed refuse(std::string reason, const char* program) {
  Parsed parsed;
  parsed.run = false;
  parsed.exit_code = 2;
  parsed.text = std::string(program) + ": " + std::move(reason) + " (-h lists the options)\n";
  return parsed;
}

// The text names the value that was not given, because its default is what surprises.
std::string size_order(const SizeRange& sizes) {
  const SizeRange usual;
  const std::string text = "-b " + size_text(sizes.min) + " is larger than -e " + size_text(sizes.max);
  if (sizes.min == usual.min) return text + ": give -b too";
  if (sizes.max == usual.max) return text + ": give -e too";
  return text;
}

std::string device_problem(const Options& options) {
  if (options.gpus > 1 && !options.on_device) return "-g " + std::to_string(options.gpus) + " needs --memory device";
  if (options.graph_launches == 0) return {};
  if (!options.on_device) return "-G needs --memory device: calls on host memory have no graphs";
  if (options.report_iterations || options.report_cpu_time || options.issue != Issue::back_to_back)
    return "-G times whole graphs: leave out -I, -C and -z";
  return {};
}

std::string inconsistency(const Options& options) {
  if (options.sizes.min > options.sizes.max) return size_order(options.sizes);
  if (options.root >= options.ranks()) {
    return "-r " + std::to_string(options.root) + " is not a rank: there are " + std::to_string(options.ranks());
  }
  if (options.ranks() > 4096) return "more than 4096 ranks";
  if (std::string problem = device_problem(options); !problem.empty()) return problem;
  if (!options.plot_add.empty() && options.plot_path.empty()) return "--plot-add needs --plot";
  return {};
}

}  // namespace

Parsed parse_options(int argc, char** argv) {
  std::string letters = ":";
  std::vector<option> longs;
  for (const Row& row : rows()) {
    longs.push_back({row.name, row.argument != nullptr ? required_argument : no_argument, nullptr, row.key});
    if (row.key < 256) letters += std::string(1, static_cast<char>(row.key)) + (row.argument != nullptr ? ":" : "");
  }
  longs.push_back({nullptr, 0, nullptr, 0});
  Parsed parsed;
  optind = 0;  // glibc: forget an earlier scan
  for (;;) {
    const int scanned = optind == 0 ? 1 : optind;
    const int key = getopt_long(argc, argv, letters.c_str(), longs.data(), nullptr);
    if (key == -1) break;
    if (key == '?') return refuse(std::string("unknown option ") + argv[scanned], argv[0]);
    if (key == ':') return refuse(std::string("option ") + argv[scanned] + " needs a value", argv[0]);
    if (key == 'h') {
      parsed.run = false;
      parsed.text = usage(argv[0]);
      return parsed;
    }
    for (const Row& row : rows()) {
      if (row.key == key && !row.apply(parsed.options, optarg)) {
        return refuse(std::string("--") + row.name + " does not take '" + optarg + "': give " + row.allowed, argv[0]);
      }
    }
  }
  if (optind < argc) return refuse(std::string("unexpected argument ") + argv[optind], argv[0]);
  if (std::string reason = inconsistency(parsed.options); !reason.empty()) return refuse(std::move(reason), argv[0]);
  return parsed;
}

}  // namespace seto::bench
