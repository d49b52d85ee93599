// The rounding of an element that lies between two codes. Included once for each instruction set.
#if defined(SETO_CODEC_ROUNDING_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SETO_CODEC_ROUNDING_INL_H
#undef SETO_CODEC_ROUNDING_INL_H
#else
#define SETO_CODEC_ROUNDING_INL_H
#endif

#include "src/base/check.h"
#include "src/codec/codec.h"
#include "src/codec/lane-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// To nearest, ties to even.
struct ToNearest {
  static constexpr bool kByChance = false;
  static ToNearest of(const EncodeCall&, std::uint64_t) { return {}; }
};

// An odd number whose multiples show no pattern, so the states of adjacent elements start far apart.
inline constexpr std::uint32_t kStride = 0x9E3779B1u;
inline constexpr std::uint32_t kPlaces[] = {
    0,           kStride,     2 * kStride,  3 * kStride,  4 * kStride,  5 * kStride,  6 * kStride,  7 * kStride,
    8 * kStride, 9 * kStride, 10 * kStride, 11 * kStride, 12 * kStride, 13 * kStride, 14 * kStride, 15 * kStride};
static_assert(hn::MaxLanes(hn::ScalableTag<std::uint32_t>()) <= 16);

// Stochastic rounding: adds a random fraction of a step and truncates, so an element is rounded up with a probability equal to
// its distance from the lower code.
struct ByChance {
  static constexpr bool kByChance = true;
  std::uint32_t start;
  std::uint32_t twist;

  // The state for the block at elements [done, done + block) of the call.
  static ByChance of(const EncodeCall& call, std::uint64_t done) {
    const std::uint64_t key = mixed(mixed(call.seed) ^ (call.first + done));
    return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
  }

  // Returns 32 random bits for each element of the block from i on, as words of the lanes.
  template <class D>
  HWY_INLINE Words<D> random(D, std::size_t i) const {
    const hn::Rebind<std::uint32_t, D> d32;
    const auto place = static_cast<std::uint32_t>(i) * kStride;
    auto v = hn::Add(hn::LoadU(d32, kPlaces), hn::Set(d32, start + place));
    v = hn::Mul(hn::Xor(v, hn::ShiftRight<16>(v)), hn::Set(d32, 0x7A8F2C6Bu));
    v = hn::Xor(v, hn::Set(d32, twist));
    v = hn::Mul(hn::Xor(v, hn::ShiftRight<15>(v)), hn::Set(d32, 0xC2D36A4Du));
    v = hn::Xor(v, hn::ShiftRight<16>(v));
    if constexpr (sizeof(hn::TFromD<D>) == 4) {
      return v;
    } else {
      return hn::PromoteTo(hn::RebindToUnsigned<D>(), v);
    }
  }

 private:
  static std::uint64_t mixed(std::uint64_t key) {
    key += 0x9E3779B97F4A7C15u;
    for (const std::uint64_t factor : {0xD6E8FEB86659FD93u, 0xA3B195354A39B70Du}) {
      key ^= key >> 32;
      key *= factor;
    }
    return key ^ (key >> 32);
  }
};

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#endif
