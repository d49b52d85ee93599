#include "bench/common/json.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

extern char** environ;  // NOLINT(readability-identifier-naming)

namespace seto::bench {
namespace {

using Json = nlohmann::ordered_json;

Json placement_json(const Placement& placement, const Options& options) {
  Json json;
  json[options.report_cpu_time ? "cpu_time" : "time"] = placement.time_us;
  json["alg_bw"] = placement.algorithm_bandwidth;
  json["bus_bw"] = placement.bus_bandwidth;
  if (placement.wrong) {
    json["nwrong"] = *placement.wrong;
  } else {
    json["nwrong"] = "N/A";
  }
  return json;
}

Json iterations_json(const IterationStatistics& times) {
  return {{"min_us", times.min_us},       {"max_us", times.max_us},
          {"mean_us", times.mean_us},     {"p50", times.p50_us},
          {"p95", times.p95_us},          {"p99", times.p99_us},
          {"stdev", times.deviation_us},  {"cv", times.variation},
          {"times_us", times.slowest_us}, {"per_process_max_times_us", times.slowest_us}};
}

Json row_json(const ResultRow& row, const Options& options) {
  Json json = {{"size", row.size}, {"count", row.count}, {"type", row.type}, {"redop", row.op}, {"root", row.root}};
  json["out_of_place"] = placement_json(row.out_of_place, options);
  if (row.in_place) json["in_place"] = placement_json(*row.in_place, options);
  if (row.out_of_place.iterations) json["out_of_place_per_iter"] = iterations_json(*row.out_of_place.iterations);
  if (row.in_place && row.in_place->iterations) json["in_place_per_iter"] = iterations_json(*row.in_place->iterations);
  json["actual_iterations"] = options.iterations;
  json["experiment_name"] = "";
  if (options.coded()) json["codec"] = row.codec;
  if (options.coded() || row.out_of_place.tolerance > 0) json["travelled_in"] = row.travelled_in;
  if (row.out_of_place.tolerance > 0) {
    json["tolerance"] = row.out_of_place.tolerance;
    json["relative_tolerance"] = relative_tolerance(row);
  }
  if (options.coded()) json["wire_bytes"] = row.wire_bytes;
  if (options.report_timestamps) json["timestamp"] = row.timestamp;
  return json;
}

Json devices_json(const Heading& heading, const Options& options) {
  Json devices = Json::array();
  for (std::size_t rank = 0; rank < heading.process_ids.size(); ++rank) {
    devices.push_back(
        {{"rank", rank},
         {"group", 0},
         {"pid", heading.process_ids[rank]},
         {"hostname", heading.hosts[rank]},
         {"device", options.on_device ? static_cast<int>(rank) : static_cast<int>(rank) % options.ranks_of_process()},
         {"device_hex", options.on_device ? "gpu" : "host"},
         {"device_name", heading.machine}});
  }
  return devices;
}

Json environment_json() {
  Json json = Json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    // Only SETO_* variables are written: others may hold secrets and do not affect the run.
    if (text.substr(0, 5) != "SETO_" || equals == std::string_view::npos || text.substr(0, equals).find("SECRET") != text.npos) {
      continue;
    }
    json[std::string(text.substr(0, equals))] = std::string(text.substr(equals + 1));
  }
  return json;
}

}  // namespace

std::string json_text(const Report& report, const Options& options) {
  const Totals totals = totals_of(report.rows);
  Json json;
  json["version"] = 3;
  json["program"] = report.heading.program;
  json["start_time"] = report.start_time;
  json["args"] = report.arguments;
  json["env"] = environment_json();
  json["nccl_version"] = "seto-" + std::to_string(report.heading.library_version);
  json["config"] = {{"nthreads", options.threads},
                    {"ngpus", options.gpus},
                    {"nprocesses", options.processes},
                    {"nranks", options.ranks()},
                    {"minbytes", options.sizes.min},
                    {"maxbytes", options.sizes.max},
                    {"stepbytes", options.sizes.step},
                    {"stepfactor", options.sizes.factor},
                    {"warmup_iters", options.warmups},
                    {"iters", options.iterations},
                    {"agg_iters", options.aggregated},
                    {"validation", options.checks},
                    {"graph", options.graph_launches},
                    {"average", static_cast<int>(options.average)},
                    {"blocking", static_cast<int>(options.issue)}};
  json["config"]["devices"] = devices_json(report.heading, options);
  json["results"] = Json::array();
  for (const ResultRow& row : report.rows) json["results"].push_back(row_json(row, options));
  json["out_of_bounds"] = {{"count", totals.wrong}, {"okay", totals.wrong == 0}};
  json["average_bus_bandwidth"] = {{"bandwidth", totals.average_bus_bandwidth},
                                   {"okay", totals.average_bus_bandwidth >= 0.9 * options.min_bandwidth}};
  json["errors"] = totals.wrong;
  json["end_time"] = report.end_time;
  return json.dump(2) + "\n";
}

std::string check_writable(const std::string& path) {
  struct stat found {};
  const bool there = stat(path.c_str(), &found) == 0;
  int error = there || errno == ENOENT ? 0 : errno;
  if (there && S_ISDIR(found.st_mode)) error = EISDIR;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (error == 0 && access(there ? path.c_str() : folder.c_str(), there ? W_OK : W_OK | X_OK) != 0) error = errno;
  return error == 0 ? std::string() : "cannot write " + path + ": " + std::strerror(error);
}

std::string write_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return "cannot write " + path + ": " + std::strerror(errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  return written && closed ? std::string() : "cannot write " + path + ": " + std::strerror(errno);
}

}  // namespace seto::bench
