#include "bench/common/program.h"

using namespace seto::bench;

namespace {

// The number of elements that `from` sends to `to`: 1.5 or 0.5 times the mean, alternating with the distance. So every rank sends
// and receives as much as in alltoall_perf, and adjacent parts differ.
std::size_t count_between(const Case& shape, int from, int to) {
  const int distance = (to - from + shape.ranks) % shape.ranks;
  const std::size_t mean = shape.layout.count;
  const bool paired = distance > 0 && (distance < shape.ranks - 1 || shape.ranks % 2 == 1);
  if (!paired) return mean;
  return distance % 2 == 1 ? mean + mean / 2 : mean - mean / 2;
}

struct Parts {
  std::vector<std::size_t> send_counts, send_offsets, receive_counts, receive_offsets;
};

Parts parts_of(const Case& shape) {
  Parts parts;
  std::size_t sent = 0, received = 0;
  for (int peer = 0; peer < shape.ranks; ++peer) {
    parts.send_counts.push_back(count_between(shape, shape.rank, peer));
    parts.receive_counts.push_back(count_between(shape, peer, shape.rank));
    parts.send_offsets.push_back(sent);
    parts.receive_offsets.push_back(received);
    sent += parts.send_counts.back();
    received += parts.receive_counts.back();
  }
  return parts;
}

setoResult_t call(const Call& c) {
  // All iterations of a row share the arrays, because making them is not part of the measurement.
  thread_local Parts parts;
  thread_local std::size_t made_for = static_cast<std::size_t>(-1);
  if (made_for != c.shape.layout.count) parts = parts_of(c.shape);
  made_for = c.shape.layout.count;
  return setoAllToAllv(c.send, parts.send_counts.data(), parts.send_offsets.data(), c.receive, parts.receive_counts.data(),
                       parts.receive_offsets.data(), c.type, c.comm, c.stream);
}

std::vector<Segment> expected(const Case& shape) {
  const Parts mine = parts_of(shape);
  std::vector<Segment> segments;
  for (int peer = 0; peer < shape.ranks; ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    Case theirs = shape;
    theirs.rank = peer;
    const std::size_t source_offset = parts_of(theirs).send_offsets[static_cast<std::size_t>(shape.rank)];
    segments.push_back({mine.receive_offsets[index], mine.receive_counts[index], peer, source_offset});
  }
  return segments;
}

}  // namespace

int main(int argc, char** argv) {
  const Program program = {
      .name = "alltoallv_perf", .in_place = InPlace::unsupported, .layout = exchange_layout, .call = call, .expected = expected};
  return run_program(program, argc, argv);
}
