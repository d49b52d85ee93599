#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/device/reduce.h"

namespace seto {

// Ways to write numbers in fewer bytes. Stateless: bits depend on the values of a block and on nothing else (by chance: also on
// the seed and the place in the tensor). Values are part of what ranks tell each other: never renumbered.
enum class Codec : std::uint8_t { fp16, bf16, e4m3, e5m2, int8, int4 };
inline constexpr int kCodecCount = 6;

enum class Rounding : std::uint8_t { nearest, stochastic };

struct CodecFacts {
  std::string_view name;
  std::uint32_t bits;         // of an element
  std::uint32_t block;        // elements that share a header; cuts at multiples of it change no bits
  std::uint32_t header_size;  // bytes before the elements of a block
  // What becomes of them, in words.
  std::string_view nan;
  std::string_view infinity;
  std::string_view zero;
  std::string_view denormal;
};

[[nodiscard]] const CodecFacts& facts_of(Codec codec);

// By name ("fp8" is e4m3), in either case. A failure suggests the nearest.
[[nodiscard]] Result<Codec> parse_codec(std::string_view name);

// fp32 and fp64: each codec; bf16: those of 8 bits and less; nothing else.
[[nodiscard]] bool encodes(Codec codec, DataType type);

// A pure function, additive over whole blocks; a short last block has its header and its elements in whole bytes.
[[nodiscard]] std::size_t encoded_size(Codec codec, std::size_t count);

// How far decode(encode(x)) may be from a finite x of this magnitude, in a block whose largest finite magnitude is `largest`.
[[nodiscard]] double error_bound(Codec codec, DataType type, Rounding rounding, double largest, double magnitude);

// Numbers are aligned as their type is, encoded bytes not at all. Store::past_cache also reads ahead, where that gains.
struct EncodeCall {
  const void* source;
  void* encoded;      // encoded_size bytes, away from the source
  std::size_t count;  // elements
  Store store;
  // Of stochastic rounding alone: the same seed and place give the same bits.
  std::uint64_t seed;
  std::uint64_t first;  // place of source[0] in the whole tensor, a multiple of the block
};

struct DecodeCall {
  const void* encoded;
  // accumulate: target = source + decoded, rounded once; may be the target. decode reads none.
  const void* source;
  void* target;
  std::size_t count;
  Store store;
};

using EncodeFunction = void (*)(const EncodeCall&);
using DecodeFunction = void (*)(const DecodeCall&);

// The final function for this machine, chosen once. Only for what encodes() says. Any bytes may be decoded.
[[nodiscard]] EncodeFunction encode_function(Codec codec, DataType type, Rounding rounding);
[[nodiscard]] DecodeFunction decode_function(Codec codec, DataType type);
[[nodiscard]] DecodeFunction accumulate_function(Codec codec, DataType type);

}  // namespace seto
