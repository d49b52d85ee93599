#pragma once

#include <functional>
#include <string>

#include "include/seto/seto.h"

namespace seto::command {

using Answer = std::function<setoResult_t(char* text, size_t capacity, size_t* size)>;

inline setoFormat_t format(bool json) { return json ? setoFormatJson : setoFormatText; }

// The text that a function of the library writes, with a final newline. A failure is printed to standard error, and `status` is
// its exit status; otherwise 0.
std::string ask(const Answer& answer, int& status);

// Calls ask() and prints the text. Returns the exit status.
int print(const Answer& answer);

// Writes to standard output. Returns the exit status.
int put(const std::string& text);

// True if standard output is a terminal that supports colours, and NO_COLOR is not set.
bool colours();

enum class Colour { red, yellow, green, bold };
// Returns the text unchanged if colours() is false.
std::string coloured(Colour colour, const std::string& text);

}  // namespace seto::command
