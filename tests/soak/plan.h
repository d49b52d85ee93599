#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/soak/random.h"

namespace seto::soak {

enum class Transport : std::uint8_t { automatic, tcp, mixed };

// The parameters of a run, the same for every generation.
struct Shape {
  std::uint64_t seed = 1;
  int ranks = 6;
  int processes = 4;
  Transport transport = Transport::mixed;
  int ending = -1;             // -1: drawn; else all generations end in this way
  std::uint64_t patience = 1;  // factor of the time limits
  std::uint64_t cuts = 0;      // of connections, a minute, in all processes together

  [[nodiscard]] int process_of(int rank) const { return rank % processes; }
  // One process is never killed, so that its resources at the end can be compared with those at its start.
  [[nodiscard]] int survivor() const { return static_cast<int>(seed % static_cast<std::uint64_t>(processes)); }
};

// How the ranks join.
enum class Way : std::uint8_t { unique_id, file, several_ids, callback, grouped };
inline constexpr int kWays = 5;
// The transports: the default, every rank a separate node, or two nodes.
enum class Medium : std::uint8_t { automatic, all_apart, two_nodes };

// A communicator: its ranks of the whole job, in its own order.
struct Group {
  int parent = -1;
  bool shares_context = true;
  std::vector<int> members;
  std::vector<int> colors;  // by member of the parent; -1: none
  std::vector<int> keys;

  [[nodiscard]] int rank_of(int member) const;
  [[nodiscard]] int size() const { return static_cast<int>(members.size()); }
};

enum class What : std::uint8_t {
  batch,     // some calls on some groups, by one thread
  together,  // each group of a rank is used by its own thread
  split,     // groups[0] is split into the others
  drop,      // groups[0] ends
  rejected,  // a call on groups[0] that is wrong on its rank `odd`
};
struct Act {
  What what = What::batch;
  std::vector<int> groups;
  int odd = 0;
  std::uint64_t key = 0;
};

enum class Ending : std::uint8_t { destroy, finalize, abort, abort_pending, mismatch, kill, kill_while_making };
inline constexpr int kEndings = 7;
const char* name_of(Ending ending);
const char* name_of(Way way);
const char* name_of(Medium medium);

// The work of all ranks in one generation: a pure function of the seed and the number.
struct Plan {
  std::uint64_t key = 0;
  Way way = Way::unique_id;
  Medium medium = Medium::automatic;
  bool blocking = true;
  bool own_context = false;
  bool watched = false;  // a thread requests dumps all the time
  bool in_fp16 = false;  // sums of floats travel in fp16
  std::vector<Group> groups;
  std::vector<Act> acts;
  Ending ending = Ending::destroy;
  int culprit = 0;  // its rank in the job
  int group = 0;    // number of the group that the ending concerns

  [[nodiscard]] std::string text() const;
};
Plan plan_of(const Shape& shape, std::uint64_t generation);

}  // namespace seto::soak
