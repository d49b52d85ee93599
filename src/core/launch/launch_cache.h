#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/core/call/collective_call.h"
#include "src/core/choice/planner.h"
#include "src/core/launch/store_tuner.h"
#include "src/core/record/flight_recorder.h"
#include "src/engine/bound_program.h"
#include "src/engine/executor.h"
#include "transports/peer_group.h"

namespace seto {

// A call shape that is ready to run: its plan is chosen, built, lowered and bound. Each call brings its buffers.
struct BoundShape {
  std::unique_ptr<Executor> executor;
  std::uint32_t first_sends = 0;  // of the executor
  bool receives = false;          // anything arrives here from a peer
  Note note;                      // what the other ranks compare; the operation number is set at each call
  const Algorithm* algorithm = nullptr;
  const void* scalar = nullptr;  // avg over floats: 1 / ranks, in the accumulator type
  StoreTuner* stores = nullptr;
  std::uint64_t bytes = 0;
  RecordedCall recorded;

  // Operations of this shape. The calling thread issues them, and the holder of the progress token ends them, so each number has
  // one writer and costs a short call nothing.
  void issue() { ++issued_; }
  void end() { ended_.store(ended_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
  // Called on the calling thread.
  [[nodiscard]] bool under_way() const { return ended_.load(std::memory_order_acquire) != issued_; }

 private:
  friend class LaunchCache;

  std::uint64_t issued_ = 0;
  std::atomic<std::uint64_t> ended_{0};
  std::uint64_t last_found_ = 0;  // the number of the find() that returned it last
};

// The bound shapes of one communicator. The shape of the last call costs a comparison, another that is kept costs a look-up. A
// new one that finds the cache full takes the place of the shape that was used least recently and has no operation under way. So
// more than kMostShapes are kept only if more have operations under way. One thread at a time.
class LaunchCache final {
 public:
  struct Setup {
    Rank rank = 0;
    Surroundings here;
    PeerGroup* peer_group = nullptr;
  };

  explicit LaunchCache(const Setup& setup) : setup_(setup) {
    if (setup.here.costs != nullptr) take(*setup.here.costs);
    setup_.here.costs = &costs_;
    scalar_.narrow = 1.0F / static_cast<float>(setup.here.ranks);
    scalar_.wide = 1.0 / setup.here.ranks;
  }

  static constexpr std::size_t kMostShapes = 256;

  LaunchCache(const LaunchCache&) = delete;
  LaunchCache& operator=(const LaunchCache&) = delete;

  // Shapes that are found from now on follow from these constants. Shapes of other versions go when none of their operations is
  // under way.
  void use(const CostModel& costs, std::uint64_t version);
  [[nodiscard]] std::uint64_t version() const { return version_; }

  // The shape is valid until another is found, and as long as an operation of it is under way.
  Result<BoundShape*> find(const Call& call);

  [[nodiscard]] std::size_t kept() const { return shapes_.size(); }
  [[nodiscard]] std::uint64_t bound() const { return bound_; }  // shapes, since the start

 private:
  struct Key {
    Collective collective;
    DataType type;
    ReduceOp op;
    InPlace in_place;
    Rank root;
    std::uint64_t count;
    int algorithm;
    int codec;
    bool deterministic;
    std::uint64_t version;  // of the constants
    std::vector<std::uint64_t> counts;
    std::vector<std::uint64_t> displacements;

    auto operator<=>(const Key&) const = default;
  };

  void take(const CostModel& costs);
  StoreTuner& stores_for(Collective collective, std::uint64_t bytes);
  Result<std::unique_ptr<BoundShape>> bind(const Call& call, InPlace in_place);
  void tell_of_link_codec(const Question& question, const Choice& choice);
  void tell_of_exact(const Call& call, const Question& question, const Choice& choice);
  void tell_of_pin(const Question& question, const Choice& choice);
  [[nodiscard]] Finish finish_of(const Call& call) const;
  void set_lending(BoundProgram& program, const Question& question) const;
  void make_room();
  void drop_other_versions();
  static bool same(const Key& key, const Call& call, InPlace in_place);

  Setup setup_;
  CostModel costs_;
  Tiers tiers_ = Tiers::flat(1);  // with the ring of sites of these constants, if they have one
  std::uint64_t version_ = 0;
  bool has_other_versions_ = false;
  struct {
    float narrow;
    double wide;
  } scalar_{};
  const Key* last_key_ = nullptr;
  BoundShape* last_ = nullptr;
  bool told_of_exact_ = false;
  bool told_of_link_codec_ = false;
  std::set<Collective> told_of_pin_;
  std::uint64_t finds_ = 0;  // calls of find() with another shape than the last one
  std::uint64_t bound_ = 0;
  std::map<Key, std::unique_ptr<BoundShape>> shapes_;
  std::map<std::pair<Collective, int>, StoreTuner> stores_;  // by collective and power of two
};

}  // namespace seto
