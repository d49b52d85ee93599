// Walks over the blocks of a buffer: whole blocks in place, and a short last block through a copy of full length. Included once
// for each instruction set.
#if defined(SETO_CODEC_WALK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SETO_CODEC_WALK_INL_H
#undef SETO_CODEC_WALK_INL_H
#else
#define SETO_CODEC_WALK_INL_H
#endif

#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "src/codec/decode-inl.h"
#include "src/codec/encode-inl.h"
#include "src/codec/kernels.h"
#include "src/device/reading_ahead.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The destination of results, piece by piece: directly the target, or past the cache. Blocks with headers are not aligned to
// cache lines, so pieces that go past the cache are gathered here and stored as whole lines.
class Output final {
 public:
  Output(void* target, std::size_t size, Store store)
      : target_(static_cast<std::uint8_t*>(target)), streams_(store == Store::past_cache && size >= kSmallest) {
    if (!streams_) return;
    lead_ = filled_ = reinterpret_cast<std::uintptr_t>(target_) % kLine;
    target_ -= lead_;
  }

  // Returns a buffer for a piece of at most kMost bytes.
  HWY_INLINE std::uint8_t* room() { return streams_ ? lines_ + filled_ : target_; }

  HWY_INLINE void advance(std::size_t size) {
    if (!streams_) {
      target_ += size;
      return;
    }
    filled_ += size;
    if (filled_ >= kGathered) flush();
  }

  void close() {
    if (!streams_) return;
    flush();
    std::memcpy(target_ + lead_, lines_ + lead_, filled_ - lead_);
    hwy::FlushStream();
  }

  static constexpr std::size_t kMost = 2048;

 private:
  static constexpr std::size_t kLine = 64;
  // Large enough that bytes have left the store buffer when they are read back, and far smaller than the first-level cache.
  static constexpr std::size_t kGathered = 4096;
  // Below this size the fence costs more than streaming the lines saves.
  static constexpr std::size_t kSmallest = 4096;

  // Stores the whole lines. A first line that holds other bytes too is written through the cache.
  void flush() {
    const hn::ScalableTag<std::uint8_t> d;
    const std::size_t whole = filled_ / kLine * kLine;
    std::size_t i = 0;
    if (lead_ != 0 && whole != 0) {
      std::memcpy(target_ + lead_, lines_ + lead_, kLine - lead_);
      lead_ = 0;
      i = kLine;
    }
    for (; i < whole; i += hn::MaxLanes(d)) hn::Stream(hn::Load(d, lines_ + i), d, target_ + i);
    if (whole != 0) std::memcpy(lines_, lines_ + whole, kLine);
    target_ += whole;
    filled_ -= whole;
  }

  std::uint8_t* target_;  // when streaming: address of the first line that is gathered
  const bool streams_;
  std::size_t lead_ = 0;  // bytes of the first line that lie before the target
  std::size_t filled_ = 0;
  alignas(kLine) std::uint8_t lines_[kGathered + kMost + kLine];
};

// Handles fewer elements than a group has.
template <class F>
constexpr std::size_t size_of_rest(std::size_t rest) {
  const std::size_t whole = rest / F::kElements * (F::kHeader + F::kPayload);
  rest %= F::kElements;
  return rest == 0 ? whole : whole + F::kHeader + (rest * static_cast<std::size_t>(F::Format::kBits) + 7) / 8;
}

// Prefetch distance for processors whose own prefetchers do not keep up with pieces that are measured, encoded and gathered in
// turn: 25 GB/s of bf16 with this distance, 21 with 4 KiB or 16 KiB.
constexpr std::size_t kAhead = 8192;

inline void read_ahead(const void* data, std::size_t size) {
  for (std::size_t at = 0; at < size; at += 64) hwy::Prefetch(static_cast<const std::uint8_t*>(data) + at);
}

template <class F, class N, class Rounding>
void encode(const EncodeCall& call) {
  using Storage = typename N::Storage;
  using Blocks = Group<F, N>;
  const auto* numbers = static_cast<const Storage*>(call.source);
  const std::size_t rest = call.count % kBlock;
  const std::size_t whole = call.count - rest;
  if constexpr (Rounding::kByChance) SETO_CHECK(call.first % F::kElements == 0);
  Output output(call.encoded, whole / kBlock * Blocks::kSize + size_of_rest<F>(rest), call.store);
  if (whole != 0) {
    Blocks blocks = Blocks::of(numbers);
    const bool reads_ahead = call.store == Store::past_cache && gains_by_reading_ahead();
    for (std::size_t done = 0; done < whole; done += kBlock) {
      const std::size_t later = done + kAhead / sizeof(Storage);
      if (reads_ahead && later < whole) read_ahead(numbers + later, kBlock * sizeof(Storage));
      const Blocks next = Blocks::of(numbers + std::min(done + kBlock, whole - kBlock));
      blocks.template encode<Rounding>(numbers + done, output.room(), call, done);
      output.advance(Blocks::kSize);
      blocks = next;
    }
  }
  if (rest != 0) {
    Storage padded[kBlock] = {};
    std::uint8_t encoded[Blocks::kSize];
    std::memcpy(padded, numbers + whole, rest * sizeof(Storage));
    Blocks::of(padded).template encode<Rounding>(padded, encoded, call, whole);
    std::memcpy(output.room(), encoded, size_of_rest<F>(rest));
    output.advance(size_of_rest<F>(rest));
  }
  output.close();
}

template <class F, class N, bool kAdds>
void decode(const DecodeCall& call) {
  using Storage = typename N::Storage;
  constexpr std::size_t kSize = F::kHeader + F::kPayload;
  const auto* encoded = static_cast<const std::uint8_t*>(call.encoded);
  const auto* source = static_cast<const Storage*>(kAdds ? call.source : nullptr);
  const std::size_t rest = call.count % F::kElements;
  const std::size_t whole = call.count - rest;
  // The bytes that were just read are already in the cache.
  const Store store = kAdds && call.source == call.target ? Store::cached : call.store;
  Output output(call.target, call.count * sizeof(Storage), store);
  for (std::size_t done = 0; done < whole; done += F::kElements, encoded += kSize) {
    decode_block<F, N, kAdds>(encoded, kAdds ? source + done : nullptr, reinterpret_cast<Storage*>(output.room()));
    output.advance(F::kElements * sizeof(Storage));
  }
  if (rest != 0) {
    std::uint8_t padded[kSize] = {};
    Storage numbers[F::kElements] = {};
    std::memcpy(padded, encoded, size_of_rest<F>(rest));
    if constexpr (kAdds) std::memcpy(numbers, source + whole, rest * sizeof(Storage));
    decode_block<F, N, kAdds>(padded, numbers, numbers);
    std::memcpy(output.room(), numbers, rest * sizeof(Storage));
    output.advance(rest * sizeof(Storage));
  }
  output.close();
}

template <class F, class N>
CodecKernels kernels_of() {
  return {encode<F, N, ToNearest>, encode<F, N, ByChance>, decode<F, N, false>, decode<F, N, true>};
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#endif
