#include "src/command/commands.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "include/seto/seto.h"
#include "src/command/output.h"

namespace seto::command {
namespace {

std::vector<std::pair<std::string, std::string>> variables_of_seto() {
  std::vector<std::pair<std::string, std::string>> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable(*entry);
    const std::size_t equals = variable.find('=');
    if (variable.starts_with("SETO_") && equals != std::string::npos)
      found.emplace_back(variable.substr(0, equals), variable.substr(equals + 1));
  }
  return found;
}

// The library stops at the first variable that it refuses. This function removes all refused variables from the environment and
// returns the error text of each.
std::vector<std::string> set_refused_aside() {
  const std::vector<std::pair<std::string, std::string>> variables = variables_of_seto();
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
  std::vector<std::string> refusals;
  for (const auto& [name, value] : variables) {
    setenv(name.c_str(), value.c_str(), 1);
    if (setoInfo("version", setoFormatText, nullptr, 0, nullptr) == setoSuccess) continue;
    refusals.emplace_back(setoGetLastError(nullptr));
    unsetenv(name.c_str());
  }
  return refusals;
}

// Returns the lines of a text of all topics that name a topic.
std::string with_titles(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);)
    result += (line.empty() || line.front() == ' ' ? line : coloured(Colour::bold, line)) + "\n";
  return result;
}

}  // namespace

std::string version_text() {
  int code = 0;
  (void)setoGetVersion(&code);
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." + std::to_string(code % 100);
}

int run(const InfoOptions& options) {
  const std::vector<std::string> refusals = set_refused_aside();
  const char* const topic = options.topic.empty() ? nullptr : options.topic.c_str();
  int status = 0;
  const std::string text = ask(
      [&](char* where, size_t capacity, size_t* size) { return setoInfo(topic, format(options.json), where, capacity, size); },
      status);
  if (status == 0) status = put(topic == nullptr && !options.json ? with_titles(text) : text);
  std::fflush(stdout);
  for (const std::string& refusal : refusals) std::fprintf(stderr, "seto: left out: %s\n", refusal.c_str());
  return status == 0 && !refusals.empty() ? kMisused : status;
}

}  // namespace seto::command
