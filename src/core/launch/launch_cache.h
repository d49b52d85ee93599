#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/core/call/collective_call.h"
#include "src/core/choice/planner.h"
#include "src/core/record/flight_recorder.h"
#include "src/core/launch/store_tuner.h"
#include "src/engine/host_launch.h"

namespace seto {

// A shape of call, ready to run: plan chosen, built, lowered, bound. Patched with buffers at each call.
struct BoundShape {
  std::unique_ptr<HostLaunch> launch;
  Note note;  // what the other ranks compare; the operation number is set at each call
  const Algorithm* algorithm = nullptr;
  const void* scalar = nullptr;  // avg over floats: 1 / ranks, in the accumulator type
  StoreChoice* stores = nullptr;
  std::uint64_t bytes = 0;
  RecordedCall recorded;
};

// The bound shapes of one communicator. Shapes that come back cost a comparison; of the rest a bounded number is kept.
class LaunchCache final {
 public:
  struct Setup {
    Rank rank = 0;
    int ranks = 1;
    const Tiers* tiers = nullptr;
    const CostModel* costs = nullptr;
    const Config* config = nullptr;
    Circle* circle = nullptr;
    double crowding = 1;
  };

  explicit LaunchCache(const Setup& setup) : setup_(setup) {
    scalar_.narrow = 1.0F / static_cast<float>(setup.ranks);
    scalar_.wide = 1.0 / setup.ranks;
  }

  // `busy`: shapes of operations under way may not be dropped.
  Result<BoundShape*> find(const Call& call, bool busy);

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
    std::vector<std::uint64_t> counts;
    std::vector<std::uint64_t> displacements;

    auto operator<=>(const Key&) const = default;
  };

  StoreChoice& stores_for(Collective collective, std::uint64_t bytes);
  Result<std::unique_ptr<BoundShape>> bind(const Call& call, InPlace in_place);
  void tell_of_exact(const Call& call, const Question& question, const Choice& choice);
  [[nodiscard]] Finish finish_of(const Call& call) const;
  static bool same(const Key& key, const Call& call, InPlace in_place);

  Setup setup_;
  struct {
    float narrow;
    double wide;
  } scalar_{};
  const Key* last_key_ = nullptr;
  BoundShape* last_ = nullptr;
  bool told_of_exact_ = false;
  std::map<Key, std::unique_ptr<BoundShape>> shapes_;
  std::map<std::pair<Collective, int>, StoreChoice> stores_;  // by collective and power of two
};

}  // namespace seto
