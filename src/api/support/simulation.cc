#include "src/report/simulation.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/api/support/handles.h"
#include "src/api/support/settings.h"
#include "src/api/support/text_target.h"
#include "src/api/support/topology_files.h"
#include "src/base/text.h"
#include "src/core/choice/codec_setting.h"
#include "src/core/choice/link_codec.h"
#include "src/report/device/device_prediction.h"
#include "src/report/device/device_prediction_text.h"
#include "src/report/explain.h"
#include "src/report/simulation_text.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

Status allow_codecs(Question& question, const Config& config, const SimulationModel& model) {
  if (config.codec.empty()) {
    allow_link_codec(question, ReduceOp::sum, model.tiers, model.costs);
    return {};
  }
  SETO_ASSIGN(const CodecSetting codec, CodecSetting::parse(config.codec));
  allow_codec(question, ReduceOp::sum, codec, model.tiers);
  return {};
}

Result<bool> is_on_devices(const setoSimulation_t& asked) {
  const std::string_view memory = asked.memory == nullptr ? "host" : asked.memory;
  if (memory != "host" && memory != "device")
    return failure(Code::invalid_argument, "memory: '%.64s' is not host or device", escaped(memory).c_str());
  if (asked.blocks != 0 && memory == "host")
    return failure(Code::invalid_argument, "blocks: %d; only a call on device memory has blocks", asked.blocks);
  return memory == "device";
}

// The sizes of a prediction: the one that was asked for, or a table.
std::vector<std::uint64_t> sizes_of(const setoSimulation_t& asked, Collective collective) {
  if (asked.bytes != 0 || collective == Collective::barrier) return {asked.bytes};
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = kFirstPredictedSize; size <= kLastPredictedSize; size *= 2) sizes.push_back(size);
  return sizes;
}

Result<std::string> predicted(const setoSimulation_t& asked, Question question, const TopologyGraph& graph, int format) {
  if (format == setoFormatSvg)
    return failure(Code::invalid_argument, "format: a prediction for device memory has no chart; ask for text or JSON");
  if (asked.blocks < 0) return failure(Code::invalid_argument, "blocks: %d is not one of 1 to %u", asked.blocks, kMostBlocks);
  const std::uint32_t blocks = asked.blocks == 0 ? kDefaultBlocks : static_cast<std::uint32_t>(asked.blocks);
  SETO_ASSIGN(const DeviceModel model, device_model_of(graph, asked.ranks, blocks));
  question.ranks = model.ranks;
  std::vector<DeviceSize> sizes;
  for (const std::uint64_t bytes : sizes_of(asked, question.collective)) {
    SETO_ASSIGN(sizes.emplace_back(), predict_size(question, bytes, model));
  }
  return format == setoFormatJson ? device_prediction_json(question, sizes, model)
                                  : device_prediction_text(question, sizes, model);
}

Result<std::string> simulated(const setoSimulation_t& asked, int format) {
  SETO_TRY(check_struct(&asked, {"simulation", sizeof(setoSimulation_t), sizeof(setoSimulation_t), SETO_SIMULATION_MAGIC}));
  if (asked.collective == nullptr) return null_argument("collective");
  if (asked.files == nullptr || asked.fileCount == 0) return null_argument("files");
  const int type = number_in(asked.datatype);
  if (type < 0 || type >= setoNumTypes) return failure(Code::invalid_argument, "datatype: %d is not a setoDataType_t", type);
  SETO_ASSIGN(const bool on_devices, is_on_devices(asked));
  SETO_ASSIGN(const Settings settings, settings_of_environment());
  Question question;
  SETO_ASSIGN(question.collective, collective_of(asked.collective));
  question.type = static_cast<DataType>(type);
  question.pin = asked.algorithm == nullptr ? std::string_view(settings.config.algorithm) : asked.algorithm;
  SETO_ASSIGN(TopologyGraph graph, graph_of(asked.files, asked.fileCount));
  if (on_devices) return predicted(asked, question, graph, format);
  CostModel costs;
  if (!settings.config.tuning_file.empty()) {
    SETO_ASSIGN(costs, read_costs(settings.config.tuning_file));
  }
  SETO_ASSIGN(const GraphFacts facts, facts_of_graph(std::move(graph), asked.ranks, costs, site_rates_of(settings.config)));
  SimulationModel model = model_of(facts);
  question.ranks = model.tiers.ranks();
  question.bytes = part_bytes(question.collective, asked.bytes, question.ranks);
  question.deterministic = settings.config.deterministic;
  question.crowding = question.deterministic ? 1 : model.crowding;
  SETO_TRY(allow_codecs(question, settings.config, model));
  SETO_ASSIGN(const Simulation simulation, simulate_call(question, model, format == setoFormatSvg ? Trace::kept : Trace::none));
  if (format == setoFormatSvg) return simulation_svg(simulation);
  return format == setoFormatJson ? simulation_json(simulation, model) : simulation_text(simulation, model);
}

}  // namespace

extern "C" {

setoResult_t setoSimulatePlan(const setoSimulation_t* simulation, setoFormat_t format, char* text, size_t capacity,
                              size_t* size) {
  return enter([&]() -> Status {
    if (simulation == nullptr) return null_argument("simulation");
    const Target target{text, capacity, size};
    SETO_TRY(check_target(target));
    const int wanted = number_in(format);
    if (wanted != setoFormatText && wanted != setoFormatJson && wanted != setoFormatSvg)
      return failure(Code::invalid_argument, "format: %d is not setoFormatText, setoFormatJson or setoFormatSvg", wanted);
    return write(target, simulated(*simulation, wanted));
  });
}

}  // extern "C"
