#include "bench/common/program.h"

using namespace seto::bench;

namespace {

setoResult_t call(const Call& c) {
  return setoScatter(c.send, c.receive, c.shape.layout.count, c.type, c.shape.root, c.comm, c.stream);
}

std::vector<Segment> expected(const Case& shape) {
  const std::size_t part = shape.layout.count;
  return {{0, part, shape.root, static_cast<std::size_t>(shape.rank) * part}};
}

}  // namespace

int main(int argc, char** argv) {
  const Program program = {.name = "scatter_perf",
                           .collective = "scatter",
                           .rooted = Rooted::yes,
                           .layout = scatter_layout,
                           .call = call,
                           .expected = expected};
  return run_program(program, argc, argv);
}
