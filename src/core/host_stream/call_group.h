#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "src/core/host_stream/host_stream.h"

namespace seto {

class Communicator;

// The calls of one thread between the start and the end of a group. Calls are copied, queued, and issued by the outermost end:
// each collective separately; the sends and receives of one communicator and stream as one local program, up to the next exchange
// of that communicator or its next message on another stream. All calls on one stream form one item of the stream.
class CallGroup final {
 public:
  [[nodiscard]] int depth() const { return depth_; }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  void start() { ++depth_; }
  // The outermost end issues the calls, waits for those without a stream, and returns the first failure.
  Status end();
  // Ends the group without issuing it, and estimates its time in seconds. Operations of one communicator add up; those of several
  // run side by side. Negative at the end of an inner group.
  Result<double> simulate();
  // Ends the group; the outermost end issues nothing.
  void drop();

  // The communicator and the stream of a call. `alive` is called at the end: it fails if the communicator has been destroyed
  // since, and it keeps the communicator's memory.
  struct Target {
    Communicator* communicator = nullptr;
    std::shared_ptr<HostStream> stream;  // null: the end of the group waits for the call
    std::function<Status()> alive;
  };
  void add(Target target, const Call& call);
  void add(Target target, Transfer transfer, std::uint32_t deadline_ms);
  void add(Target target, std::vector<Transfer> exchange, std::uint32_t deadline_ms);
  // Records a call that could not be queued; its failure is the group's result.
  void add_failure(const Status& status);

 private:
  enum class Kind : std::uint8_t { collective, point_to_point, exchange };
  struct Entry {
    Target target;
    Kind kind = Kind::collective;
    Call call;
    // Copies of the arrays that the call points at.
    std::vector<std::uint64_t> counts;
    std::vector<std::uint64_t> displacements;
    alignas(8) unsigned char scalar[8] = {};
    std::vector<Transfer> transfers;
    std::uint32_t deadline_ms = 0;
  };

  // Where the messages of one communicator are among the entries, so that adding one costs the same in a group of any size.
  struct MessageEntries {
    std::size_t last = 0;                                      // the last entry that is no collective
    std::map<const HostStream*, std::size_t> first_of_stream;  // the first messages, without exchanges
  };

  // The entry that a message of this target joins; null: the message needs a new entry.
  Entry* message_entry(const Target& target, bool to_oneself);
  // A new entry, which is no collective.
  Entry& add_message_entry(Target target, Kind kind);
  std::vector<Entry> take_entries();
  static Status issue_all(std::vector<Entry>& entries);
  static Status run_one(Entry& entry);
  // Points the calls at the copies of their arrays.
  static void use_own_copies(std::vector<Entry>& entries);

  int depth_ = 0;
  std::vector<Entry> entries_;
  std::map<const Communicator*, MessageEntries> messages_;
  Status failure_;
};

}  // namespace seto
