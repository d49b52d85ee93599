#include "src/report/simulation.h"

#include <string>
#include <utility>

#include "src/api/support/handles.h"
#include "src/api/support/settings.h"
#include "src/api/support/text_target.h"
#include "src/api/support/topology_files.h"
#include "src/core/choice/codec_setting.h"
#include "src/core/choice/link_codec.h"
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

Result<std::string> simulated(const setoSimulation_t& asked, int format) {
  SETO_TRY(check_struct(&asked, {"simulation", sizeof(setoSimulation_t), sizeof(setoSimulation_t), SETO_SIMULATION_MAGIC}));
  if (asked.collective == nullptr) return null_argument("collective");
  if (asked.files == nullptr || asked.fileCount == 0) return null_argument("files");
  const int type = number_in(asked.datatype);
  if (type < 0 || type >= setoNumTypes) return failure(Code::invalid_argument, "datatype: %d is not a setoDataType_t", type);
  SETO_ASSIGN(const Settings settings, settings_of_environment());
  SETO_ASSIGN(TopologyGraph graph, graph_of(asked.files, asked.fileCount));
  CostModel costs;
  if (!settings.config.tuning_file.empty()) {
    SETO_ASSIGN(costs, read_costs(settings.config.tuning_file));
  }
  SETO_ASSIGN(const GraphFacts facts, facts_of_graph(std::move(graph), asked.ranks, costs, site_rates_of(settings.config)));
  SimulationModel model = model_of(facts);
  Question question;
  SETO_ASSIGN(question.collective, collective_of(asked.collective));
  question.type = static_cast<DataType>(type);
  question.ranks = model.tiers.ranks();
  question.bytes = part_bytes(question.collective, asked.bytes, question.ranks);
  question.deterministic = settings.config.deterministic;
  question.crowding = question.deterministic ? 1 : model.crowding;
  question.pin = asked.algorithm == nullptr ? std::string_view(settings.config.algorithm) : asked.algorithm;
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
