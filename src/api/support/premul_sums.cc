#include "src/api/support/premul_sums.h"

#include "include/seto/seto.h"
#include "src/core/call/scalar_widening.h"

namespace seto::api {
namespace {

constexpr std::size_t kMostOperations = 65'536;

}  // namespace

Result<int> PremulSums::add(const void* scalar, DataType type) {
  std::size_t index = entries_.size();
  if (!free_.empty()) {
    index = free_.front();
    free_.pop_front();
  } else if (index >= kMostOperations) {
    return failure(Code::invalid_usage, "op: a communicator has room for %zu custom operations; destroy those that are done",
                   kMostOperations);
  } else {
    entries_.emplace_back();
  }
  Entry& entry = entries_[index];
  widen(scalar, type, entry.scalar);
  entry.type = type;
  entry.alive = true;
  return static_cast<int>(setoNumOps) + static_cast<int>(index);
}

Status PremulSums::remove(int op) {
  if (find(op) == nullptr) return failure(Code::invalid_argument, "op: %d is not a custom operation of this communicator", op);
  const auto index = static_cast<std::size_t>(op - static_cast<int>(setoNumOps));
  entries_[index].alive = false;
  free_.push_back(index);
  return {};
}

const PremulSums::Entry* PremulSums::find(int op) const {
  if (op < static_cast<int>(setoNumOps)) return nullptr;
  const auto index = static_cast<std::size_t>(op - static_cast<int>(setoNumOps));
  return index < entries_.size() && entries_[index].alive ? &entries_[index] : nullptr;
}

}  // namespace seto::api
