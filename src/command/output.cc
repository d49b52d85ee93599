#include "src/command/output.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "src/command/commands.h"

namespace seto::command {

// Most texts fit at once, so that the library measures or discovers once. A longer one is asked for again with its length; if it
// has grown in between it is cut, which is acceptable on a terminal.
std::string ask(const Answer& answer, int& status) {
  size_t size = 0;
  std::string text(size_t{1} << 18, '\0');
  setoResult_t result = answer(text.data(), text.size(), &size);
  if (result == setoSuccess && size >= text.size()) {
    text.assign(size + 1, '\0');
    result = answer(text.data(), text.size(), &size);
    size = std::min(size, text.size() - 1);
  }
  status = 0;
  if (result != setoSuccess) {
    std::fprintf(stderr, "seto: %s: %s\n", setoGetErrorString(result), setoGetLastError(nullptr));
    status = result == setoInvalidArgument ? kMisused : kFailed;
    return {};
  }
  text.resize(size);
  if (text.empty() || text.back() != '\n') text += '\n';
  return text;
}

int put(const std::string& text) { return std::fputs(text.c_str(), stdout) < 0 ? kFailed : 0; }

int print(const Answer& answer) {
  int status = 0;
  const std::string text = ask(answer, status);
  return status != 0 ? status : put(text);
}

bool colours() {
  const char* const refused = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  if (refused != nullptr && *refused != '\0') return false;
  return isatty(STDOUT_FILENO) != 0 && (terminal == nullptr || std::string_view(terminal) != "dumb");
}

std::string coloured(Colour colour, const std::string& text) {
  if (!colours()) return text;
  static constexpr const char* kCodes[] = {"31", "33", "32", "1"};
  return std::string("\033[") + kCodes[static_cast<std::size_t>(colour)] + "m" + text + "\033[0m";
}

}  // namespace seto::command
