#include "bench/common/program.h"

using namespace seto::bench;

namespace {

setoResult_t call(const Call& c) {
  return setoBroadcast(c.send, c.receive, c.shape.layout.count, c.type, c.shape.root, c.comm, c.stream);
}

std::vector<Segment> expected(const Case& shape) { return {{0, shape.layout.count, shape.root, 0}}; }

}  // namespace

int main(int argc, char** argv) {
  const Program program = {.name = "broadcast_perf",
                           .collective = "broadcast",
                           .rooted = Rooted::yes,
                           .layout = whole_layout,
                           .call = call,
                           .expected = expected,
                           .bytes = whole_bytes,
                           .bus_factor = factor_one};
  return run_program(program, argc, argv);
}
