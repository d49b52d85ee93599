#pragma once

#include <string>

namespace seto::command {

// Quotes a text as one word of a shell, in single quotes.
std::string quoted(std::string text);

// The same, but unchanged if quotes make no difference: the reader may not be a shell.
std::string quoted_at_need(const std::string& text);

}  // namespace seto::command
