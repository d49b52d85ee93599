#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "src/plan/plan.h"

namespace seto {

// States whether a rank passed the same memory as input and output. It is a property of one rank: it changes that rank's
// dependencies and scratch, never what it sends.
enum class InPlace : std::uint8_t { no, yes };

// Numbers the chunk-sized places of one rank. In place, an input chunk and the output chunk of the same data are one place.
class PlaceTable {
 public:
  PlaceTable(const Shape& shape, Rank rank, InPlace in_place) : shape_(shape), rank_(rank), in_place_(in_place) {}

  std::uint32_t id(Space space, std::uint32_t index);  // dense from 0, never for channels
  [[nodiscard]] std::uint32_t size() const { return size_; }

 private:
  Shape shape_;
  Rank rank_;
  InPlace in_place_;
  std::uint32_t size_ = 0;
  std::array<std::vector<std::uint32_t>, 2> ids_;  // input and output, by index: id + 1, or 0
  // Builders number scratch by row and rank, so of very many numbers a rank uses few.
  std::unordered_map<std::uint32_t, std::uint32_t> scratch_ids_;
};

// Visits the steps of a program in a correct sequential order, and derives which earlier steps each step must wait for: the
// writer of what it reads, and the readers and the writer of what it overwrites. The dependencies hold chunk by chunk and slice
// by slice.
class HazardTracker {
 public:
  struct Access {
    std::uint32_t lane = 0;
    std::uint32_t position = 0;  // position of the step in its lane
  };

  HazardTracker(const Shape& shape, Rank rank, InPlace in_place) : table_(shape, rank, in_place) {}

  // Call order for each step: every read, then every write, then take().
  void read(Space space, std::uint32_t index, std::uint32_t count);
  void write(Space space, std::uint32_t index, std::uint32_t count);

  // The dependencies of the step whose accesses were just reported: at most one for each lane, none on its own lane.
  std::vector<Dependency> take(Access step);

 private:
  struct Place {
    bool written = false;
    Access writer;
    std::vector<Access> readers;  // readers since that write
  };
  struct Touched {
    std::uint32_t place;
    bool writes;
  };

  void touch(Space space, std::uint32_t index, std::uint32_t count, bool writes);

  PlaceTable table_;
  std::vector<Place> places_;  // by id
  std::vector<Touched> touched_;
};

}  // namespace seto
