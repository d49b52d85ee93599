#include "bench/common/program.h"

using namespace seto::bench;

namespace {

setoResult_t call(const Call& c) {
  return setoAllReduceConfig(c.send, c.receive, c.shape.layout.count, c.type, c.op, c.comm, c.stream, c.config);
}

std::vector<Segment> expected(const Case& shape) { return {{0, shape.layout.count, kAllRanks, 0}}; }

}  // namespace

int main(int argc, char** argv) {
  const Program program = {.name = "all_reduce_perf",
                           .collective = "all_reduce",
                           .reduces = Reduces::yes,
                           .layout = whole_layout,
                           .call = call,
                           .expected = expected,
                           .bytes = whole_bytes,
                           .bus_factor = factor_twice_others};
  return run_program(program, argc, argv);
}
