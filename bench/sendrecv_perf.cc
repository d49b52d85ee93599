#include "bench/common/program.h"

using namespace seto::bench;

namespace {

int before(const Case& shape) { return (shape.rank + shape.ranks - 1) % shape.ranks; }
int after(const Case& shape) { return (shape.rank + 1) % shape.ranks; }

// Every rank sends to the next rank and receives from the previous one.
setoResult_t call(const Call& c) {
  if (const setoResult_t result = setoGroupStart(); result != setoSuccess) return result;
  const setoResult_t sent = setoSend(c.send, c.shape.layout.count, c.type, after(c.shape), c.comm, c.stream);
  const setoResult_t received = setoRecv(c.receive, c.shape.layout.count, c.type, before(c.shape), c.comm, c.stream);
  const setoResult_t ended = setoGroupEnd();
  if (sent != setoSuccess) return sent;
  return received != setoSuccess ? received : ended;
}

std::vector<Segment> expected(const Case& shape) { return {{0, shape.layout.count, before(shape), 0}}; }

}  // namespace

int main(int argc, char** argv) {
  const Program program = {.name = "sendrecv_perf",
                           .in_place = InPlace::unsupported,
                           .layout = whole_layout,
                           .call = call,
                           .expected = expected,
                           .bytes = whole_bytes,
                           .bus_factor = factor_one};
  return run_program(program, argc, argv);
}
