#include "src/core/choice/codec_setting.h"

#include <array>

#include "src/core/call/ids.h"
#include "src/engine/coding.h"

namespace seto {
namespace {

constexpr std::array<std::string_view, 3> kKinds = {"node", "site", "world"};  // in the order of TierKind
constexpr std::uint8_t kEveryKind = 7;

Result<std::uint8_t> kinds_of(std::string_view name, const char* given_as) {
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind)
    if (name == kKinds[kind]) return static_cast<std::uint8_t>(1U << kind);
  return failure(Code::invalid_argument, "%s: '%.64s' is not a tier; the tiers are node, site and world", given_as,
                 std::string(name).c_str());
}

}  // namespace

CodecSetting CodecSetting::of_id(int id) {
  const std::uint8_t number = codec_number(id);
  return {number, number == 0 ? std::uint8_t{0} : kEveryKind};
}

Result<CodecSetting> CodecSetting::parse(std::string_view text, const char* given_as) {
  CodecSetting setting;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    std::uint8_t kinds = kEveryKind;
    if (equals != std::string_view::npos) {
      SETO_ASSIGN(kinds, kinds_of(one.substr(0, equals), given_as));
    }
    const std::string name(equals == std::string_view::npos ? one : one.substr(equals + 1));
    const int id = codec_id(name);
    if (id == 0)
      return failure(Code::invalid_argument, "%s: '%.64s' is not a codec; the codecs are %s", given_as, name.c_str(),
                     known_codecs(name).c_str());
    const std::uint8_t number = codec_number(id);
    if (number == 0) {
      setting.kinds &= static_cast<std::uint8_t>(~kinds);
      continue;
    }
    if (setting.kinds != 0 && setting.number != number)
      return failure(Code::invalid_argument, "%s: '%.64s' beside %s: a communicator has one codec, on some tiers or on all",
                     given_as, name.c_str(), codec_name(setting.number).data());
    setting.number = number;
    setting.kinds |= kinds;
  }
  return setting.kinds == 0 ? CodecSetting() : setting;
}

std::string CodecSetting::text() const {
  if (kinds == 0) return {};
  const std::string name(codec_name(number));
  if (kinds == kEveryKind) return name;
  std::string text;
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind)
    if ((kinds >> kind & 1U) != 0) text.append(text.empty() ? "" : ",").append(kKinds[kind]).append("=").append(name);
  return text;
}

std::uint8_t CodecSetting::on(const Tiers& tiers) const {
  std::uint8_t bits = 0;
  for (int tier = 0; tier < tiers.count(); ++tier)
    if ((kinds >> static_cast<unsigned>(tiers.kind(tier)) & 1U) != 0) bits |= static_cast<std::uint8_t>(1U << tier);
  return bits;
}

}  // namespace seto
