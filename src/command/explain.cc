#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "include/seto/seto.h"
#include "src/base/text.h"
#include "src/command/commands.h"
#include "src/command/job.h"
#include "src/command/output.h"
#include "src/command/topology_files.h"

namespace seto::command {
namespace {

// A call of this size makes a communicator measure its links, if it measures at all.
constexpr std::size_t kMeasuringBytes = std::size_t{1} << 20;

// Sets bytes and bytesTo. Prints what is wrong with the text.
bool take_size(const ExplainOptions& options, setoQuestion_t& question) {
  if (options.size.empty() && options.collective == "barrier") return true;
  if (options.size.empty()) {
    std::fprintf(stderr, "seto: the size is missing: write it after the collective: seto explain %s 64M\n",
                 options.collective.c_str());
    return false;
  }
  const std::size_t dots = options.size.find("..");
  const std::optional<std::uint64_t> first = parse_size(options.size.substr(0, dots));
  const std::optional<std::uint64_t> last =
      dots == std::string::npos ? std::uint64_t{0} : parse_size(options.size.substr(dots + 2));
  if (first && last && (dots == std::string::npos || *last > 0)) {
    question.bytes = *first;
    question.bytesTo = *last;
    return true;
  }
  std::fprintf(stderr, "seto: size: '%s' is not a size; write 8, 64K or 64M after the collective, or 8..1G for a table\n",
               options.size.c_str());
  return false;
}

int print_answer(const setoQuestion_t& question, bool json) {
  return print(
      [&](char* text, size_t capacity, size_t* size) { return setoExplain(&question, format(json), text, capacity, size); });
}

// The ranks of the job make a communicator and let it measure its links. Rank 0 explains.
int explain_job(setoQuestion_t question, bool json) {
  JobCommunicator job;
  if (!job.init()) return kFailed;
  std::string numbers(kMeasuringBytes, '\0');
  if (setoAllReduce(numbers.data(), numbers.data(), numbers.size(), setoUint8, setoMax, job.comm(), nullptr) != setoSuccess) {
    std::fprintf(stderr, "seto: rank %d: %s\n", job.rank(), setoGetLastError(nullptr));
    return kFailed;
  }
  question.comm = job.comm();
  return job.rank() == 0 ? print_answer(question, json) : 0;
}

}  // namespace

int run(const ExplainOptions& options) {
  setoQuestion_t question = SETO_QUESTION_INITIALIZER;
  if (!take_size(options, question)) return kMisused;
  question.collective = options.collective.c_str();
  question.ranks = options.ranks;
  question.nodes = options.nodes;
  question.sites = options.sites;
  const std::vector<std::string>& paths = options.topology_files;
  TopologyFiles files;
  // The library reads a single file itself, and refuses it as an argument; it knows neither copies nor standard input.
  if (paths.size() == 1 && options.copies == 1 && paths.front() != "-" && paths.front().find('=') == std::string::npos)
    question.topologyFile = paths.front().c_str();
  else if (!files.read(paths, options.copies, false))
    return kFailed;
  const std::vector<setoTopologyText_t> texts = files.texts();
  question.files = texts.data();
  question.fileCount = texts.size();
  const bool states_ranks = options.ranks != 0 || options.nodes != 0 || options.sites != 0 || !paths.empty();
  return states_ranks || !is_in_job() ? print_answer(question, options.json) : explain_job(question, options.json);
}

}  // namespace seto::command
