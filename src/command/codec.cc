#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "include/seto/seto.h"
#include "src/command/commands.h"
#include "src/command/files.h"
#include "src/command/npy.h"
#include "src/command/output.h"

namespace seto::command {

int run(const CodecOptions& options) {
  const setoFormat_t wanted = format(options.json);
  if (options.file.empty())
    return print([&](char* text, size_t capacity, size_t* size) { return setoCodecs(wanted, text, capacity, size); });
  std::string file;
  errno = 0;
  if (!read_file(options.file, file)) {
    std::fprintf(stderr, "seto: cannot read %s: %s\n", options.file.c_str(), std::strerror(errno));
    return kFailed;
  }
  const Result<NumpyArray> array = parse_npy(file);
  if (!array.ok()) {
    std::fprintf(stderr, "seto: %s: %s\n", options.file.c_str(), std::string(array.status().text()).c_str());
    return kMisused;
  }
  const NumpyArray& numbers = array.value();
  return print([&](char* text, size_t capacity, size_t* size) {
    return setoCodecCheck(numbers.data.data(), numbers.type, numbers.count, wanted, text, capacity, size);
  });
}

}  // namespace seto::command
