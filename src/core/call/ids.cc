#include "src/core/call/ids.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "algorithms/algorithm.h"
#include "src/base/text.h"
#include "src/engine/coding.h"

namespace seto {
namespace {

constexpr std::string_view kNoCodec = "none";
constexpr int kNoCodecId = 1;

// Every algorithm name once (one name serves several collectives), in the catalog's order.
const std::vector<std::string_view>& names() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> found;
    for (const Algorithm& algorithm : algorithms())
      if (std::find(found.begin(), found.end(), algorithm.name) == found.end()) found.push_back(algorithm.name);
    return found;
  }();
  return all;
}

}  // namespace

std::string listed(const std::vector<std::string_view>& names, std::string_view like) {
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  const std::string_view guess = nearest(like, names);
  if (!guess.empty()) text.append("; did you mean ").append(guess);
  return text;
}

int algorithm_id(std::string_view name) {
  const auto found = std::find(names().begin(), names().end(), name);
  return found == names().end() ? 0 : static_cast<int>(found - names().begin()) + 1;
}

std::string_view algorithm_name(int id) {
  return id < 1 || id > static_cast<int>(names().size()) ? std::string_view() : names()[static_cast<std::size_t>(id - 1)];
}

int codec_id(std::string_view name) {
  if (name == kNoCodec) return kNoCodecId;
  const Result<Codec> codec = parse_codec(name);
  return codec.ok() ? kNoCodecId + plan_number(codec.value()) : 0;
}

bool is_codec_id(int id) { return id >= kNoCodecId && id <= kNoCodecId + kCodecCount; }

std::uint8_t codec_number(int id) { return static_cast<std::uint8_t>(id - kNoCodecId); }

std::string_view codec_name(std::uint8_t number) { return number == 0 ? kNoCodec : facts_of(codec_of(number)).name; }

std::string known_algorithms(std::string_view like) { return listed(names(), like); }

std::string known_codecs(std::string_view like) {
  std::vector<std::string_view> all = {kNoCodec};
  for (int codec = 0; codec < kCodecCount; ++codec) all.push_back(facts_of(static_cast<Codec>(codec)).name);
  return listed(all, like);
}

std::string seconds_text(std::uint64_t from_us, std::uint64_t to_us) {
  std::array<char, 32> text{};
  const double seconds = to_us > from_us ? static_cast<double>(to_us - from_us) * 1e-6 : 0.0;
  std::snprintf(text.data(), text.size(), seconds < 1000 ? "%.3g s" : "%.0f s", seconds);
  return text.data();
}

}  // namespace seto
