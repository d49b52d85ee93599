#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "src/plan/group.h"
#include "src/plan/hazards.h"
#include "src/plan/plan.h"

namespace seto {

// Turns an author's statements into one rank's plain program.
//
// The author's statements work on a table of cells (rank, logical chunk). A cell starts as the rank's own contribution, if its
// input has that chunk. Statements read and replace cells in the author's order, on any rank. The builder turns them into the
// steps of one rank: it sends what other ranks read, keeps what this rank reads, and derives lanes, channels, dependencies and
// scratch. After the last statement, the cells of each rank's output chunks are its output.
//
// `round` is the author's statement about message hops: a statement of round k sends values of k hops, and its receivers then
// hold values of k + 1 hops. The verifier checks it.
class Builder {
 public:
  Builder(const Shape& shape, Rank rank, InPlace in_place);

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] Rank rank() const { return rank_; }
  [[nodiscard]] Range everything() const;                 // all logical chunks
  [[nodiscard]] Range part_of(Rank owner) const;          // for collectives whose chunks have an owner
  [[nodiscard]] Range part_of(Rank from, Rank to) const;  // for all_to_all

  [[nodiscard]] std::uint32_t round() const { return round_; }
  void set_round(std::uint32_t round) { round_ = round; }
  void next_round() { ++round_; }

  // cell(to) = cell(from)
  void copy(Rank from, Rank to, Range range);
  // cell(m) = cell(group[from]) for every other member m, in one message to all of them.
  void multicast(const Group& group, int from, Range range);
  // cell(to) = the sources' cells, folded in the order given, in as many steps as their number needs. `to` may be among them.
  void reduce(Rank to, std::span<const Rank> sources, Range range);
  void reduce(Rank to, std::initializer_list<Rank> sources, Range range) {
    reduce(to, std::span<const Rank>(sources.begin(), sources.size()), range);
  }
  // Like reduce to group[to] from every member, in the group's order.
  void reduce_all(const Group& group, int to, Range range);
  // For all members at once: cell(m) = all members' cells, folded in the group's order.
  void exchange(const Group& group, Range range);
  // The same for two ranks, folded as a before b.
  void exchange(Rank a, Rank b, Range range);
  // States that the sum of this cell is complete. An average over integers is divided here, once.
  void finish(Rank at, Range range);
  // Rounds this cell to what its codec leaves: the messages from here on carry its encoded bytes, and the owner keeps the decoded
  // values. Does nothing without a codec.
  void round(Rank at, Range range);
  // Assigns the messages of the statements that follow to this tier; they are coded if the shape says so. Before the first call,
  // messages are coded if any tier is.
  void at_tier(int tier);

  // Ends the program. Own contributions that belong to the output and were never moved are copied.
  Program build() &&;

 private:
  enum class Home : std::uint8_t { untouched, nothing, input, output, scratch };
  struct Place {
    Space space;
    std::uint32_t index;
  };
  struct Pending {  // a step before it has its position in a lane
    Step step;
    std::uint32_t lane;
    std::vector<Operand> operands;
    std::vector<Dependency> dependencies;
  };
  Home home_of(std::uint32_t chunk) const;
  std::uint32_t place_index(Home home, std::uint32_t chunk) const;
  bool contiguous(Home home, Range range) const;
  Place write_place(Range range) const;
  void set_home(Range range, Place place);
  void set_stage(Range range, std::uint32_t stage);
  std::uint32_t stage_of(Range range) const;
  bool unscaled(Home home) const;
  Place settle(Range range);  // makes the cells contiguous and scaled, and returns their place
  Place temporary(std::uint32_t count);

  struct LaneKey {
    int kind;  // 0 local, 1 send, 2 receive
    int peer;  // a rank, or -tag for a multicast
    auto operator<=>(const LaneKey&) const = default;
  };
  std::uint32_t lane(LaneKey key);
  std::uint32_t open_channel(Rank sender, std::span<const Rank> receivers, std::uint8_t group, Range range);
  void send(std::span<const Rank> receivers, std::uint8_t group, Range range);
  void receive(Rank sender, std::span<const Rank> receivers, std::uint8_t group, Range range, Place into);
  void local(Verb verb, std::span<const Place> sources, Place target, Range range, std::uint32_t stage);
  void emit(LaneKey lane_key, Step step, std::span<const Operand> operands);
  void rounded(Range range);
  void fold(std::span<const Place> sources, Range range, std::uint32_t stage);
  void deliver_own();
  std::uint32_t fan() const;

  Shape shape_;
  Rank rank_;
  std::uint32_t round_ = 0;
  bool codes_;  // messages are coded from here on
  std::uint32_t order_ = 0;
  std::uint32_t temporaries_;  // scratch places beyond one for each logical chunk
  std::vector<Home> homes_;
  std::vector<std::uint16_t> stages_;
  InPlace in_place_;
  HazardTracker hazards_;
  std::map<LaneKey, std::uint32_t> lanes_;
  std::vector<std::uint32_t> lane_lengths_;
  std::vector<Pending> steps_;
  std::vector<Channel> channels_;
  std::vector<Rank> receivers_;
  std::map<std::pair<Rank, int>, std::uint16_t> ports_;   // (sender, receiver or -tag): number of channels so far
  std::vector<std::pair<std::uint32_t, Rank>> activity_;  // (round, peer)
};

}  // namespace seto
