#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "include/seto/seto.h"
#include "src/command/commands.h"
#include "src/command/files.h"
#include "src/command/job.h"
#include "src/command/output.h"
#include "src/command/probe/site_probe.h"
#include "src/command/topology_files.h"

namespace seto::command {
namespace {

// The topologies of all hosts of the job, on rank 0, and that of this rank in `own`. Collective. `complete` is the same on all
// ranks: whether every rank could describe its host. Returns the exit status of a failure, which has been printed.
int gather_hosts(const JobCommunicator& job, TopologyFiles& files, std::string& own, bool& complete) {
  int status = 0;
  own =
      ask([&](char* text, size_t capacity, size_t* size) { return setoCommTopology(job.comm(), text, capacity, size); }, status);
  if (status != 0) own.clear();  // the other ranks wait for this one
  const std::uint64_t size = own.size();
  std::uint64_t longest = 0;
  const int failed_rank = status != 0 ? job.rank() : -1;
  int last_failed = -1;
  const auto ranks = static_cast<std::size_t>(job.ranks());
  bool good = setoAllReduce(&size, &longest, 1, setoUint64, setoMax, job.comm(), nullptr) == setoSuccess &&
              setoAllReduce(&failed_rank, &last_failed, 1, setoInt32, setoMax, job.comm(), nullptr) == setoSuccess;
  std::string padded = own;
  padded.resize(longest, ' ');
  std::string all(job.rank() == 0 ? longest * ranks : 0, '\0');
  good = good && setoGather(padded.data(), all.data(), longest, setoUint8, 0, job.comm(), nullptr) == setoSuccess;
  if (!good) {
    std::fprintf(stderr, "seto: rank %d: %s\n", job.rank(), setoGetLastError(nullptr));
    return kFailed;
  }
  complete = last_failed < 0;
  own.resize(own.find_last_not_of(" \n") + 1);
  for (std::size_t rank = 0; job.rank() == 0 && rank < ranks; ++rank) {
    std::string text = all.substr(rank * longest, longest);
    text.resize(text.find_last_not_of(" \n") + 1);
    if (!text.empty()) files.add("rank " + std::to_string(rank), std::move(text));
  }
  if (job.rank() == 0 && last_failed > 0) {
    std::fprintf(stderr, "seto: rank %d could not describe its host (it printed the reason), so the topology would lack it\n",
                 last_failed);
    return kFailed;
  }
  return status;
}

int describe(const TopoOptions& options, const TopologyFiles& files) {
  const std::vector<setoTopologyText_t> texts = files.texts();
  const auto described = [&](setoFormat_t wanted) {
    return [&texts, wanted](char* text, size_t capacity, size_t* size) {
      return setoTopology(texts.data(), texts.size(), wanted, text, capacity, size);
    };
  };
  if (!options.svg.empty()) {
    int status = 0;
    const std::string drawing = ask(described(setoFormatSvg), status);
    if (status != 0) return status;
    if (write_file(options.svg, drawing)) return 0;
    std::fprintf(stderr, "seto: cannot write %s: %s\n", options.svg.c_str(), std::strerror(errno));
    return kFailed;
  }
  return print(described(options.xml ? setoFormatXml : format(options.json)));
}

// Adds the measured rates between sites to the topology of the job, on rank 0. Collective.
int add_probed(const JobCommunicator& job, const std::string& own, TopologyFiles& files) {
  ProbedSites probed;
  const int status = probe_sites(job, own, probed);
  if (status != 0 || job.rank() != 0) return status;
  if (probed.links == 0)
    std::fprintf(stderr,
                 "seto: --probe: the job has one site, so there are no links between sites (SETO_SITE_ID states sites)\n");
  else
    files.add("probe", std::move(probed.topology));
  return 0;
}

int describe_job(const TopoOptions& options) {
  JobCommunicator job;
  if (!job.init()) return kFailed;
  TopologyFiles files;
  std::string own;
  bool complete = false;
  int status = gather_hosts(job, files, own, complete);
  if (status == 0 && complete && options.probe) status = add_probed(job, own, files);
  return status != 0 || job.rank() != 0 ? status : describe(options, files);
}

}  // namespace

int run(const TopoOptions& options) {
  if (options.files.empty() && !options.this_machine && is_in_job()) return describe_job(options);
  if (options.probe) {
    std::fprintf(stderr,
                 "seto: --probe: this is no job, so there is nothing to probe: seto run -n 2 --hosts a,b -- seto topo --probe\n");
    return kMisused;
  }
  if (options.files.empty() && std::getenv("SETO_TOPOLOGY_FILE") != nullptr)
    std::fprintf(
        stderr, "seto: SETO_TOPOLOGY_FILE is for jobs; this prints the topology of this machine (--from FILE: that of a file)\n");
  TopologyFiles files;
  return files.read(options.files, options.copies, options.this_machine) ? describe(options, files) : kFailed;
}

}  // namespace seto::command
