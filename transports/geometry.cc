#include "transports/geometry.h"

namespace seto {

Status check(const StreamGeometry& geometry) {
  if (geometry.slices < 1 || geometry.slices > kMaxSlices)
    return failure(Code::invalid_argument, "%llu slices: a mark counts from 1 to %llu of them",
                   static_cast<unsigned long long>(geometry.slices), static_cast<unsigned long long>(kMaxSlices));
  if (geometry.slot_size > kLargestSlot)
    return failure(Code::invalid_argument, "slots of %u bytes are beyond the limit of %u", geometry.slot_size, kLargestSlot);
  return {};
}

}  // namespace seto
