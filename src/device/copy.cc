// Highway depends on the order of these lines. clang-format off
#include "src/device/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/device/copy.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "src/device/instruction_sets.h"
#include "src/device/pass-inl.h"
// clang-format on

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

void copy_pass(const void* source, const ReduceTarget* targets, std::uint32_t target_count, std::size_t size) {
  using Byte = Itself<std::uint8_t>;
  const FixedFold<Byte, Sum, 1> fold{static_cast<const std::uint8_t*>(source), nullptr, nullptr, nullptr};
  if (size < lanes<Byte>()) return walk_small<lanes<Byte>() / 2>(fold, AnySink<Byte>{targets, target_count, 0}, size);
  if (target_count <= 2) return walk_to_few(fold, targets, target_count, size);
  walk_to_any(fold, targets, target_count, size);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seto {

CopyFunction copy_function() {
  static constexpr CopyFunction kCopies[] = SETO_EVERY_SET(copy_pass);
  return kCopies[chosen_set()];
}

namespace {

// Below this size the fence of a streamed copy costs more than streaming saves, and one pass for several targets gains nothing.
constexpr std::size_t kSmallCopy = 512;

// Between these sizes memcpy of the C library may use the string instructions of x86, which take longer to fill lines that other
// cores have had: 32 KiB into a slot and out of it, between near cores of an EPYC, 3.1 us, and 2.4 with
// vectors, in a program that was not kept; slot_ring_probe, which copies into slots only, sees 0 to 8 %.
constexpr std::size_t kShortestByVectors = 2 << 10;
constexpr std::size_t kLongestByVectors = 512 << 10;
#if defined(__x86_64__)
constexpr bool kHasStringInstructions = true;
#else
constexpr bool kHasStringInstructions = false;
#endif

bool is_for_memcpy(const ReduceTarget* targets, std::uint32_t target_count, std::size_t size) {
  if (size < kSmallCopy) return true;
  if (target_count != 1 || targets[0].store != Store::cached) return false;
  return !kHasStringInstructions || size < kShortestByVectors || size > kLongestByVectors;
}

}  // namespace

void copy_bytes(const void* source, const ReduceTarget* targets, std::uint32_t target_count, std::size_t size) {
  if (size == 0) return;
  if (is_for_memcpy(targets, target_count, size)) {
    for (std::uint32_t k = 0; k < target_count; ++k) {
      if (targets[k].data != source) std::memcpy(targets[k].data, source, size);
    }
    return;
  }
  if (target_count == 1 && targets[0].data == source) return;
  static const CopyFunction chosen = copy_function();
  chosen(source, targets, target_count, size);
}

}  // namespace seto
#endif
