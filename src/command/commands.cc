#include "src/command/commands.h"

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>

#include "include/seto/seto.h"
#include "src/base/text.h"

namespace seto::command {
namespace {

constexpr int kFailed = 1;
constexpr int kMisused = 2;

// Asks for the length, then for the text. It may have grown in between: then it is cut, which is no harm in a terminal.
int print(const std::function<setoResult_t(char*, size_t, size_t*)>& ask) {
  size_t size = 0;
  setoResult_t result = ask(nullptr, 0, &size);
  std::string text(size + 1, '\0');
  if (result == setoSuccess) result = ask(text.data(), text.size(), nullptr);
  if (result != setoSuccess) {
    std::fprintf(stderr, "seto: %s: %s\n", setoGetErrorString(result), setoGetLastError(nullptr));
    return result == setoInvalidArgument ? kMisused : kFailed;
  }
  text.resize(size);
  if (text.empty() || text.back() != '\n') text += '\n';
  return std::fputs(text.c_str(), stdout) < 0 ? kFailed : 0;
}

setoFormat_t format(bool json) { return json ? setoFormatJson : setoFormatText; }

}  // namespace

int run(const InfoOptions& options) {
  const char* const topic = options.topic.empty() ? nullptr : options.topic.c_str();
  return print(
      [&](char* text, size_t capacity, size_t* size) { return setoInfo(topic, format(options.json), text, capacity, size); });
}

int run(const ExplainOptions& options) {
  const std::optional<std::uint64_t> bytes = parse_size(options.size);
  if (!bytes) {
    std::fprintf(stderr, "seto: size: '%s' is none; write 8, 64K or 64M\n", options.size.c_str());
    return kMisused;
  }
  setoQuestion_t question = SETO_QUESTION_INITIALIZER;
  question.collective = options.collective.c_str();
  question.bytes = *bytes;
  question.ranks = options.ranks;
  question.nodes = options.nodes;
  question.sites = options.sites;
  return print([&](char* text, size_t capacity, size_t* size) {
    return setoExplain(&question, format(options.json), text, capacity, size);
  });
}

}  // namespace seto::command
