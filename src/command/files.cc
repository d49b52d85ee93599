#include "src/command/files.h"

#include <cstdio>
#include <memory>

namespace seto::command {
namespace {

// A dump of the longest recorder has some 500 MB; a larger file is something else.
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

bool write_file(const std::string& path, const std::string& text) {
  if (path == "-") return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "wbe"));
  if (file == nullptr) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  return std::fclose(file.release()) == 0 && written;  // a full disk may show at the end only
}

}  // namespace seto::command
