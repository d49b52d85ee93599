#include "src/command/files.h"

#include <cstdio>
#include <memory>

namespace seto::command {
namespace {

// A dump of the longest recorder has some 500 MB; what is more is something else.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

struct Close {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};

}  // namespace

bool read_file(const std::string& path, std::string& text) {
  const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return false;
  char part[1 << 16];
  for (std::size_t size = 0; (size = std::fread(part, 1, sizeof part, file.get())) > 0 && text.size() < kMostBytes;)
    text.append(part, size);
  return std::ferror(file.get()) == 0;
}

}  // namespace seto::command
