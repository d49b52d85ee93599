#include "src/base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <span>

#include "src/base/check.h"
#include "src/base/fd.h"

namespace seto {
namespace {

std::atomic<LogLevel> log_level{LogLevel::warn};

// The mutex guards both members. The object is never destroyed, because threads may log while the process exits.
struct Sink {
  std::mutex mutex;
  Fd file;  // empty: standard error
  LogCapture* capture = nullptr;
};

Sink& sink() {
  static Sink& instance = *new Sink;
  return instance;
}

// Room for "2026-11-29T07:45:01.123Z " and for a year of more digits.
constexpr std::size_t kTimeSize = 32;

void write_whole(int fd, std::span<const char> line) {
  // A short write means that the disk is full or that the reader of a pipe has closed it. A log cannot report its own failure.
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
}

// The time of a line, so that logs of several hosts and of the network can be laid side by side. The calendar is computed here,
// because gmtime_r takes a lock of the C library that a forked child may find held.
std::size_t print_time(char* to, std::size_t size) {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto day = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss time(now - day);
  const int printed = std::snprintf(to, size, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ ", static_cast<int>(date.year()),
                                    static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                                    static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                                    static_cast<int>(time.seconds().count()), static_cast<int>(time.subseconds().count()));
  return static_cast<std::size_t>(std::max(printed, 0));
}

// snprintf returns the length that it would have written. The result is cut so that it never points beyond the buffer.
std::size_t advanced(std::size_t used, int printed) {
  if (printed < 0) return used;
  return std::min<std::size_t>(used + static_cast<std::size_t>(printed), kLogLineLimit - 1);
}

}  // namespace

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return "error";
    case LogLevel::warn:
      return "warn";
    case LogLevel::info:
      return "info";
    case LogLevel::debug:
      return "debug";
  }
  return "unknown";
}

bool log_enabled(LogLevel level) { return level <= log_level.load(std::memory_order_relaxed); }
void set_log_level(LogLevel level) { log_level.store(level, std::memory_order_relaxed); }

Status open_log(const std::string& path) {
  Fd file;
  if (!path.empty()) {
    file = Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file.valid()) return system_failure(Code::invalid_argument, "cannot open the log file '%s'", path.c_str());
  }
  const std::lock_guard lock(sink().mutex);
  sink().file = std::move(file);
  return {};
}

void log_line(LogLevel level, LogOrigin origin, const char* format, ...) {
  char buffer[kTimeSize + kLogLineLimit + 1];  // one byte more for the newline
  char* const line = buffer + kTimeSize;
  std::size_t used = advanced(0, std::snprintf(line, kLogLineLimit, "seto %s: ", name_of(level).data()));
  if (origin.rank >= 0) {
    used = advanced(used, std::snprintf(line + used, kLogLineLimit - used, "[rank %d epoch %u] ", origin.rank, origin.epoch));
  }
  std::va_list arguments;
  va_start(arguments, format);
  used = advanced(used, std::vsnprintf(line + used, kLogLineLimit - used, format, arguments));
  va_end(arguments);

  const std::lock_guard lock(sink().mutex);
  if (sink().capture != nullptr) {
    sink().capture->add(std::string(line, used));
    return;
  }
  line[used] = '\n';
  char time[kTimeSize + 1];
  const std::size_t width = std::min<std::size_t>(print_time(time, sizeof time), kTimeSize);
  std::copy_n(time, width, line - width);
  write_whole(sink().file.valid() ? sink().file.get() : STDERR_FILENO, {line - width, width + used + 1});
}

LogCapture::LogCapture() {
  const std::lock_guard lock(sink().mutex);
  SETO_CHECK(sink().capture == nullptr);
  sink().capture = this;
}

LogCapture::~LogCapture() {
  const std::lock_guard lock(sink().mutex);
  sink().capture = nullptr;
}

std::vector<std::string> LogCapture::lines() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

bool LogCapture::contains(std::string_view part) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(lines_.begin(), lines_.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

void LogCapture::add(std::string line) {
  const std::lock_guard lock(mutex_);
  lines_.push_back(std::move(line));
}

}  // namespace seto
