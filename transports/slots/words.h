#pragma once

#include <string>
#include <string_view>

#include "transports/slots/layout.h"

namespace seto::slots {

// Once for a board; what does not fit is cut off.
void put_words(WordLines& lines, std::string_view why);

// Fit to print. Empty: none were written, or the board is cleared at this moment.
[[nodiscard]] std::string words_in(const WordLines& lines);

}  // namespace seto::slots
