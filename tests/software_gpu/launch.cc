#include "tests/software_gpu/launch.h"

#include "tests/software_gpu/report_text.h"

namespace seto::software_gpu {

std::string place_in(const LaunchRequest& request, const std::array<std::uint32_t, 3>& block, std::uint32_t thread,
                     std::uint32_t line) {
  const Dim3& size = request.block;
  const std::array<std::uint32_t, 3> index = {thread % size.x, thread / size.x % size.y, thread / (size.x * size.y)};
  return std::string("GPU ") + std::to_string(request.gpu) + ", kernel " + request.kernel + ", block " + triple(block) +
         ", thread " + triple(index) + ", ptx line " + std::to_string(line) + ": '" + std::string(request.program->line(line)) +
         "'";
}

}  // namespace seto::software_gpu
