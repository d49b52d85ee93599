#include "src/core/call/call_summary.h"

#include <cstring>

#include "src/codec/codec.h"
#include "src/core/call/collective_call.h"
#include "src/core/call/ids.h"

namespace seto {

void put_reason(Note& note, std::string_view reason) {
  constexpr std::string_view kMore = "...";
  constexpr std::size_t kRoom = sizeof note.words;
  auto* const text = reinterpret_cast<char*>(note.words);
  std::memset(text, 0, kRoom);
  if (reason.size() <= kRoom) {
    std::memcpy(text, reason.data(), reason.size());
    return;
  }
  std::string_view whole = reason.substr(0, kRoom - kMore.size());
  if (reason[whole.size()] != ' ') whole = whole.substr(0, whole.rfind(' '));  // a single long word is cut at the limit
  while (!whole.empty() && std::string_view(" ,:;").find(whole.back()) != std::string_view::npos) whole.remove_suffix(1);
  std::memcpy(text, whole.data(), whole.size());
  std::memcpy(text + whole.size(), kMore.data(), kMore.size());
}

std::string reason_of(const Note& note) {
  char text[sizeof note.words];
  std::memcpy(text, note.words, sizeof text);
  std::string reason(text, strnlen(text, sizeof text));
  for (char& letter : reason)
    if (letter < ' ' || letter > '~') letter = '?';  // the note is damaged, or its text was cut
  return reason;
}

std::string text_of(const Note& note) {
  if ((note.words[0] & 0xff) >= kCollectiveCount || (note.words[0] >> 8 & 0xff) >= kDataTypeCount ||
      (note.words[0] >> 16 & 0xff) >= kReduceOpCount || (note.words[0] >> 24 & 0xff) > kCodecCount)
    return "no collective: its note is damaged";
  std::string text =
      describe(static_cast<Collective>(note.words[0] & 0xff), note.words[1], static_cast<DataType>(note.words[0] >> 8 & 0xff),
               static_cast<ReduceOp>(note.words[0] >> 16 & 0xff), static_cast<Rank>(note.words[2]));
  if (const auto codec = static_cast<std::uint8_t>(note.words[0] >> 24 & 0xff); codec != 0)
    text.append(", codec ").append(codec_name(codec));
  return text;
}

}  // namespace seto
