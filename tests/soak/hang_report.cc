#include "tests/soak/hang_report.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "include/seto/seto.h"
#include "tests/soak/board.h"

namespace seto::soak {
namespace {

constexpr std::uint64_t kDumpMs = 3'000;

struct Dump {
  std::string name;
  std::string text;
};

std::vector<Dump> dumps_in(const std::string& directory) {
  std::vector<Dump> dumps;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
    const std::string name = entry.path().filename();
    if (name.find("dump-") != 0 || entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    dumps.push_back({name, {std::istreambuf_iterator<char>(file), {}}});
  }
  return dumps;
}

void print_report(const std::vector<Dump>& dumps) {
  std::vector<setoDumpText_t> texts;
  for (const Dump& dump : dumps) texts.push_back({dump.name.c_str(), dump.text.data(), dump.text.size()});
  std::vector<char> report(std::size_t{1} << 20);
  const setoResult_t result = setoReport(texts.data(), texts.size(), setoFormatText, report.data(), report.size(), nullptr);
  std::printf("---- report of %zu dumps\n%s\n----\n", dumps.size(),
              result == setoSuccess ? report.data() : setoGetLastError(nullptr));
}

void print_threads(pid_t pid) {
  std::error_code none;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(tasks, none)) {
    std::string name, where;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    std::getline(std::ifstream(entry.path() / "wchan"), where);
    std::printf("process %d, thread %s (%s): %s\n", pid, entry.path().filename().c_str(), name.c_str(), where.c_str());
  }
}

}  // namespace

void print_dumps(const std::string& directory, const std::vector<pid_t>& hanging) {
  for (const pid_t pid : hanging) print_threads(pid);
  const std::size_t before = dumps_in(directory).size();
  for (const pid_t pid : hanging) kill(pid, SIGUSR1);
  if (!hanging.empty()) eventually([&] { return dumps_in(directory).size() >= before + hanging.size(); }, kDumpMs);
  const std::vector<Dump> dumps = dumps_in(directory);
  if (dumps.empty()) return;
  std::fflush(nullptr);
  const pid_t child = fork();  // a child uses the library, because this process has to fork again
  if (child == 0) {
    print_report(dumps);
    std::fflush(nullptr);
    _exit(0);
  }
  if (child > 0) waitpid(child, nullptr, 0);
}

}  // namespace seto::soak
