#include <map>
#include <string>
#include <tuple>

#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/report_text.h"

namespace seto::software_gpu {
namespace {

constexpr int kMostLines = 40;

std::string reason(const Thread& thread) {
  switch (thread.state) {
    case ThreadState::at_barrier:
      return "waits at barrier " + std::to_string(thread.barrier_number);
    case ThreadState::at_collective:
      return "waits for lanes of its member mask";
    default:
      return "runs";
  }
}

// Lanes of a warp that are at the same instruction share a line.
void report_block(const Block& block, std::string& text, int& lines) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, std::uint32_t> groups;
  for (const Thread& thread : block.threads())
    if (thread.state != ThreadState::exited)
      groups[{thread.warp.index, thread.current == nullptr ? 0 : thread.current->line, reason(thread)}] |= 1U << thread.lane;
  for (const auto& [group, lanes] : groups) {
    if (++lines > kMostLines) return;
    const auto& [warp, line, why] = group;
    text += "  block " + triple(block.place.index) + " on multiprocessor " + std::to_string(block.place.multiprocessor) +
            ", warp " + std::to_string(warp) + ", lanes " + hexadecimal(lanes) + ": " + why + " at ptx line " +
            std::to_string(line) + ": '" + std::string(block.launch.request.program->line(line)) + "'\n";
  }
}

}  // namespace

std::string hang_report(const Machine& machine) {
  std::string text;
  int lines = 0;
  for (const Launch& launch : machine.launches()) {
    const std::uint32_t blocks = launch.request.grid.count();
    text += std::string("GPU ") + std::to_string(launch.request.gpu) + ", kernel " + launch.request.kernel + ": " +
            std::to_string(launch.finished) + " of " + std::to_string(blocks) + " blocks have ended, " +
            std::to_string(blocks - launch.started) + " wait for a slot\n";
    for (const auto& block : machine.residents())
      if (&block->launch == &launch) report_block(*block, text, lines);
  }
  if (lines > kMostLines) text += "  and more\n";
  return text;
}

}  // namespace seto::software_gpu
