#include "bench/common/program.h"

using namespace seto::bench;

namespace {

setoResult_t call(const Call& c) {
  return setoGather(c.send, c.receive, c.shape.layout.count, c.type, c.shape.root, c.comm, c.stream);
}

std::vector<Segment> expected(const Case& shape) {
  return shape.rank == shape.root ? part_of_each(shape, 0) : std::vector<Segment>();
}

}  // namespace

int main(int argc, char** argv) {
  const Program program = {.name = "gather_perf",
                           .collective = "gather",
                           .rooted = Rooted::yes,
                           .layout = gather_layout,
                           .call = call,
                           .expected = expected};
  return run_program(program, argc, argv);
}
