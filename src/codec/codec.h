#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/base/result.h"
#include "src/base/types.h"
#include "src/codec/format.h"
#include "src/device/reduce.h"

namespace seto {

enum class Rounding : std::uint8_t { nearest, stochastic };

struct CodecFacts {
  std::string_view name;
  std::uint32_t bits;         // of one element
  std::uint32_t block;        // elements that share a header; cutting at multiples of it changes no bits
  std::uint32_t header_size;  // bytes before the elements of a block
  // How the codec treats these values, as text for people.
  std::string_view nan;
  std::string_view infinity;
  std::string_view zero;
  std::string_view denormal;
};

[[nodiscard]] const CodecFacts& facts_of(Codec codec);

// Finds a codec by name, in upper or lower case ("fp8" is e4m3). A failure suggests the nearest name.
[[nodiscard]] Result<Codec> parse_codec(std::string_view name);

// True for fp32 and fp64 with every codec, and for bf16 with codecs of at most 8 bits.
[[nodiscard]] bool encodes(Codec codec, DataType type);

// Bytes of `count` encoded elements. The size is additive over whole blocks; a short last block has a header and its elements,
// rounded up to whole bytes.
[[nodiscard]] std::size_t encoded_size(Codec codec, std::size_t count);

// Bound of the distance between decode(encode(x)) and a finite x of this magnitude, in a block whose largest finite magnitude is
// `largest`.
[[nodiscard]] double error_bound(Codec codec, DataType type, Rounding rounding, double largest, double magnitude);

// Numbers must be aligned as their type requires; encoded bytes need no alignment. Store::past_cache also prefetches the source
// on processors where that was measured to help.
struct EncodeCall {
  const void* source;
  void* encoded;      // encoded_size bytes that do not overlap the source
  std::size_t count;  // elements
  Store store;
  // Used by stochastic rounding only: the same seed and position give the same bits.
  std::uint64_t seed;
  std::uint64_t first;  // position of source[0] in the whole tensor, a multiple of the block
};

struct DecodeCall {
  const void* encoded;
  // For accumulate: target = source + decoded, rounded once; it may be the target. decode does not read it.
  const void* source;
  void* target;
  std::size_t count;
  Store store;
};

using EncodeFunction = void (*)(const EncodeCall&);
using DecodeFunction = void (*)(const DecodeCall&);

// The function for this machine's instruction set, chosen once. Defined only where encodes() is true. Any bytes can be decoded.
[[nodiscard]] EncodeFunction encode_function(Codec codec, DataType type, Rounding rounding);
[[nodiscard]] DecodeFunction decode_function(Codec codec, DataType type);
[[nodiscard]] DecodeFunction accumulate_function(Codec codec, DataType type);

}  // namespace seto
