#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "include/seto/seto.h"
#include "src/command/commands.h"
#include "src/command/output.h"

namespace seto::command {
namespace {

// A dump of the longest recorder has some 500 MB; what is more is something else.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

struct Close {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

// False, with errno: it cannot be read.
bool read_file(const std::string& path, std::string& text) {
  const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return false;
  char part[1 << 16];
  for (std::size_t size = 0; (size = std::fread(part, 1, sizeof part, file.get())) > 0 && text.size() < kMostBytes;)
    text.append(part, size);
  return std::ferror(file.get()) == 0;
}

}  // namespace

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
