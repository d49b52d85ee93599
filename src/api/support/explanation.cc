#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/api/support/handles.h"
#include "src/api/support/text_target.h"
#include "src/api/support/topology_files.h"
#include "src/core/communicator/communicator.h"
#include "src/report/explain.h"
#include "src/report/explain_sizes.h"
#include "src/report/graph_facts.h"
#include "src/topology/xml/file_text.h"
#include "src/topology/xml/topology_file.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

Result<TopologyGraph> read_graph(const char* path) {
  const Result<std::string> text = topology_file_text(path);
  if (!text.ok()) return failure(Code::invalid_argument, "topologyFile: %s", std::string(text.status().text()).c_str());
  Result<TopologyGraph> graph = read_topology(text.value());
  if (graph.ok()) return graph;
  return failure(Code::invalid_argument, "topologyFile: %s: %s", path, std::string(graph.status().text()).c_str());
}

Result<CostModel> costs_of(const Config& config) {
  CostModel costs;
  if (!config.tuning_file.empty()) {
    SETO_ASSIGN(costs, read_costs(config.tuning_file));
  }
  const bool is_fixed = config.deterministic || config.calibrate == Calibrate::off;
  if (config.tuning_file.empty() && !is_fixed) costs.source = CostSource::expected;
  costs.sites_are_stated = true;
  return costs;
}

// A question with what the caller and the environment state about it. Sizes come last, because the codec depends on them.
struct Asked {
  const setoQuestion_t& question;
  ReportFormat format;
  Question base;

  [[nodiscard]] bool has_range() const { return question.bytesTo != 0; }
  [[nodiscard]] Result<std::string> sizes(const SizesInput& input) const {
    return explain_sizes(base, question.bytes, question.bytesTo, input, format);
  }
};

Result<std::string> on_communicator(Asked asked) {
  SETO_TRY(check_handle(asked.question.comm));
  const std::shared_ptr<Communicator> communicator = asked.question.comm->communicator();
  if (communicator == nullptr) return asked.question.comm->why_unusable();
  asked.base = question_on(*communicator, asked.base);
  const CostModel costs = communicator->costs();
  const SizesInput input{communicator->tiers(), costs, communicator->config().codec};
  if (asked.has_range()) return asked.sizes(input);
  SETO_ASSIGN(const Question sized, of_size(asked.base, asked.question.bytes, input.codec, input.tiers, input.costs));
  return explain_on(*communicator, sized, asked.format);
}

Result<TopologyGraph> stated_graph(const setoQuestion_t& question) {
  if (question.fileCount == 0) return read_graph(question.topologyFile);
  if (question.topologyFile != nullptr)
    return failure(Code::invalid_argument, "topologyFile: files are given, too: give one of them");
  return graph_of(question.files, question.fileCount);
}

Result<std::string> on_files(Asked asked, const Settings& settings) {
  if (asked.question.nodes != 0 || asked.question.sites != 0)
    return failure(Code::invalid_argument, "topologyFile: it states the hosts and sites, so nodes and sites must be 0");
  SETO_ASSIGN(TopologyGraph graph, stated_graph(asked.question));
  SETO_ASSIGN(const CostModel costs, costs_of(settings.config));
  SETO_ASSIGN(const GraphFacts facts,
              facts_of_graph(std::move(graph), asked.question.ranks, costs, site_rates_of(settings.config)));
  asked.base.ranks = facts.tiers.ranks();
  asked.base.crowding = asked.base.deterministic ? 1 : facts.crowding;
  const SizesInput input{facts.tiers, facts.costs, settings.config.codec};
  if (asked.has_range()) return asked.sizes(input);
  SETO_ASSIGN(const Question sized, of_size(asked.base, asked.question.bytes, input.codec, input.tiers, input.costs));
  return explain_graph(sized, facts, asked.format, settings.config);
}

Result<std::string> on_made_up_ranks(Asked asked, const Settings& settings) {
  asked.base.ranks = asked.question.ranks == 0 ? 2 : asked.question.ranks;
  SETO_ASSIGN(Tiers tiers, made_up_tiers(asked.base.ranks, std::max(1, asked.question.nodes), std::max(1, asked.question.sites)));
  tiers.take_rates(
      std::vector<PortRates>(static_cast<std::size_t>(std::max(1, asked.question.sites)), site_rates_of(settings.config)));
  SETO_ASSIGN(const CostModel costs, costs_of(settings.config));
  const SizesInput input{tiers, costs, settings.config.codec};
  asked.base.crowding = asked.base.deterministic ? 1 : crowding_here(tiers);
  if (asked.has_range()) return asked.sizes(input);
  SETO_ASSIGN(const Question sized, of_size(asked.base, asked.question.bytes, input.codec, input.tiers, input.costs));
  return explain(sized, tiers, costs, asked.format, settings.config);
}

Result<std::string> answer(const setoQuestion_t& question, ReportFormat format) {
  SETO_TRY(check_struct(&question, {"question", sizeof(setoQuestion_t), sizeof(setoQuestion_t), SETO_QUESTION_MAGIC}));
  if (question.collective == nullptr) return null_argument("collective");
  const int datatype = number_in(question.datatype);
  if (datatype < 0 || datatype >= setoNumTypes)
    return failure(Code::invalid_argument, "datatype: %d is not a setoDataType_t", datatype);
  Asked asked{question, format, {}};
  SETO_ASSIGN(asked.base.collective, collective_of(question.collective));
  asked.base.type = static_cast<DataType>(datatype);
  if (question.comm != nullptr) return on_communicator(std::move(asked));
  SETO_ASSIGN(const Settings settings, settings_of_environment());
  asked.base.pin = settings.config.algorithm;
  asked.base.deterministic = settings.config.deterministic;
  const bool states_hosts = question.topologyFile != nullptr || question.fileCount > 0;
  return states_hosts ? on_files(std::move(asked), settings) : on_made_up_ranks(std::move(asked), settings);
}

}  // namespace

extern "C" {

setoResult_t setoExplain(const setoQuestion_t* question, setoFormat_t format, char* text, size_t capacity, size_t* size) {
  return enter([&]() -> Status {
    if (question == nullptr) return null_argument("question");
    const Target target{text, capacity, size};
    SETO_TRY(check_target(target));
    const int wanted = number_in(format);
    if (wanted != setoFormatText && wanted != setoFormatJson)
      return failure(Code::invalid_argument, "format: %d is neither setoFormatText nor setoFormatJson", wanted);
    return write(target, answer(*question, wanted == setoFormatJson ? ReportFormat::json : ReportFormat::text));
  });
}

}  // extern "C"
