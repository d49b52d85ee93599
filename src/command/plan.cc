#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "include/seto/seto.h"
#include "src/base/text.h"
#include "src/command/commands.h"
#include "src/command/files.h"
#include "src/command/output.h"
#include "src/command/topology_files.h"

namespace seto::command {

int run(const SimulateOptions& options) {
  const bool is_table = options.memory == "device" && options.size.empty();
  if (options.size.empty() && !is_table) {
    std::fprintf(stderr, "seto: --size is required: 8, 64K or 64M; only --memory device prints a table without it\n");
    return kMisused;
  }
  const std::optional<std::uint64_t> bytes = is_table ? std::optional<std::uint64_t>(0) : parse_size(options.size);
  if (!bytes) {
    std::fprintf(stderr, "seto: size: '%s' is not a size; write 8, 64K or 64M\n", options.size.c_str());
    return kMisused;
  }
  TopologyFiles files;
  if (!files.read(options.files, options.copies, false)) return kFailed;
  const std::vector<setoTopologyText_t> texts = files.texts();
  setoSimulation_t simulation = SETO_SIMULATION_INITIALIZER;
  simulation.collective = options.collective.c_str();
  simulation.algorithm = options.algorithm.empty() ? nullptr : options.algorithm.c_str();
  simulation.bytes = *bytes;
  simulation.ranks = options.ranks;
  simulation.memory = options.memory.empty() ? nullptr : options.memory.c_str();
  simulation.blocks = options.blocks;
  simulation.files = texts.data();
  simulation.fileCount = texts.size();
  const auto ask_for = [&simulation](setoFormat_t wanted) {
    return [&simulation, wanted](char* text, size_t capacity, size_t* size) {
      return setoSimulatePlan(&simulation, wanted, text, capacity, size);
    };
  };
  if (options.svg.empty()) return print(ask_for(format(options.json)));
  int status = 0;
  const std::string drawing = ask(ask_for(setoFormatSvg), status);
  if (status != 0) return status;
  if (write_file(options.svg, drawing)) return 0;
  std::fprintf(stderr, "seto: cannot write %s: %s\n", options.svg.c_str(), std::strerror(errno));
  return kFailed;
}

}  // namespace seto::command
