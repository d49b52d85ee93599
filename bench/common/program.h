#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "seto/seto.h"

namespace seto::bench {

// The buffers of one size, in elements. `count` is the argument of the call and is printed in the table.
struct Layout {
  std::size_t count;
  std::size_t send_count;
  std::size_t receive_count;
  // In place, both buffers are one: rank r sends from r * send_stride and receives at r * receive_stride.
  std::size_t send_stride = 0;
  std::size_t receive_stride = 0;
};

// One rank's view of one row.
struct Case {
  Layout layout;
  int rank;
  int ranks;
  int root;
};

struct Call {
  Case shape;
  const void* send;
  void* receive;
  setoDataType_t type;
  setoRedOp_t op;
  setoComm_t comm;
  setoStream_t stream;
  const setoCallConfig_t* config = nullptr;
};

// The elements [offset, offset + count) of the receive buffer come from `source`'s send buffer at source_offset on, or are the
// reduction over all ranks there. Elements that no segment names are not checked.
inline constexpr int kAllRanks = -1;
struct Segment {
  std::size_t offset;
  std::size_t count;
  int source;
  std::size_t source_offset;
};

enum class InPlace : std::uint8_t { supported, unsupported };
enum class Reduces : std::uint8_t { yes, no };
enum class Rooted : std::uint8_t { yes, no };

// Layouts, byte counts and factors that several programs share.
Layout whole_layout(std::size_t elements, std::size_t element_size, int ranks);     // count in, count out
Layout exchange_layout(std::size_t elements, std::size_t element_size, int ranks);  // n parts in, n parts out
Layout gather_layout(std::size_t elements, std::size_t element_size, int ranks);    // one part in, n parts out
Layout scatter_layout(std::size_t elements, std::size_t element_size, int ranks);   // n parts in, one part out
double whole_bytes(const Layout& layout, std::size_t element_size, int ranks);      // count
double parts_bytes(const Layout& layout, std::size_t element_size, int ranks);      // count * n
double factor_one(int ranks);
double factor_others(int ranks);        // (n - 1) / n
double factor_twice_others(int ranks);  // 2 (n - 1) / n
// One segment for each rank's part in turn, each from that position of its send buffer.
std::vector<Segment> part_of_each(const Case& shape, std::size_t source_offset);

// All that distinguishes one benchmark program from another: constants, pure functions, and the call. The defaults are those of
// collectives over parts of all ranks.
struct Program {
  const char* name;
  const char* collective = nullptr;  // its name in setoInfo; null: it has no algorithms to choose from
  Reduces reduces = Reduces::no;
  Rooted rooted = Rooted::no;
  InPlace in_place = InPlace::supported;
  Layout (*layout)(std::size_t elements, std::size_t element_size, int ranks);
  setoResult_t (*call)(const Call& call);
  std::vector<Segment> (*expected)(const Case& shape);
  // The bytes of the algorithm bandwidth, and the factor from it to the bus bandwidth.
  double (*bytes)(const Layout& layout, std::size_t element_size, int ranks) = parts_bytes;
  double (*bus_factor)(int ranks) = factor_others;
};

// Parses the arguments, starts the ranks, prints the table, and returns the exit code of main.
int run_program(const Program& program, int argc, char** argv);

}  // namespace seto::bench
