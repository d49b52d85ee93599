#include "src/command/run/run.h"

#include <limits.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include "include/seto/seto.h"
#include "src/command/commands.h"
#include "src/command/files.h"
#include "src/command/run/hosts.h"
#include "src/command/run/job.h"
#include "src/command/run/signals.h"
#include "src/command/shell_word.h"

namespace seto::command {
namespace {

constexpr std::string_view kHere = "localhost";
constexpr std::string_view kSetHere[] = {"SETO_ROOT", "SETO_RANK", "SETO_RANKS"};

int misused(const Status& status) { return std::fprintf(stderr, "seto run: %s\n", std::string(status.text()).c_str()), kMisused; }

std::string own_host() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? std::string(name) : std::string();
}

std::string own_path() {
  char path[PATH_MAX] = {};
  return readlink("/proc/self/exe", path, sizeof path - 1) > 0 ? std::string(path) : std::string("seto");
}

Result<std::vector<Placement>> placements_of(const RunOptions& options) {
  if (options.hosts.empty() && options.host_file.empty()) {
    if (options.ranks == 0)
      return failure(Code::invalid_argument, "the number of ranks is missing: give -n N, or --hosts with slots");
    return place_ranks({{std::string(kHere), 0}}, options.ranks);
  }
  std::vector<HostSlots> hosts;
  if (!options.hosts.empty()) {
    SETO_ASSIGN(hosts, parse_hosts(options.hosts));
  } else {
    std::string text;
    if (!read_file(options.host_file, text))
      return system_failure(Code::invalid_argument, "--hostfile %s", options.host_file.c_str());
    SETO_ASSIGN(hosts, parse_host_file(text));
  }
  return place_ranks(hosts, options.ranks);
}

Status set_variable(std::vector<std::string>& variables, const std::string& given) {
  const std::string name = given.substr(0, given.find('='));
  if (name.empty()) return failure(Code::invalid_argument, "--env %s: write NAME=VALUE, or NAME", given.c_str());
  for (const std::string_view own : kSetHere)
    if (name == own) return failure(Code::invalid_argument, "--env %s: seto run sets this variable itself", name.c_str());
  std::erase_if(variables, [&](const std::string& other) { return other.substr(0, other.find('=')) == name; });
  const char* const value = std::getenv(name.c_str());
  if (name.size() < given.size()) {
    variables.push_back(given);
  } else if (value != nullptr) {
    variables.push_back(name + "=" + value);
  }
  return {};
}

// The variables that are set on every host: the SETO_* variables of this process, and those that the user names.
Result<std::vector<std::string>> variables_of(const RunOptions& options) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable(*entry);
    bool own = false;
    for (const std::string_view name : kSetHere) own = own || variable.substr(0, variable.find('=')) == name;
    if (variable.starts_with("SETO_") && !own) variables.push_back(variable);
  }
  for (const std::string& given : options.variables) SETO_TRY(set_variable(variables, given));
  return variables;
}

Result<std::string> root_of_job() {
  setoUniqueId id;
  if (setoGetJobId(&id) != setoSuccess) return failure(Code::unavailable, "%s", setoGetLastError(nullptr));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "id:";
  for (const char byte : id.internal) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

Prefix prefix_of(const RunOptions& options, int ranks) {
  if (options.no_prefix || (ranks == 1 && !options.prefix)) return Prefix::none;
  const char* const no_colour = std::getenv("NO_COLOR");
  const bool plain = no_colour != nullptr && *no_colour != '\0';
  return isatty(STDOUT_FILENO) != 0 && !plain ? Prefix::coloured : Prefix::plain;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

Result<JobOptions> job_of(const RunOptions& options) {
  JobOptions job;
  if (options.program.empty()) return failure(Code::invalid_argument, "the program is missing: write it after --");
  SETO_ASSIGN(job.placements, placements_of(options));
  job.program.arguments = options.program;
  SETO_ASSIGN(job.program.variables, variables_of(options));
  job.program.ranks = 0;
  for (const Placement& placement : job.placements) job.program.ranks += static_cast<int>(placement.ranks.size());
  job.here = {std::string(kHere), own_host()};
  char directory[PATH_MAX] = {};
  const bool beyond = job.placements.size() > 1 || !job.here.contains(job.placements.front().host);
  if (beyond && getcwd(directory, sizeof directory) != nullptr) job.program.directory = directory;
  job.shell.words = words_of(options.remote_shell);
  if (job.shell.words.empty()) return failure(Code::invalid_argument, "--ssh names no command");
  job.shell.seto = options.remote_seto.empty() ? quoted_at_need(own_path()) : options.remote_seto;
  job.prefix = prefix_of(options, job.program.ranks);
  job.output = job.prefix == Prefix::none ? Output::inherited : Output::collected;
  job.timeout_ms = static_cast<std::uint64_t>(options.timeout_s * 1000);
  job.grace_ms = static_cast<std::uint64_t>(options.grace_s * 1000);
  return job;
}

}  // namespace

int run(const RunOptions& options) {
  Result<JobOptions> job = job_of(options);
  if (!job.ok()) return misused(job.status());
  Result<Signals> signals = Signals::take_over();
  if (!signals.ok()) return misused(signals.status());
  Result<std::string> root = root_of_job();
  if (!root.ok()) return misused(root.status());
  job->program.root = std::move(root).value();
  return Job(std::move(job).value(), std::move(signals).value()).run();
}

}  // namespace seto::command
