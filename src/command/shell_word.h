#pragma once

#include <string>

namespace seto::command {

// As one word of a shell, in single quotes.
std::string quoted(std::string text);

// The same, but as it is where quotes make no difference: whoever reads it may be no shell.
std::string quoted_at_need(const std::string& text);

}  // namespace seto::command
