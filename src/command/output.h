#pragma once

#include <functional>
#include <string>

#include "include/seto/seto.h"

namespace seto::command {

using Answer = std::function<setoResult_t(char* text, size_t capacity, size_t* size)>;

inline setoFormat_t format(bool json) { return json ? setoFormatJson : setoFormatText; }

// What a function of the library writes, with a newline at its end; a failure goes to standard error, and its exit status to
// `status`, which is 0 otherwise.
std::string ask(const Answer& answer, int& status);

// Asks and prints. Gives the exit status.
int print(const Answer& answer);

// To standard output. The exit status.
int put(const std::string& text);

// Standard output is a terminal that wants colours: NO_COLOR is not set, and it is not dumb.
bool colours();

enum class Colour { red, yellow, green, bold };
// As it is where there are no colours.
std::string coloured(Colour colour, const std::string& text);

}  // namespace seto::command
