#include "bench/common/program.h"

using namespace seto::bench;

namespace {

setoResult_t call(const Call& c) { return setoAllGather(c.send, c.receive, c.shape.layout.count, c.type, c.comm, c.stream); }

std::vector<Segment> expected(const Case& shape) { return part_of_each(shape, 0); }

}  // namespace

int main(int argc, char** argv) {
  const Program program = {
      .name = "all_gather_perf", .collective = "all_gather", .layout = gather_layout, .call = call, .expected = expected};
  return run_program(program, argc, argv);
}
