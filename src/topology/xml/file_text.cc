#include "src/topology/xml/file_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "src/base/fd.h"
#include "src/topology/xml/xml_element.h"

namespace seto {
namespace {

Status unreadable(const std::string& path, const char* why) {
  return failure(Code::invalid_argument, "cannot read %s: %s", path.c_str(), why);
}

}  // namespace

Result<std::string> topology_file_text(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // else a pipe without a writer would wait for one
  if (!file.valid()) return unreadable(path, std::strerror(errno));
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) return unreadable(path, std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) return unreadable(path, "it is no regular file");
  std::string text;
  std::string piece(std::size_t{1} << 16, '\0');
  while (text.size() <= kMostXmlBytes) {
    const ssize_t got = read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable(path, std::strerror(errno));
    if (got == 0) break;
    text.append(piece, 0, static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace seto
