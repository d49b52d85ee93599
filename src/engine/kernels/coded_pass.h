#pragma once

#include <cstddef>
#include <cstdint>

#include "src/codec/format.h"
#include "src/engine/kernels/codec_formats.h"
#include "src/engine/kernels/memory.h"
#include "src/engine/kernels/numbers.h"
#include "src/engine/kernels/operations.h"
#include "src/engine/kernels/pass.h"
#include "src/engine/kernels/plain_pass.h"
#include "src/engine/kernels/portable.h"
#include "src/engine/kernels/threads.h"

// Passes with encoded operands, with the bits of src/engine/coding.h. They sum. A warp works on one block of the codec: each lane
// holds its elements in registers from the sources to the codes, so that sources are read once.
namespace seto::kernels {

// Encoded bytes lie at any address.
template <class T>
SETO_KERNEL T load_bytes(const std::byte* at) {
  if (!kOnGpu || address_of(at) % sizeof(T) == 0) return load<T>(at);
  std::uint32_t value = 0;
  SETO_UNROLL for (std::uint32_t i = 0; i < sizeof(T); ++i) { value |= std::uint32_t{load<std::uint8_t>(at + i)} << (8 * i); }
  return static_cast<T>(value);
}

template <class T>
SETO_KERNEL void store_bytes(std::byte* at, T value) {
  if (!kOnGpu || address_of(at) % sizeof(T) == 0) return store(at, value);
  SETO_UNROLL for (std::uint32_t i = 0; i < sizeof(T); ++i) { store(at + i, static_cast<std::uint8_t>(value >> (8 * i))); }
}

// The bits of a number that was only widened.
template <class Number>
SETO_KERNEL typename Number::Storage unwidened(typename Number::Accumulator value) {
  if constexpr (sizeof(value) == sizeof(typename Number::Storage))
    return value;
  else
    return static_cast<typename Number::Storage>(bits_as<std::uint32_t>(value) >> 16);
}

// The elements of a block that this lane has, and their codes in memory. Two adjacent ones of int4 share a byte, so one lane has
// both.
template <class F>
struct LanePart {
  static constexpr int kCount = F::kElements / static_cast<int>(kLanes);
  static constexpr int kTogether = F::kBits == 4 ? 2 : 1;
  static constexpr std::uint64_t kBytes = F::kHeader + F::kElements * F::kBits / 8;  // of a block

  std::uint64_t first;  // element of the block in the pass
  std::uint64_t bytes;  // where its encoding begins
  std::uint32_t left;   // elements of the block
  std::uint32_t lane;

  SETO_KERNEL LanePart(std::uint64_t block, std::uint64_t count, std::uint32_t own_lane)
      : first(block * F::kElements), bytes(block * kBytes), lane(own_lane) {
    const std::uint64_t rest = count - first;
    left = rest < F::kElements ? static_cast<std::uint32_t>(rest) : F::kElements;
  }

  // Place in the block.
  [[nodiscard]] SETO_KERNEL std::uint32_t place(int i) const {
    const auto index = static_cast<std::uint32_t>(i);
    return index / kTogether * (kTogether * kLanes) + kTogether * lane + index % kTogether;
  }
  [[nodiscard]] SETO_KERNEL bool has(int i) const { return place(i) < left; }

  // Bytes of the short last block or a whole one. A last half byte of int4 is a byte.
  [[nodiscard]] SETO_KERNEL static std::uint64_t size_of(std::uint64_t count) {
    const std::uint64_t rest = count % F::kElements;
    const std::uint64_t whole = count / F::kElements * kBytes;
    return rest == 0 ? whole : whole + F::kHeader + (rest * F::kBits + 7) / 8;
  }

  SETO_KERNEL std::uint32_t header_at(const std::byte* encoded) const {
    return F::kHeader == 0 ? 0 : load_bytes<std::uint32_t>(encoded + bytes);
  }

  SETO_KERNEL std::uint32_t code_at(const std::byte* encoded, int i) const {
    const std::byte* const payload = encoded + bytes + F::kHeader;
    if constexpr (F::kBits == 16) return load_bytes<std::uint16_t>(payload + 2 * place(i));
    if constexpr (F::kBits == 8) return load<std::uint8_t>(payload + place(i));
    return std::uint32_t{load<std::uint8_t>(payload + place(i) / 2)} >> (i % 2 * 4) & 0xF;
  }

