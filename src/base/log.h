#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/base/types.h"

namespace seto {

enum class LogLevel : std::uint8_t { error, warn, info, debug };

std::string_view name_of(LogLevel level);

// The rank that logs a line, where it is known: printed as "[rank 3 epoch 0]".
struct LogOrigin {
  Rank rank = -1;
  std::uint32_t epoch = 0;
};

// The log is the only mutable global object of this folder: its level and its file. Any thread may write a line. A line begins
// with the time in UTC, and is one write(2), so that lines of ranks that share a terminal do not mix. The data path does not log.

[[nodiscard]] bool log_enabled(LogLevel level);
void set_log_level(LogLevel level);

// Appends all further lines to the file. An empty path means standard error.
[[nodiscard]] Status open_log(const std::string& path);

// Longer lines are cut at kLogLineLimit bytes.
inline constexpr int kLogLineLimit = 1024;
[[gnu::format(printf, 3, 4)]] void log_line(LogLevel level, LogOrigin origin, const char* format, ...);

// For tests: while a LogCapture exists, it receives all lines, without times. At most one may exist.
class LogCapture final {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  [[nodiscard]] std::vector<std::string> lines() const;
  [[nodiscard]] bool contains(std::string_view part) const;
  void add(std::string line);

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace seto

// SETO_LOG(warn, "%d streams", count): the arguments are evaluated only if the level is enabled.
#define SETO_LOG(level, ...) SETO_LOG_AS(level, (::seto::LogOrigin{}), __VA_ARGS__)
#define SETO_LOG_AS(level, origin, ...)                                                                               \
  do {                                                                                                                \
    if (::seto::log_enabled(::seto::LogLevel::level)) ::seto::log_line(::seto::LogLevel::level, origin, __VA_ARGS__); \
  } while (false)
