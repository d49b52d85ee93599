#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "include/seto/seto.h"
#include "src/command/commands.h"
#include "src/command/files.h"
#include "src/command/output.h"

namespace seto::command {

int run(const ReportOptions& options) {
  std::vector<std::string> texts(options.files.size());
  std::vector<setoDumpText_t> dumps;
  int status = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    errno = 0;
    if (read_file(options.files[i], texts[i])) {
      dumps.push_back({options.files[i].c_str(), texts[i].data(), texts[i].size()});
    } else {
      std::fprintf(stderr, "seto: cannot read %s: %s\n", options.files[i].c_str(), std::strerror(errno));
      status = kFailed;
    }
  }
  int asked = 0;
  std::string text =
      ask([&](char* where, size_t capacity,
              size_t* size) { return setoReport(dumps.data(), dumps.size(), format(options.json), where, capacity, size); },
          asked);
  if (asked != 0) return asked;
  if (!options.json) {
    const std::size_t line = text.find('\n');
    text = coloured(Colour::bold, text.substr(0, line)) + text.substr(line);
  }
  const int written = put(text);
  return status != 0 ? status : written;
}

}  // namespace seto::command