  SETO_KERNEL void write(std::byte* encoded, std::uint32_t header, const std::uint32_t (&code)[kCount]) const {
    if (F::kHeader != 0 && lane == 0) store_bytes(encoded + bytes, header);
    std::byte* const payload = encoded + bytes + F::kHeader;
    SETO_UNROLL for (int i = 0; i < kCount; i += kTogether) {
      if (!has(i)) continue;
      if constexpr (F::kBits == 16)
        store_bytes(payload + 2 * place(i), static_cast<std::uint16_t>(code[i]));
      else if constexpr (F::kBits == 8)
        store(payload + place(i), static_cast<std::uint8_t>(code[i]));
      else
        store(payload + place(i) / 2, static_cast<std::uint8_t>(code[i] | code[i + 1] << 4));
    }
  }
};

// The largest magnitude of a block that is below a limit.
template <class T, int kCount>
SETO_KERNEL typename FloatBits<T>::Word largest_of(const T (&value)[kCount], typename FloatBits<T>::Word limit) {
  typename FloatBits<T>::Word largest = 0;
  SETO_UNROLL for (int i = 0; i < kCount; ++i) {
    const auto magnitude = magnitude_of(value[i]);
    if (magnitude < limit && magnitude > largest) largest = magnitude;
  }
  return largest_of_warp(largest);
}

// One block of a pass. Steps that a pass does not need are left out.
template <class Number, class F>
class CodedBlock {
 public:
  using Storage = typename Number::Storage;
  using Wider = typename Number::Accumulator;  // residuals are kept in it, too
  using Part = LanePart<F>;
  static constexpr int kCount = Part::kCount;

  SETO_KERNEL CodedBlock(const Pass& pass, const Terms<Number>& terms, const Part& part)
      : pass_(pass), terms_(terms), part_(part) {}

  // The folded value, which has no bits that its type has not.
  SETO_KERNEL void fold() {
    add<Replace>(0);
    SETO_NO_UNROLL for (std::uint32_t k = 1; k < pass_.source_count; ++k) add<Join<Sum>>(k);
    const bool keeps = pass_.source_count == 1 && pass_.scaled == 0;
    SETO_UNROLL for (int i = 0; i < kCount; ++i) {
      if (!keeps) value_[i] = Number::widen(Number::narrow(value_[i]));
      if (!part_.has(i)) value_[i] = 0;  // a short block is encoded as if zeros followed
    }
  }

  SETO_KERNEL void write_plain() const {
    SETO_NO_UNROLL for (std::uint32_t k = 0; k < pass_.target_count; ++k) {
      if ((pass_.coded_targets >> k & 1) != 0) continue;
      std::byte* const target = pass_.target(k) + part_.first * sizeof(Storage);
      SETO_UNROLL for (int i = 0; i < kCount; ++i) {
        if (part_.has(i)) store(target + part_.place(i) * sizeof(Storage), unwidened<Number>(value_[i]));
      }
    }
  }

  SETO_KERNEL void encode() {
    using Word = typename FloatBits<Wider>::Word;
    constexpr Word kNoLimit = ~Word{0};
    if (pass_.residual != nullptr) owe();
    const Word largest = largest_of(value_, kNoLimit);
    const Word finite = largest < FloatBits<Wider>::kInfinity ? largest : largest_of(value_, FloatBits<Wider>::kInfinity);
    const BlockEncoder<F, Wider> encoder(largest, finite);
    std::uint32_t code[kCount];
    encoder.encode(value_, code);
    warp_barrier();  // all lanes have read the sources, which may be a target
    SETO_NO_UNROLL for (std::uint32_t k = 0; k < pass_.target_count; ++k) {
      if ((pass_.coded_targets >> k & 1) != 0) part_.write(pass_.target(k), encoder.header(), code);
    }
    if (pass_.residual == nullptr && !pass_.rounds) return;
    BlockDecoder<F, Number>(encoder.header()).decode(code, [this](int i, Storage number) {
      const Wider sent = Number::widen(number);
      if (pass_.residual != nullptr) settle(i, sent);
      value_[i] = sent;
    });
  }

