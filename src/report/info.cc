#include "src/report/info.h"

#include <openssl/crypto.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "src/base/config_table.h"
#include "src/base/json_writer.h"
#include "src/codec/codec.h"
#include "src/core/call/ids.h"
#include "src/core/choice/kept_constants.h"
#include "src/core/communicator/communicator.h"
#include "src/core/connect/transport_list.h"
#include "src/core/device_memory/gpu_context.h"
#include "src/core/gpu_direct/gpu_reach.h"
#include "src/device/cuda/gpu_facts.h"
#include "src/device/reduce.h"
#include "src/engine/kernels/kernel_images.h"
#include "src/report/host_facts.h"

namespace seto {
namespace {

struct Row {
  std::string name;
  std::string value;
  std::string remark;
  std::string meaning{};  // printed on a line of its own if only its section is shown
};
struct Section {
  std::string_view title;
  std::vector<Row> rows;
};

Section build_section() {
  std::string compiler = "g++ ";
#if defined(__clang__)
  compiler = "clang ";
#endif
  Section section{"build", {{"compiler", compiler + __VERSION__, ""}}};
#if defined(NDEBUG)
  section.rows.push_back({"assertions", "off", ""});
#else
  section.rows.push_back({"assertions", "on", ""});
#endif
  section.rows.push_back({"OpenSSL", OpenSSL_version(OPENSSL_VERSION), "authenticates the processes of a job"});
#if __has_include(<nlohmann/json.hpp>)
  section.rows.push_back({"reports on dumps", "yes", ""});
#else
  section.rows.push_back({"reports on dumps", "no", "built without nlohmann-json"});
#endif
  const cuda::KernelImages kernels = kernels::kernel_images();
  section.rows.push_back({"kernels", kernels.architectures, kernels.origin});
  section.rows.push_back({"device memory", kernels.images.empty() ? "no" : "yes", "of ranks of one host or several"});
  return section;
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

Section machine_section(const Config& config) {
  const HostFacts facts = facts_of_host(config);
  Section section{"machine",
                  {{"system", facts.kernel, ""},
                   {"processor", facts.processor, ""},
                   {"usable cores", std::to_string(facts.usable_cores), "of " + std::to_string(facts.online_cores)},
                   {"memory", mebibytes(facts.memory), mebibytes(facts.free_memory) + " free"},
                   {"page bytes", std::to_string(sysconf(_SC_PAGESIZE)), "huge pages: " + facts.huge_pages},
                   {"reduction kernels", instruction_set(), ""},
                   {"clock", facts.clock_source, facts.steady_ticks ? "steady time stamps" : "time stamps may be uneven"},
                   {"shared memory", facts.has_memfd ? "yes" : "no", facts.has_membarrier ? "" : "without membarrier"},
                   {"congestion control", facts.congestion, facts.congestion_choice}}};
  for (const HostFacts::Network& one : facts.networks)
    section.rows.push_back({"interface " + one.name, one.addresses, one.kind + (one.up ? "" : ", down")});
  section.rows.push_back({"reached at", facts.network_trouble.empty() ? facts.chosen : facts.network_trouble, ""});
  return section;
}

Section config_section(const Config& config) {
  Section section{"config", {}};
  for (std::size_t field = 0; field < kConfigFieldCount; ++field)
    section.rows.push_back({std::string(kConfigTable[field].name), value_text(config, static_cast<ConfigField>(field)),
                            std::string(name_of(config.origins[field])),
                            std::string(kConfigTable[field].help) + "; " + allowed_text(kConfigTable[field])});
  return section;
}

// The constants in the form of a SETO_TUNING_FILE.
Section constants_section() {
  Section section{"constants", {}};
  std::istringstream lines(costs_text({}));
  for (Row row; lines >> row.name >> row.value;) section.rows.push_back(row);
  return section;
}

std::string microseconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g us", seconds * 1e6);
  return text.data();
}

std::string node_words(const TierCost& node) {
  std::array<char, 32> rate{};
  std::snprintf(rate.data(), rate.size(), "%.3g GB/s", node.bytes_per_second / 1e9);
  std::array<char, 64> cache{};
  if (node.cached_bytes_per_second > 0)
    std::snprintf(cache.data(), cache.size(), ", %.3g GB/s within %.4g KiB", node.cached_bytes_per_second / 1e9,
                  node.cached_bytes / 1024);
  std::array<char, 48> lending{};
  std::snprintf(lending.data(), lending.size(), ", long messages from %.3g KiB", node.long_message_bytes / 1024);
  return microseconds(node.latency_seconds) + ", " + rate.data() + ", " + microseconds(node.message_seconds) + " a message" +
         cache.data() + lending.data();
}

// The constants of nodes that earlier jobs of this user measured.
Section calibration_section() {
  const KeptFiles files = KeptFiles::of_user();
  if (files.folder().empty())
    return {"calibration", {{"folder", "none", "each process measures: neither XDG_CACHE_HOME nor HOME names a folder"}}};
  Section section{"calibration", {{"folder", files.folder(), ""}}};
  const MeasuredMachine here = MeasuredMachine::here(usable_cores(), 1);
  for (const KeptFiles::Listed& one : files.all()) {
    if (!one.constants.ok()) {
      section.rows.push_back({one.file, "not used", std::string(one.constants.status().text())});
      continue;
    }
    const KeptConstants& kept = one.constants.value();
    const MeasuredMachine& machine = one.machine;
    const bool is_here = machine.processor == here.processor && machine.kernel == here.kernel && machine.build == here.build;
    const std::string jobs = std::to_string(kept.jobs) + (kept.jobs == 1 ? " job" : " jobs");
    const std::string use = kept.suffices() ? "the next ones use it" : "measured until " + std::to_string(KeptConstants::kEnough);
    section.rows.push_back({one.file, node_words(kept.node), jobs + ": " + (is_here ? use : "another machine or build")});
  }
  if (section.rows.size() == 1) section.rows[0].remark = "no job has measured yet";
  return section;
}

Section algorithms_section() {
  Section section{"algorithms", {}};
  for (int value = 0; value < kCollectiveCount; ++value) {
    Row row{std::string(name_of(static_cast<Collective>(value))), "", ""};
    for (const Algorithm& algorithm : algorithms())
      if (algorithm.collective == static_cast<Collective>(value))
        row.value += (row.value.empty() ? "" : ", ") + std::string(algorithm.name);
    section.rows.push_back(std::move(row));
  }
  return section;
}

Section codecs_section() {
  Section section{"codecs", {{"none", "exact", ""}}};
  for (int value = 0; value < kCodecCount; ++value) {
    const CodecFacts& facts = facts_of(static_cast<Codec>(value));
    const double bits = facts.bits + 8.0 * facts.header_size / facts.block;
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.4g bits for each element", bits);
    section.rows.push_back({std::string(facts.name), text.data(), "blocks of " + std::to_string(facts.block)});
  }
  return section;
}

Section status_section() {
  return {"status",
          {{"host memory, one machine", "works", ""},
           {"several machines", "works", "over TCP; connections between sites are encrypted, and resumed when they are cut"},
           {"rates between sites", "assumed: 125 MB/s, version 0",
            "until SETO_SITE_UPLINK_MBIT states them, or the traffic of a job shows them; in the job, seto explain says them"},
           {"heartbeats", "works", "a process that ends is detected at once, a frozen one after SETO_LIVENESS_TIMEOUT_MS"},
           {"flight recorder, report, doctor", "works", ""},
           {"device memory", "works", "on a stand-in for the CUDA driver; no GPU has run it"},
           {"codecs", "works", "sums of floats over TCP and shared memory (SETO_CODEC), with error feedback"},
           {"shrink, grow, revoke", "not yet", "setoCommAbort ends this rank's communicator"},
           {"RDMA", "works", "between hosts of one stated site (SETO_SITE_ID, SETO_RDMA); memory of the host only"}}};
}

constexpr std::string_view kGpuTopic = "gpus";

// Asking the driver for its GPUs initialises CUDA in this process, so that a process that it forks later cannot use them.
Section gpus_section() {
  const cuda::GpuReport report = cuda::report_gpus();
  Section section{kGpuTopic, {{"CUDA driver", report.driver.empty() ? "none" : report.driver, report.trouble}}};
  for (const cuda::GpuFacts& gpu : report.gpus)
    section.rows.push_back({"GPU " + std::to_string(gpu.number), gpu.name, cuda::facts_text(gpu)});
  return section;
}

// A row for each RDMA device says whether it reaches memory of that GPU. The trial needs a context of the GPU, so without devices
// there is none.
void add_reach_rows(const cuda::GpuFacts& gpu, const Config& config, std::vector<Row>& rows) {
  const std::string name = "memory of GPU " + std::to_string(gpu.number);
  const auto context = GpuContext::of_device(gpu.number);
  if (!context.ok()) return rows.push_back({name, "not tried", std::string(context.status().text())});
  const ContextScope scope(*context.value());
  if (!scope.status().ok()) return rows.push_back({name, "not tried", std::string(scope.status().text())});
  for (const GpuReach& reach : reach_of_gpu(context.value()->driver(), gpu.number, config))
    rows.push_back({name + ": " + reach.device, words_of(reach), reach.why_less});
}

// With the trials, which take a context on each GPU and up to 2 s for each.
Section gpus_and_reach_section(const Config& config) {
  Section section = gpus_section();
  const Result<std::vector<PortWords>> ports = rdma_ports();
  if (!ports.ok() || ports.value().empty()) return section;
  for (const cuda::GpuFacts& gpu : cuda::report_gpus().gpus) add_reach_rows(gpu, config, section.rows);
  return section;
}

constexpr std::string_view kRdmaTopic = "rdma";

// The ports of RDMA devices, as a communicator would use them.
Section rdma_section() {
  const Result<std::vector<PortWords>> ports = rdma_ports();
  if (!ports.ok()) return {kRdmaTopic, {{"devices", "cannot be used", std::string(ports.status().text())}}};
  Section section{kRdmaTopic, {}};
  for (const PortWords& port : ports.value()) section.rows.push_back({port.name, port.state, port.remark});
  if (section.rows.empty()) section.rows.push_back({"devices", "none", "the kernel lists none in /sys/class/infiniband"});
  return section;
}

std::vector<Section> sections(std::string_view topic, std::string_view version, const Config& config) {
  Section gpus{kGpuTopic, {}};
  if (topic == kGpuTopic) gpus = gpus_and_reach_section(config);
  if (topic.empty()) gpus = gpus_section();
  return {{"version", {{"seto", std::string(version), ""}}},
          build_section(),
          machine_section(config),
          std::move(gpus),
          topic.empty() || topic == kRdmaTopic ? rdma_section() : Section{kRdmaTopic, {}},
          config_section(config),
          constants_section(),
          calibration_section(),
          {"transports",
           {{"local", "yes", "ranks of one process"},
            {"shm", "yes", "processes of one machine"},
            {"tcp", "yes", "processes of several machines"}}},
          algorithms_section(),
          codecs_section(),
          status_section()};
}

std::string as_text(const std::vector<Section>& all) {
  std::string text;
  for (const Section& section : all) {
    if (all.size() > 1) {
      if (!text.empty()) text += '\n';
      text.append(section.title).append("\n");
    }
    std::size_t width = 0;
    for (const Row& row : section.rows) width = std::max(width, row.name.size());
    for (const Row& row : section.rows) {
      text.append(all.size() > 1 ? 2 : 0, ' ').append(row.name).append(width - row.name.size() + 2, ' ').append(row.value);
      if (!row.remark.empty()) text.append("  (").append(row.remark).append(")");
      text += '\n';
      if (all.size() == 1 && !row.meaning.empty()) text.append("    ").append(row.meaning).append("\n");
    }
  }
  return text;
}

std::string as_json(const std::vector<Section>& all) {
  JsonWriter json;
  json.open('{');
  for (const Section& section : all) {
    json.key(section.title).open('{');
    for (const Row& row : section.rows) {
      json.key(row.name).open('{').key("value").value(row.value);
      if (!row.remark.empty()) json.key("remark").value(row.remark);
      if (!row.meaning.empty()) json.key("meaning").value(row.meaning);
      json.close('}');
    }
    json.close('}');
  }
  json.close('}');
  return std::move(json).text();
}

std::string formatted(const std::vector<Section>& all, ReportFormat format) {
  return format == ReportFormat::text ? as_text(all) : as_json(all);
}

}  // namespace

std::string makeup_of(const Communicator& communicator) {
  static constexpr const char* kPlaces[] = {" a node", " nodes a site", " sites"};
  const Tiers& tiers = communicator.tiers();
  std::string spread;
  for (int tier = 0; tier < tiers.count(); ++tier)
    spread +=
        (spread.empty() ? "" : ", ") + std::to_string(tiers.size(tier)) + kPlaces[static_cast<std::size_t>(tiers.kind(tier))];
  const int threads = communicator.others_of_process();
  const int beyond = communicator.others_over_network();
  return "communicator '" + communicator.name() + "' of " + std::to_string(communicator.ranks()) + " ranks (" +
         (tiers.uniform() ? spread : "on nodes or sites of different sizes, at most " + spread) + "); of the other ranks " +
         std::to_string(threads) + " are threads of this process, " +
         std::to_string(communicator.ranks() - 1 - threads - beyond) + " other processes of this host, " +
         std::to_string(beyond) + " reached over TCP; " + constants_text(tiers, communicator.costs());
}

Result<std::string> info(std::string_view topic, std::string_view version, const Config& config, ReportFormat format) {
  std::vector<Section> all = sections(topic, version, config);
  if (topic.empty()) return formatted(all, format);
  std::vector<std::string_view> known;
  for (Section& section : all) {
    if (section.title == topic) return formatted({std::move(section)}, format);
    known.push_back(section.title);
  }
  return failure(Code::invalid_argument, "topic: '%.64s' is unknown; the topics are %s", std::string(topic).c_str(),
                 listed(known, topic).c_str());
}

}  // namespace seto
