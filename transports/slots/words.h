#pragma once

#include <string>
#include <string_view>

#include "transports/slots/layout.h"

namespace seto::slots {

// Writes the text, once per board. A longer text is cut off.
void put_words(WordLines& lines, std::string_view why);

// Returns the text as printable ASCII. Empty: no text was written, or the board is being cleared.
[[nodiscard]] std::string words_in(const WordLines& lines);

}  // namespace seto::slots
