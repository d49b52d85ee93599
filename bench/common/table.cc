#include "bench/common/table.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "bench/common/codecs.h"

namespace seto::bench {
namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  return text;
}

std::string time_text(double time_us) {
  const int digits = time_us >= 10000 ? 0 : time_us >= 100 ? 1 : 2;
  return format("%7.*f", digits, time_us);
}

std::string bandwidth_text(double bandwidth) {
  return format("%6.*f", bandwidth >= 10000 ? 0 : bandwidth >= 1000 ? 1 : 2, bandwidth);
}

std::string placement_text(const Placement& placement, const Options& options) {
  std::string text = "  " + time_text(placement.time_us) + "  " + bandwidth_text(placement.algorithm_bandwidth) + "  " +
                     bandwidth_text(placement.bus_bandwidth);
  text += placement.wrong ? format("  %6llu", static_cast<unsigned long long>(*placement.wrong)) : std::string("     N/A");
  if (options.report_iterations && placement.iterations) {
    const IterationStatistics& times = *placement.iterations;
    text += "  " + time_text(times.min_us) + "  " + time_text(times.max_us) + "  " + time_text(times.p99_us);
    text += format("  %6.1f", times.variation * 100);
  }
  return text;
}

std::string travels_text(const ResultRow& row) {
  if (row.travelled_in.empty()) return "unknown";  // without a flight recorder
  return row.travelled_in == kExact ? "exactly" : row.travelled_in;
}

constexpr char kMissing[] = "      N/A     N/A     N/A     N/A";
constexpr char kMissingIterations[] = "      N/A      N/A      N/A     N/A";

}  // namespace

std::string heading_text(const Heading& heading, const Options& options) {
  std::string text = format("# seto bench version %d.%d.%d seto-headers=%d seto-library=%d\n", SETO_MAJOR, SETO_MINOR, SETO_PATCH,
                            heading.header_version, heading.library_version);
  text += "# Collective test starting: " + heading.program + "\n";
  const bool multiplies = options.sizes.factor > 1;
  text += format(
      "# nThread %d nGpus %d nProcess %d minBytes %llu maxBytes %llu step: %llu(%s) warmup iters: %d iters: %d "
      "agg iters: %d validation: %d graph: %d unalign: 0\n",
      options.threads, options.gpus, options.processes, static_cast<unsigned long long>(options.sizes.min),
      static_cast<unsigned long long>(options.sizes.max),
      static_cast<unsigned long long>(multiplies ? options.sizes.factor : options.sizes.step), multiplies ? "factor" : "bytes",
      options.warmups, options.iterations, options.aggregated, options.checks, options.graph_launches);
  if (options.coded())
    text +=
        "# codec: permitted for sums; travels: the codec that was used, exactly where a codec would be slower or does not "
        "apply\n"
        "# (SETO_LOG=info, seto explain); wire: bytes of the tensor in that codec. Encoded sums are checked against the error "
        "bound\n"
        "# of their codec (setoCodecErrorBound), and so are sums whose codec is unknown because the flight recorder is off.\n";
  text += "#\n# Using devices\n";
  for (std::size_t rank = 0; rank < heading.process_ids.size(); ++rank) {
    text += format("#  Rank %2zu Group  0 Pid %6ld on %10s device %2d [%s] %s\n", rank, heading.process_ids[rank],
                   heading.hosts[rank].c_str(),
                   options.on_device ? static_cast<int>(rank) : static_cast<int>(rank) % options.ranks_of_process(),
                   options.on_device ? "gpu" : "host", heading.machine.c_str());
  }
  if (options.on_device) text += "# device n: GPU n modulo the number of GPUs of this machine\n";
  if (options.graph_launches > 0)
    text += format("# a graph of %d x %d calls is launched %d times, and a captured call is checked\n", options.iterations,
                   options.aggregated, options.graph_launches);
  if (options.ranks() == 1) text += "# one rank sends nothing; try --ranks 2\n";
  return text;
}

std::string columns_text(const Options& options) {
  const char* more[3] = {"", "", ""};
  if (options.report_iterations) {
    more[0] = "                                  ";
    more[1] = "    i_min    i_max    i_p99   i_cv%";
    more[2] = "     (us)     (us)     (us)     (%)";
  }
  const std::string stamp =
      std::string(options.coded() ? "   codec  travels          wire" : "") + (options.report_timestamps ? "   timestamp" : "");
  std::string text = "#\n";
  text += format("# %10s  %12s  %8s  %6s  %6s           out-of-place           %s           in-place             %s\n", "", "",
                 "", "", "", more[0], more[0]);
  text += format("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s%s  %7s  %6s  %6s  %6s%s%s\n", "size", "count", "type", "redop",
                 "root", "time", "algbw", "busbw", "#wrong", more[1], "time", "algbw", "busbw", "#wrong", more[1], stamp.c_str());
  text += format("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s%s  %7s  %6s  %6s  %6s%s\n", "(B)", "(elements)", "", "", "",
                 "(us)", "(GB/s)", "(GB/s)", "", more[2], "(us)", "(GB/s)", "(GB/s)", "", more[2]);
  return text;
}

std::string row_text(const ResultRow& row, const Options& options) {
  std::string text = format("%12llu  %12llu  %8s  %6s  %6d", static_cast<unsigned long long>(row.size),
                            static_cast<unsigned long long>(row.count), row.type.c_str(), row.op.c_str(), row.root);
  text += placement_text(row.out_of_place, options);
  if (row.in_place) {
    text += placement_text(*row.in_place, options);
  } else {
    text += kMissing;
    if (options.report_iterations) text += kMissingIterations;
  }
  if (options.coded())
    text += format("  %6s  %7s  %12llu", row.codec.c_str(), travels_text(row).c_str(),
                   static_cast<unsigned long long>(row.wire_bytes));
  if (options.report_timestamps) text += "   " + row.timestamp;
  return text + "\n";
}

double relative_tolerance(const ResultRow& row) {
  const auto of = [](const Placement& placement) {
    return placement.tolerance == 0 || placement.largest == 0 ? 0 : placement.tolerance / placement.largest;
  };
  return std::max(of(row.out_of_place), row.in_place ? of(*row.in_place) : 0);
}

std::string tolerance_text(const ResultRow& row) {
  const double tolerance = relative_tolerance(row);
  if (tolerance == 0) return {};
  return format(
      "# %llu bytes travelled in %s: an error of at most %.3g %% of the largest number of all inputs is accepted "
      "(setoCodecErrorBound)%s\n",
      static_cast<unsigned long long>(row.size), row.travelled_in.empty() ? "an unknown codec" : row.travelled_in.c_str(),
      100 * tolerance, row.codec == kExact ? "; the library chose the codec, SETO_CODEC=none forbids it" : "");
}

std::string conclusion_text(const std::string& program, const Totals& totals) {
  std::string text = format("# Out of bounds values : %llu %s\n", static_cast<unsigned long long>(totals.wrong),
                            totals.wrong == 0 ? "OK" : "FAILED");
  text += format("# Avg bus bandwidth    : %g\n#\n", totals.average_bus_bandwidth);
  return text + "# Collective test concluded: " + program + "\n";
}

}  // namespace seto::bench
