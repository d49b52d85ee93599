#include "src/core/notes.h"

#include <algorithm>
#include <cstring>

#include "src/core/call.h"

namespace seto {

void put_reason(Note& note, std::string_view reason) {
  if (reason.size() > sizeof note.words) reason = reason.substr(0, std::min(reason.find(':'), sizeof note.words));
  std::memcpy(note.words, reason.data(), reason.size());
}

std::string reason_of(const Note& note) {
  char text[sizeof note.words];
  std::memcpy(text, note.words, sizeof text);
  std::string reason(text, strnlen(text, sizeof text));
  for (char& letter : reason)
    if (letter < ' ' || letter > '~') letter = '?';  // garbage, or a text that was cut
  return reason;
}

std::string text_of(const Note& note) {
  if ((note.words[0] & 0xff) >= kCollectiveCount || (note.words[0] >> 8 & 0xff) >= kDataTypeCount ||
      (note.words[0] >> 16 & 0xff) >= kReduceOpCount)
    return "what is no collective: its note is garbage";
  return describe(static_cast<Collective>(note.words[0] & 0xff), note.words[1], static_cast<DataType>(note.words[0] >> 8 & 0xff),
                  static_cast<ReduceOp>(note.words[0] >> 16 & 0xff), static_cast<Rank>(note.words[2]));
}

}  // namespace seto
