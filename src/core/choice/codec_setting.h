#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/topology/tiers.h"

namespace seto {

// Which codec sums may travel in, and between whom. It is leave, not an order: where coding would lose, they travel as they are.
struct CodecSetting {
  std::uint8_t number = 0;  // as plans number codecs; 0: none
  std::uint8_t kinds = 0;   // bit k: on tiers of that TierKind

  // "fp16": on all tiers; "world=fp16", "site=fp16,world=fp16": on those; "none", or nothing: on none.
  // Failures begin with what the text was given as.
  static Result<CodecSetting> parse(std::string_view text, const char* given_as = "codec");
  // What parse reads as the same, however it was written: "fp16", "site=fp16,world=fp16", or nothing.
  [[nodiscard]] std::string text() const;
  // Of a call: on all tiers. `id` is one of codec_id(), not 0.
  static CodecSetting of_id(int id);

  // Bit t: on tier t of these.
  [[nodiscard]] std::uint8_t on(const Tiers& tiers) const;
};

}  // namespace seto
