#include "bench/common/program.h"

using namespace seto::bench;

namespace {

setoResult_t call(const Call& c) {
  return setoGather(c.send, c.receive, c.shape.layout.count, c.type, c.shape.root, c.comm, c.stream);
}

std::vector<Segment> expected(const Case& shape) {
  std::vector<Segment> segments;
  if (shape.rank != shape.root) return segments;
  const std::size_t part = shape.layout.count;
  for (int rank = 0; rank < shape.ranks; ++rank) segments.push_back({static_cast<std::size_t>(rank) * part, part, rank, 0});
  return segments;
}

}  // namespace

int main(int argc, char** argv) {
  const Program program = {.name = "gather_perf",
                           .reduces = Reduces::no,
                           .rooted = Rooted::yes,
                           .in_place = InPlace::supported,
                           .layout = gather_layout,
                           .call = call,
                           .expected = expected,
                           .bytes = parts_bytes,
                           .bus_factor = factor_others};
  return run_program(program, argc, argv);
}
