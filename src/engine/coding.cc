#include "src/engine/coding.h"

#include <array>

namespace seto {
namespace {

bool is_set(std::uint64_t mask, std::uint32_t bit) { return (mask >> bit & 1) != 0; }

std::byte* at(void* memory, std::size_t offset) { return static_cast<std::byte*>(memory) + offset; }
const std::byte* at(const void* memory, std::size_t offset) { return static_cast<const std::byte*>(memory) + offset; }

}  // namespace

Status Coding::check(const Setup& setup) {
  if (setup.number == 0 || setup.number > kCodecCount)
    return failure(Code::internal, "a plan with codec %u: there are %d", setup.number, kCodecCount);
  const auto codec = codec_of(setup.number);
  if (!encodes(codec, setup.type) || !sums(setup.op))
    return failure(Code::internal, "codec %s does not take a %s of %s", facts_of(codec).name.data(), name_of(setup.op).data(),
                   name_of(setup.type).data());
  return {};
}

Result<std::unique_ptr<Coding>> Coding::create(const Setup& setup) {
  SETO_TRY(check(setup));
  return std::unique_ptr<Coding>(new Coding(setup, codec_of(setup.number)));
}

Coding::Coding(const Setup& setup, Codec codec)
    : codec_(codec),
      element_size_(size_of(setup.type)),
      residual_size_(size_of(residual_type(setup.type))),
      strip_(kStripBytes / element_size_),
      reduce_(reduce_function(setup.type, setup.op)),
      encode_(encode_function(codec, setup.type, Rounding::nearest)),
      decode_(decode_function(codec, setup.type)),
      compensation_(codec, setup.type, strip_),
      staging_(setup.most_sources * kStripBytes),
      result_(kStripBytes),
      bytes_(encoded_size(codec, strip_)) {}

void Coding::perform(const Piece& piece) {
  if (piece.moves && piece.coded_sources != 0 && !piece.rounds) return forward(piece);
  for (std::size_t first = 0; first < piece.plain.count; first += strip_)
    strip(piece, first, std::min(strip_, piece.plain.count - first));
}

// A forwarded result keeps its bytes: encoding it again could change them.
void Coding::forward(const Piece& piece) const {
  const ReduceCall& call = piece.plain;
  std::array<ReduceTarget, kMaxReduceTargets> onward;
  std::uint32_t count = 0;
  for (std::uint32_t k = 0; k < call.target_count; ++k)
    if (is_set(piece.coded_targets, k)) onward[count++] = call.targets[k];
  if (count > 0) copy_bytes(call.sources[0], onward.data(), count, size(call.count));
  for (std::uint32_t k = 0; k < call.target_count; ++k)
    if (!is_set(piece.coded_targets, k))
      decode_({call.sources[0], nullptr, call.targets[k].data, call.count, call.targets[k].store});
}

void Coding::strip(const Piece& piece, std::size_t first, std::size_t count) {
  const ReduceCall& call = piece.plain;
  const std::size_t encoded = size(first);
  const std::size_t begin = first * element_size_;
  std::array<const void*, kMaxReduceSources> sources;
  for (std::uint32_t k = 0; k < call.source_count; ++k) {
    if (!is_set(piece.coded_sources, k)) {
      sources[k] = at(call.sources[k], begin);
      continue;
    }
    decode_({at(call.sources[k], encoded), nullptr, staged(k), count, Store::cached});
    sources[k] = staged(k);
  }
  std::array<ReduceTarget, kMaxReduceTargets + 1> plain;
  std::array<ReduceTarget, kMaxReduceTargets> coded;
  std::uint32_t plain_count = 0;
  std::uint32_t coded_count = 0;
  for (std::uint32_t k = 0; k < call.target_count; ++k) {
    const bool is_coded = is_set(piece.coded_targets, k);
    const ReduceTarget target{at(call.targets[k].data, is_coded ? encoded : begin), call.targets[k].store};
    (is_coded ? coded[coded_count++] : plain[plain_count++]) = target;
  }
  const bool encodes_here = coded_count > 0 || piece.rounds;
  const void* value = sources[0];
  const std::uint32_t exact = piece.rounds ? 0 : plain_count;  // targets that get the value itself
  if (piece.moves) {
    if (exact > 0 && (exact > 1 || plain[0].data != value)) copy_bytes(value, plain.data(), exact, count * element_size_);
  } else {
    std::array<ReduceTarget, kMaxReduceTargets + 1> computed = plain;
    std::uint32_t computed_count = exact;
    if (encodes_here) {
      value = result_.data();
      computed[computed_count++] = {result_.data(), Store::cached};
    }
    const void* const scalar = call.scaled_sources != 0 ? call.scalar : nullptr;
    reduce_(
        {sources.data(), call.source_count, computed.data(), computed_count, count, call.scaled_sources, scalar, call.divisor});
  }
  if (!encodes_here) return;
  // The value is encoded once, and all targets get these bytes.
  void* const bytes = coded_count > 0 ? coded[0].data : bytes_.data();
  const Store store = coded_count == 1 && !piece.rounds ? coded[0].store : Store::cached;
  if (piece.residual == nullptr)
    encode_({value, bytes, count, store, 0, 0});
  else
    compensation_.encode(value, bytes, count, at(piece.residual, first * residual_size_));
  if (coded_count > 1) copy_bytes(bytes, &coded[1], coded_count - 1, size(count));
  for (std::uint32_t k = 0; piece.rounds && k < plain_count; ++k) decode_({bytes, nullptr, plain[k].data, count, plain[k].store});
}

}  // namespace seto
