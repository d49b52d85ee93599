#include "bench/common/program.h"

using namespace seto::bench;

namespace {

setoResult_t call(const Call& c) {
  return setoReduceConfig(c.send, c.receive, c.shape.layout.count, c.type, c.op, c.shape.root, c.comm, c.stream, c.config);
}

std::vector<Segment> expected(const Case& shape) {
  if (shape.rank != shape.root) return {};
  return {{0, shape.layout.count, kAllRanks, 0}};
}

}  // namespace

int main(int argc, char** argv) {
  const Program program = {.name = "reduce_perf",
                           .collective = "reduce",
                           .reduces = Reduces::yes,
                           .rooted = Rooted::yes,
                           .layout = whole_layout,
                           .call = call,
                           .expected = expected,
                           .bytes = whole_bytes,
                           .bus_factor = factor_one};
  return run_program(program, argc, argv);
}
