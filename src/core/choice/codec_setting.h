#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/topology/tiers.h"

namespace seto {

// The codec that sums may use, and the tiers on which they may use it. It is a permission: where coding would be slower, sums are
// sent exactly.
struct CodecSetting {
  std::uint8_t number = 0;  // the codec's number in plans; 0: none
  std::uint8_t kinds = 0;   // bit k: on tiers of that TierKind

  // Forms: "fp16" (all tiers); "world=fp16" or "site=fp16,world=fp16" (these tiers); "none" (no tier). Empty: there is no
  // setting, see link_codec.h. An error text begins with `given_as`, the source of the text.
  static Result<CodecSetting> parse(std::string_view text, const char* given_as = "codec");
  // A normal form that parse() accepts, such as "fp16", "site=fp16,world=fp16" or empty.
  [[nodiscard]] std::string text() const;
  // The setting of a call: on all tiers. `id` is a codec_id() other than 0.
  static CodecSetting of_id(int id);

  // Bit t is set if the codec may be used on tier t.
  [[nodiscard]] std::uint8_t on(const Tiers& tiers) const;
};

}  // namespace seto
