#pragma once

#include <string>
#include <string_view>

#include "transports/transport.h"

namespace seto {

// The words of a note of a collective. Those of others may be garbage: what is read of them is letters only.

// The reason of a rejection: if there is not room for all of it, the words for which there is, and "...".
void put_reason(Note& note, std::string_view reason);
std::string reason_of(const Note& note);

// "all_reduce of 8 float, sum, codec fp16": which it may travel in.
std::string text_of(const Note& note);

}  // namespace seto
