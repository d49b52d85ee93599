#pragma once

#include <cstdint>
#include <span>

#include "src/core/choice/cost_model.h"

// Sizes at which another way of doing the same becomes faster, as they follow from measured constants.
namespace seto {

// TierCost::long_message_bytes, from measured constants: what a copy moves in the time of half a hop. A lent message saves a copy
// into a slot. It costs its sender one more hop, since the sender's call ends only when its readers have said that they are done,
// but meanwhile the sender reads what its peers lend. Measured, two processes of a machine on which a copy moves 18 to 24 KiB in
// the time of a hop, in the runs in which both had a core: the shortest all_reduce of 4 KiB takes 1.2 times as long lent as
// through slots, of 8 KiB 0.8 and of 12 KiB 0.5 times. Measured constants are of one moment, so the answer is limited to half and
// to eight times what is shipped.
double long_message_bytes_of(const TierCost& node);

// The length from which a message from one rank to others is lent, where they can read the memory. Nothing measures that for
// ranks beyond the node, where it is as shipped. Nor is it shorter where ranks share a core: a hop waits for a core there.
std::uint64_t lends_from(Rank sender, std::span<const std::uint32_t> receivers, const Tiers& tiers, double crowding,
                         const CostModel& model);

// The longest slice of a plan. A rank fills one slot while a peer reads another, so the two of a stream take half of a core's
// cache, and leave the rest to the buffers. In a chain (`passes_on`) the bytes of a slice are read where they were received, so
// its slots may take all of it. As shipped where the cache is not known, and beyond a node. At most four times what is shipped,
// because slots are memory that every stream needs.
std::uint64_t largest_slice(bool passes_on, const Tiers& tiers, const CostModel& model);

// Sizes of calls, in powers of two, from which other ways of storing are worth a trial (StoreTuner).
struct StoreSizes {
  std::uint64_t beyond_cache = 1 << 20;         // results leave the cache of the core before they are read
  std::uint64_t beyond_every_cache = 16 << 20;  // and every other cache, so that all longer calls behave alike

  friend bool operator==(const StoreSizes&, const StoreSizes&) = default;
};

// A call has an input and a result, so each may take half of the last cache. Limited as above. As shipped where a size is not
// known.
StoreSizes store_sizes(const TierCost& node);

}  // namespace seto
