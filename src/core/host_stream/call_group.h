#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "src/core/communicator/communicator.h"
#include "src/core/host_stream/host_stream.h"

namespace seto {

// The calls of one thread between the start and the end of a group. They are queued, copied, and issued as one by the outermost
// end: collectives one by one, sends and receives of a communicator and a stream, up to the next exchange of that communicator or
// its next message on another stream, as one local program. What stands on one stream
// is one item of it.
class CallGroup final {
 public:
  static CallGroup& of_thread();

  [[nodiscard]] int depth() const { return depth_; }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  void start() { ++depth_; }
  // The outermost end issues, blocks for what is on no stream, and gives the first failure.
  Status end();
  // As end, but nothing is issued: how long it would have taken, in seconds. Operations of one communicator follow one another,
  // those of several go on side by side. Negative at the end of an inner group.
  Result<double> simulate();
  // The outermost end comes, but issues nothing.
  void drop();

  // Where a call belongs. `alive` is asked at the end: not ok if the communicator has been destroyed since, whose memory it
  // must keep until it is itself destroyed.
  struct Place {
    Communicator* communicator = nullptr;
    std::shared_ptr<HostStream> stream;  // null: the end of the group blocks for it
    std::function<Status()> alive;
  };
  void add(Place place, const Call& call);
  void add(Place place, Transfer transfer, std::uint32_t deadline_ms);
  void add(Place place, std::vector<Transfer> exchange, std::uint32_t deadline_ms);
  // A call that could not even be queued: the group's result.
  void add_failure(const Status& status);

 private:
  enum class Kind : std::uint8_t { collective, point_to_point, exchange };
  struct Entry {
    Place place;
    Kind kind = Kind::collective;
    Call call;
    // What the call points at, in memory of its own.
    std::vector<std::uint64_t> counts;
    std::vector<std::uint64_t> displacements;
    alignas(8) unsigned char scalar[8] = {};
    std::vector<Transfer> transfers;
    std::uint32_t deadline_ms = 0;
  };

  // Where a message of this place goes, if it joins those before it.
  Entry* messages_at(const Place& place, bool to_oneself);
  static Status issue_all(std::vector<Entry>& entries);
  static Status run_one(Entry& entry);
  // Points the calls at their own copies.
  static void settle(std::vector<Entry>& entries);

  int depth_ = 0;
  std::vector<Entry> entries_;
  Status failure_;
};

}  // namespace seto
