#include "src/codec/codec.h"

#include <algorithm>
#include <array>
#include <string>

#include "src/base/check.h"
#include "src/base/text.h"
#include "src/codec/format.h"
#include "src/codec/kernels.h"

namespace seto {
namespace {

constexpr std::string_view kKept = "kept";
constexpr std::string_view kSignKept = "kept with its sign";
constexpr std::string_view kScaled = "scaled with the block, like normal numbers";
constexpr std::string_view kBlockIsNan = "the whole block becomes NaN";

constexpr std::array<CodecFacts, kCodecCount> kFacts = {{
    {"fp16", 16, kBlock, sizeof(BlockHeader), kKept, kKept, kSignKept, kScaled},
    {"bf16", 16, kBlock, 0, kKept, kKept, kSignKept, "rounded to multiples of 2^-133"},
    {"e4m3", 8, kBlock, sizeof(BlockHeader), kKept, "becomes NaN", kSignKept, kScaled},
    {"e5m2", 8, kBlock, sizeof(BlockHeader), kKept, kKept, kSignKept, kScaled},
    {"int8", 8, kBlock, sizeof(BlockHeader), kBlockIsNan, kBlockIsNan, "becomes +0", kScaled},
    {"int4", 4, kInt4Block, sizeof(BlockHeader), kBlockIsNan, kBlockIsNan, "becomes +0", kScaled},
}};
static_assert(std::all_of(kFacts.begin(), kFacts.end(), [](const CodecFacts& facts) { return facts.block > 0; }),
              "a codec has no row of facts");

// No switch over codecs has a default, so the compiler names each one that lacks a new codec.
CodecKernels kernels(Codec codec, DataType type) {
  SETO_CHECK(encodes(codec, type));
  switch (codec) {
    case Codec::fp16:
    case Codec::bf16:
      return half_kernels(codec, type);
    case Codec::e4m3:
    case Codec::e5m2:
      return float8_kernels(codec, type);
    case Codec::int8:
    case Codec::int4:
      return integer_kernels(codec, type);
  }
  SETO_CHECK(false);
  return {};
}

}  // namespace

const CodecFacts& facts_of(Codec codec) { return kFacts[static_cast<std::size_t>(codec)]; }

Result<Codec> parse_codec(std::string_view name) {
  const std::string wanted = lower_case(name);
  if (wanted == "fp8") return Codec::e4m3;
  std::array<std::string_view, kCodecCount> names;
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = kFacts[i].name;
    if (wanted == names[i]) return static_cast<Codec>(i);
    all += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  const std::string_view guess = nearest(wanted, names);
  return failure(Code::invalid_argument, "no codec is named '%s'; the codecs are %s%s%s", std::string(name).c_str(), all.c_str(),
                 guess.empty() ? "" : "; did you mean ", std::string(guess).c_str());
}

bool encodes(Codec codec, DataType type) {
  if (type == DataType::bfloat16) return facts_of(codec).bits <= 8;
  return type == DataType::float32 || type == DataType::float64;
}

std::size_t encoded_size(Codec codec, std::size_t count) {
  const CodecFacts& facts = facts_of(codec);
  const std::size_t rest = count % facts.block;
  const std::size_t whole = count / facts.block * (facts.header_size + std::size_t{facts.block} * facts.bits / 8);
  return rest == 0 ? whole : whole + facts.header_size + (rest * facts.bits + 7) / 8;
}

EncodeFunction encode_function(Codec codec, DataType type, Rounding rounding) {
  const CodecKernels found = kernels(codec, type);
  return rounding == Rounding::nearest ? found.nearest : found.stochastic;
}

DecodeFunction decode_function(Codec codec, DataType type) { return kernels(codec, type).decode; }

DecodeFunction accumulate_function(Codec codec, DataType type) { return kernels(codec, type).accumulate; }

}  // namespace seto
