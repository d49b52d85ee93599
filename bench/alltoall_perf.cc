#include "bench/common/program.h"

using namespace seto::bench;

namespace {

setoResult_t call(const Call& c) { return setoAlltoAll(c.send, c.receive, c.shape.layout.count, c.type, c.comm, c.stream); }

std::vector<Segment> expected(const Case& shape) {
  std::vector<Segment> segments;
  const std::size_t part = shape.layout.count;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    segments.push_back({static_cast<std::size_t>(rank) * part, part, rank, static_cast<std::size_t>(shape.rank) * part});
  }
  return segments;
}

}  // namespace

int main(int argc, char** argv) {
  const Program program = {.name = "alltoall_perf",
                           .reduces = Reduces::no,
                           .rooted = Rooted::no,
                           .in_place = InPlace::unsupported,
                           .layout = exchange_layout,
                           .call = call,
                           .expected = expected,
                           .bytes = parts_bytes,
                           .bus_factor = factor_others};
  return run_program(program, argc, argv);
}
