#include "bench/common/program.h"

using namespace seto::bench;

namespace {

setoResult_t call(const Call& c) {
  return setoReduceScatterConfig(c.send, c.receive, c.shape.layout.count, c.type, c.op, c.comm, c.stream, c.config);
}

std::vector<Segment> expected(const Case& shape) {
  const std::size_t part = shape.layout.count;
  return {{0, part, kAllRanks, static_cast<std::size_t>(shape.rank) * part}};
}

}  // namespace

int main(int argc, char** argv) {
  const Program program = {.name = "reduce_scatter_perf",
                           .collective = "reduce_scatter",
                           .reduces = Reduces::yes,
                           .layout = scatter_layout,
                           .call = call,
                           .expected = expected};
  return run_program(program, argc, argv);
}
