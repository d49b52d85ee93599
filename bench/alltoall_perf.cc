#include "bench/common/program.h"

using namespace seto::bench;

namespace {

setoResult_t call(const Call& c) { return setoAlltoAll(c.send, c.receive, c.shape.layout.count, c.type, c.comm, c.stream); }

std::vector<Segment> expected(const Case& shape) {
  return part_of_each(shape, static_cast<std::size_t>(shape.rank) * shape.layout.count);
}

}  // namespace

int main(int argc, char** argv) {
  const Program program = {.name = "alltoall_perf",
                           .collective = "all_to_all",
                           .in_place = InPlace::unsupported,
                           .layout = exchange_layout,
                           .call = call,
                           .expected = expected};
  return run_program(program, argc, argv);
}
