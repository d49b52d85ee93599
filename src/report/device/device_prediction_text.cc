#include "src/report/device/device_prediction_text.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "src/base/json_writer.h"
#include "src/base/text.h"
#include "src/report/device/gpu_figures.h"
#include "src/report/explain_tiers.h"
#include "src/topology/draw/number_words.h"

namespace seto {
namespace {

double share_of(const DevicePath& path, DeviceCost cost) {
  const double all = std::accumulate(path.ns.begin(), path.ns.end(), 0.0);
  return all > 0 ? path.ns[static_cast<std::size_t>(cost)] / all : 0;
}

// The most that a rank stores in the memory of peers, all together and in that of one.
struct LinkBytes {
  double port = 0;
  double pair = 0;
};
LinkBytes link_bytes(const DeviceOutcome& outcome) {
  LinkBytes most;
  for (const DeviceCounts& counts : outcome.counts) {
    most.port = std::max(most.port, std::accumulate(counts.bytes_to.begin(), counts.bytes_to.end(), 0.0));
    for (const double bytes : counts.bytes_to) most.pair = std::max(most.pair, bytes);
  }
  return most;
}

// The count of the rank that has most.
template <class Count>
double most_of(const DeviceOutcome& outcome, Count DeviceCounts::*count) {
  double most = 0;
  for (const DeviceCounts& counts : outcome.counts) most = std::max(most, static_cast<double>(counts.*count));
  return most;
}

const NcclFigure* nccl_beside(const Question& question, const DeviceModel& model, std::uint64_t bytes) {
  return model.has_nccl_figures && question.collective == Collective::all_reduce ? nccl_figure(bytes) : nullptr;
}

double nccl_bus_gb(const NcclFigure& figure) { return figure.algorithm_gb * bus_factor(Collective::all_reduce, 8); }

std::string nccl_text(const NcclFigure* figure) {
  char text[64];
  if (figure == nullptr) return "";
  if (figure->algorithm_gb > 0)
    std::snprintf(text, sizeof text, "%.0f GB/s", nccl_bus_gb(*figure));
  else if (figure->least_us < figure->most_us)
    std::snprintf(text, sizeof text, "%.3g to %.3g us", figure->least_us, figure->most_us);
  else
    std::snprintf(text, sizeof text, "%.3g us", figure->least_us);
  return text;
}

std::string title(const Question& question, const DeviceModel& model) {
  char text[256];
  std::snprintf(text, sizeof text, "prediction, no GPU has confirmed it: %s of %s in GPU memory, %s, %u %s on each\n",
                std::string(name_of(question.collective)).c_str(), std::string(name_of(question.type)).c_str(),
                model.machine.c_str(), model.blocks, model.blocks == 1 ? "block" : "blocks");
  return text;
}

std::string row(const DevicePrediction& one, const DevicePrediction* now, const NcclFigure* figure) {
  char text[256];
  const DeviceCost binding = one.outcome.path.binding();
  const double at_best = one.bus_bytes_per_second * one.seconds / one.least_seconds;
  std::snprintf(text, sizeof text, "predicted %6s  %-18s %6ju %12s %11s %11s %11s  %-11s %3.0f %% %9u  %s",
                size_text(one.bytes).c_str(), std::string(one.algorithm->name).c_str(), std::uintmax_t{one.slices},
                duration_text(one.seconds).c_str(), rate_words(one.bus_bytes_per_second).c_str(), rate_words(at_best).c_str(),
                now == nullptr ? "" : rate_words(now->bus_bytes_per_second).c_str(), std::string(name_of(binding)).c_str(),
                100 * share_of(one.outcome.path, binding), one.outcome.hops, nccl_text(figure).c_str());
  std::string line = text;
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string header(bool has_nccl) {
  char text[256];
  std::snprintf(text, sizeof text, "%16s  %-18s %6s %12s %11s %11s %11s  %-17s %9s%s\n", "size", "algorithm", "slices", "time",
                "bus", "at best", "cut as now", "bound by", "exchanges", has_nccl ? "  NCCL, published" : "");
  return text;
}

// Where the time of the chosen algorithm goes, and what its programs count.
std::string detail(const DevicePrediction& one) {
  const DeviceOutcome& outcome = one.outcome;
  char line[192];
  std::snprintf(line, sizeof line, "the longest chain of %s, predicted, with %u %s for a peer:\n",
                std::string(one.algorithm->name).c_str(), outcome.path.waits, outcome.path.waits == 1 ? "wait" : "waits");
  std::string text = line;
  for (std::size_t cost = 0; cost < kDeviceCosts; ++cost) {
    if (outcome.path.ns[cost] <= 0) continue;
    std::snprintf(line, sizeof line, "  %-12s %12s %5.1f %%\n", std::string(name_of(static_cast<DeviceCost>(cost))).c_str(),
                  duration_text(outcome.path.ns[cost] * 1e-9).c_str(),
                  100 * share_of(outcome.path, static_cast<DeviceCost>(cost)));
    text += line;
  }
  const LinkBytes bytes = link_bytes(outcome);
  std::snprintf(line, sizeof line,
                "counted in its programs, of the busiest GPU: %s bytes to peers, %s to one of them, %s of its memory;\n",
                amount_text(bytes.port).c_str(), amount_text(bytes.pair).c_str(),
                amount_text(most_of(outcome, &DeviceCounts::memory_bytes)).c_str());
  text += line;
  std::snprintf(line, sizeof line, "  each block: %.0f passes, %.0f barriers, %.0f flags; %s bytes of slots and flags on a GPU\n",
                most_of(outcome, &DeviceCounts::passes), most_of(outcome, &DeviceCounts::barriers),
                most_of(outcome, &DeviceCounts::flags), amount_text(static_cast<double>(outcome.workspace)).c_str());
  return text + line;
}

const char* how_messages_go(const DevicePrediction& one) {
  if (one.marked) return ", marked messages";
  if (one.lent_all) return ", read in the buffers of the peers";
  return one.lent ? ", in part read in the buffers of the peers" : "";
}
const char* messages_of(const DevicePrediction& one) {
  if (one.marked) return "marked";
  if (one.lent_all) return "lent";
  return one.lent ? "lent in part" : "slots";
}

// The call as the library runs it now.
std::string detail_of_now(const DevicePrediction& now) {
  char line[256];
  std::snprintf(line, sizeof line, "cut as now, predicted: %s, %s, a chunk in %ju x %s bytes, %u %s%s, bound by %s (%.0f %%)\n",
                std::string(now.algorithm->name).c_str(), duration_text(now.seconds).c_str(), std::uintmax_t{now.slices},
                amount_text(static_cast<double>(now.slice_bytes)).c_str(), now.blocks, now.blocks == 1 ? "block" : "blocks",
                how_messages_go(now), std::string(name_of(now.outcome.path.binding())).c_str(),
                100 * share_of(now.outcome.path, now.outcome.path.binding()));
  return line;
}

void write_nccl(JsonWriter& json, const NcclFigure& figure) {
  json.key("nccl").open('{');
  if (figure.algorithm_gb > 0)
    json.key("bus_bytes_per_second").number(nccl_bus_gb(figure) * 1e9);
  else
    json.key("least_seconds").number(figure.least_us * 1e-6).key("most_seconds").number(figure.most_us * 1e-6);
  json.close('}');
}

void write_prediction(JsonWriter& json, const DevicePrediction& one, const NcclFigure* figure) {
  const DeviceOutcome& outcome = one.outcome;
  const LinkBytes bytes = link_bytes(outcome);
  json.open('{').key("kind").value("prediction").key("bytes").number(one.bytes).key("algorithm").value(one.algorithm->name);
  json.key("slices").number(one.slices).key("slice_bytes").number(one.slice_bytes).key("seconds").number(one.seconds);
  if (one.least_seconds > 0) json.key("least_seconds").number(one.least_seconds);
  json.key("blocks").number(std::uint64_t{one.blocks}).key("messages").value(messages_of(one));
  json.key("bus_bytes_per_second").number(one.bus_bytes_per_second);
  json.key("bound_by").value(name_of(outcome.path.binding()));
  json.key("exchanges").number(std::uint64_t{outcome.hops}).key("waits").number(std::uint64_t{outcome.path.waits});
  json.key("path_seconds").open('{');
  for (std::size_t cost = 0; cost < kDeviceCosts; ++cost)
    json.key(name_of(static_cast<DeviceCost>(cost))).number(outcome.path.ns[cost] * 1e-9);
  json.close('}').key("link_bytes").number(bytes.port).key("pair_bytes").number(bytes.pair);
  json.key("memory_bytes").number(most_of(outcome, &DeviceCounts::memory_bytes));
  json.key("barriers").number(most_of(outcome, &DeviceCounts::barriers));
  json.key("flags").number(most_of(outcome, &DeviceCounts::flags));
  json.key("workspace_bytes").number(std::uint64_t{outcome.workspace});
  if (figure != nullptr) write_nccl(json, *figure);
  json.close('}');
}

}  // namespace

std::string_view name_of(DeviceCost cost) {
  switch (cost) {
    case DeviceCost::flags:
      return "flags";
    case DeviceCost::fences:
      return "fences";
    case DeviceCost::barriers:
      return "barriers";
    case DeviceCost::latency:
      return "first bytes";
    case DeviceCost::blocks:
      return "blocks";
    case DeviceCost::memory:
      return "GPU memory";
    case DeviceCost::links:
      break;
  }
  return "GPU links";
}

std::string device_prediction_text(const Question& question, const std::vector<DeviceSize>& sizes, const DeviceModel& model) {
  const bool has_nccl = model.has_nccl_figures && question.collective == Collective::all_reduce;
  std::string text = title(question, model) + header(has_nccl);
  const bool is_one = sizes.size() == 1;
  for (const DeviceSize& size : sizes)
    for (std::size_t i = 0; i < (is_one ? size.fastest.size() : 1); ++i)
      text += row(size.fastest[i], i == 0 ? &size.now : nullptr, nccl_beside(question, model, size.now.bytes));
  if (is_one) text += detail(sizes.front().fastest.front()) + detail_of_now(sizes.front().now);
  if (has_nccl) text += std::string(kNcclSource) + "\n";
  text += "assumed:\n";
  for (const std::string& assumption : model.assumptions) text += "  " + assumption + "\n";
  return text + "  the model, and more assumptions: docs/scale.md\n";
}

std::string device_prediction_json(const Question& question, const std::vector<DeviceSize>& sizes, const DeviceModel& model) {
  JsonWriter json;
  json.open('{').key("kind").value("prediction").key("memory").value("device");
  json.key("collective").value(name_of(question.collective)).key("type").value(name_of(question.type));
  json.key("machine").value(model.machine).key("ranks").number(static_cast<std::uint64_t>(model.ranks));
  json.key("blocks").number(std::uint64_t{model.blocks}).key("sizes").open('[');
  for (const DeviceSize& size : sizes) {
    json.open('{').key("fastest_first").open('[');
    for (const DevicePrediction& one : size.fastest) write_prediction(json, one, nccl_beside(question, model, one.bytes));
    json.close(']').key("cut_as_now");
    write_prediction(json, size.now, nullptr);
    json.close('}');
  }
  json.close(']');
  if (model.has_nccl_figures && question.collective == Collective::all_reduce) json.key("nccl_source").value(kNcclSource);
  json.key("assumptions").open('[');
  for (const std::string& assumption : model.assumptions) json.value(assumption);
  json.close(']').close('}');
  return std::move(json).text();
}

}  // namespace seto
