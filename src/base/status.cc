#include "src/base/status.h"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <system_error>

namespace seto {
namespace {

constexpr int kTextLimit = 1024;

std::string formatted(const char* format, std::va_list arguments) {
  char text[kTextLimit];
  std::vsnprintf(text, sizeof text, format, arguments);
  return text;
}

}  // namespace

std::string_view name_of(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::invalid_argument:
      return "invalid argument";
    case Code::invalid_usage:
      return "invalid usage";
    case Code::unavailable:
      return "unavailable";
    case Code::remote_error:
      return "remote error";
    case Code::timeout:
      return "timeout";
    case Code::aborted:
      return "aborted";
    case Code::in_progress:
      return "in progress";
    case Code::internal:
      return "internal error";
  }
  return "unknown code";
}

Status failure(Code code, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::string text = formatted(format, arguments);
  va_end(arguments);
  return {code, std::move(text)};
}

Status system_failure(Code code, const char* format, ...) {
  const int error = errno;  // read first, because later calls may change it
  std::va_list arguments;
  va_start(arguments, format);
  std::string text = formatted(format, arguments);
  va_end(arguments);
  return {code, text + ": " + std::generic_category().message(error)};
}

}  // namespace seto