 private:
  // Joins a source to the value.
  template <class How>
  SETO_KERNEL void add(std::uint32_t k) {
    const bool scales = terms_.scales(k);
    const auto join = [&](int i, Storage number) {
      value_[i] = How{}(value_[i], scales ? terms_.scaled(number) : Number::widen(number));
    };
    if ((pass_.coded_sources >> k & 1) != 0) {
      const std::byte* const source = pass_.source(k);
      std::uint32_t code[kCount];
      SETO_UNROLL for (int i = 0; i < kCount; ++i) code[i] = part_.has(i) ? part_.code_at(source, i) : 0;
      BlockDecoder<F, Number>(part_.header_at(source)).decode(code, join);
    } else {
      const std::byte* const source = pass_.source(k) + part_.first * sizeof(Storage);
      Storage number[kCount];
      SETO_UNROLL for (int i = 0; i < kCount; ++i) {
        number[i] = part_.has(i) ? load<Storage>(source + part_.place(i) * sizeof(Storage)) : Storage{0};
      }
      SETO_UNROLL for (int i = 0; i < kCount; ++i) join(i, number[i]);
    }
  }

  [[nodiscard]] SETO_KERNEL std::byte* residual_at(int i) const {
    return pass_.residual + (part_.first + part_.place(i)) * sizeof(Wider);
  }

  SETO_KERNEL static bool is_finite(Wider value) { return magnitude_of(value) < FloatBits<Wider>::kInfinity; }

  // Adds the residual to the value, unless the sum is not finite.
  SETO_KERNEL void owe() {
    SETO_UNROLL for (int i = 0; i < kCount; ++i) {
      const Wider all = value_[i] + (part_.has(i) ? load<Wider>(residual_at(i)) : Wider{0});
      fits_[i] = is_finite(all);
      if (fits_[i]) value_[i] = all;
    }
  }

  // Keeps the error of the encoding for the next one.
  SETO_KERNEL void settle(int i, Wider sent) {
    const Wider rest = value_[i] - sent;
    if (part_.has(i) && fits_[i] && is_finite(rest)) store(residual_at(i), rest);
  }

  const Pass& pass_;
  const Terms<Number>& terms_;
  Part part_;
  Wider value_[kCount]{};
  bool fits_[kCount]{};
};

// A forwarded result keeps its bytes: encoding it again could change them. Where it already lies in its place it is not stored
// again, because other threads may still be decoding it.
template <class F>
SETO_KERNEL void forward_bytes(const Pass& pass) {
  SETO_NO_UNROLL for (std::uint32_t k = 0; k < pass.target_count; ++k) {
    if ((pass.coded_targets >> k & 1) == 0 || pass.target(k) == pass.source(0)) continue;
    Pass one;
    one.sources = pass.sources;
    one.targets = pass.targets + k;
    move_bytes(one, LanePart<F>::size_of(pass.count));
  }
}

template <class Number, class F>
SETO_KERNEL void coded_blocks(const Pass& pass) {
  const bool forwards = pass.moves && pass.coded_sources != 0 && !pass.rounds;
  if (forwards) forward_bytes<F>(pass);
  const std::uint64_t all = pass.target_count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << pass.target_count) - 1;
  const bool writes_plain = (pass.coded_targets & all) != all;
  const bool encodes = !forwards && (pass.coded_targets != 0 || pass.rounds);
  if (!encodes && !writes_plain) return;
  const Terms<Number> terms(pass);
  const Here thread = here();
  SETO_NO_UNROLL for (std::uint64_t block = thread.warp; block * F::kElements < pass.count; block += thread.warps) {
    CodedBlock<Number, F> one(pass, terms, LanePart<F>(block, pass.count, thread.lane));
    one.fold();
    if (writes_plain && !pass.rounds) one.write_plain();
    if (encodes) one.encode();
    if (writes_plain && pass.rounds) one.write_plain();
  }
}

// For float32, float64 and bfloat16, which has codecs of at most 8 bits.
template <class Number>
SETO_KERNEL void coded_pass(Codec codec, const Pass& pass) {
  switch (codec) {
    case Codec::fp16:
      if constexpr (sizeof(typename Number::Storage) > 2) coded_blocks<Number, CodedHalf>(pass);
      return;
    case Codec::bf16:
      if constexpr (sizeof(typename Number::Storage) > 2) coded_blocks<Number, UnscaledBrain>(pass);
      return;
    case Codec::e4m3:
      return coded_blocks<Number, CodedE4m3>(pass);
    case Codec::e5m2:
      return coded_blocks<Number, CodedE5m2>(pass);
    case Codec::int8:
      return coded_blocks<Number, CodedInt8>(pass);
    case Codec::int4:
      return coded_blocks<Number, CodedInt4>(pass);
  }
}

}  // namespace seto::kernels
