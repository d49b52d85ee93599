#include "src/command/doctor/doctor.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "src/command/commands.h"
#include "src/command/output.h"

namespace seto::command {
namespace {

struct Closed {
  explicit Closed(setoComm_t held) : comm(held) {}
  ~Closed() {
    if (comm != nullptr) (void)setoCommDestroy(comm);
  }
  Closed(const Closed&) = delete;
  Closed& operator=(const Closed&) = delete;
  setoComm_t comm;
};

// Colours each line by the level at its beginning.
std::string in_colour(const std::string& text) {
  if (!colours()) return text;
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    const std::size_t word = line.find(' ');
    const std::string level = line.substr(0, word);
    if (level == "bad")
      result += coloured(Colour::red, level) + line.substr(word);
    else if (level == "warn")
      result += coloured(Colour::yellow, level) + line.substr(word);
    else if (level == "ok")
      result += coloured(Colour::green, level) + line.substr(word);
    else
      result += line;
    at = end;
  }
  return result;
}

std::string checks(int ranks, bool json, int& bad, int& status) {
  return ask(
      [&](char* text, size_t capacity, size_t* size) { return setoDoctor(ranks, format(json), text, capacity, size, &bad); },
      status);
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// Initializes the communicator of the job that this process belongs to, if the job has several processes.
int init_job_communicator(setoComm_t& comm, int& rank, int& ranks, std::string& failure) {
  if (const setoResult_t result = setoCommInitEnvironment(&comm, nullptr); result != setoSuccess) {
    failure = std::string("bad   job  ") + setoGetErrorString(result) + ": " + setoGetLastError(nullptr);
    std::fprintf(stderr, "%s\n", failure.c_str());
    return kFailed;
  }
  (void)setoCommCount(comm, &ranks);
  (void)setoCommUserRank(comm, &rank);
  return 0;
}

int examine_this_job(const DoctorOptions& options, const std::string& own_checks, setoComm_t comm, int rank) {
  JobReport report;
  if (const int failed = examine_job(comm, {host_name(), version_text(), own_checks}, report); failed != 0) return failed;
  if (rank != 0) {
    const char* const found = report.bad > 0 ? "bad findings" : "nothing bad found";
    if (!options.json) (void)put("rank " + std::to_string(rank) + ": " + found + "; rank 0 prints the report\n");
    return report.bad > 0 ? kFailed : 0;
  }
  if (options.json) {
    std::string host = own_checks;
    while (!host.empty() && host.back() == '\n') host.pop_back();
    (void)put("{\"host\":" + host + ",\"job\":" + json_of(report) + "}\n");
  } else {
    int bad = 0;
    int status = 0;
    (void)put(in_colour("host " + host_name() + "\n" + checks(options.ranks, false, bad, status) + text_of(report)));
  }
  return report.bad > 0 ? kFailed : 0;
}

}  // namespace

int run(const DoctorOptions& options) {
  setoComm_t comm = nullptr;
  int rank = 0;
  int ranks = 1;
  std::string failure;
  const int code = init_job_communicator(comm, rank, ranks, failure);
  const Closed closed(comm);
  int bad = 0;
  int status = 0;
  const std::string own = checks(options.ranks, options.json || ranks > 1, bad, status);
  if (status != 0) return status;
  if (ranks > 1) return examine_this_job(options, own, comm, rank);
  const int written = put(options.json ? own : in_colour(own));
  // Again as the last line: the checks of this host stand between, and most of them are good.
  if (code != 0 && !options.json) {
    (void)std::fflush(stdout);
    std::fprintf(stderr, "%s\n", failure.c_str());
  }
  return code != 0 || written != 0 || bad > 0 ? kFailed : 0;
}

}  // namespace seto::command
