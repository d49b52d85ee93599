#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace seto {

// Each code tells a caller what to change. The C API maps the codes onto setoResult_t.
enum class Code : std::uint8_t {
  ok,
  invalid_argument,  // this call is wrong; the communicator stays usable
  invalid_usage,     // this call is not allowed here or now
  unavailable,       // the environment lacks something: memory, descriptors, a device
  remote_error,      // a peer failed, rejected or disagreed
  timeout,
  aborted,
  in_progress,
  internal,
};

std::string_view name_of(Code code);

// The outcome of an action that the environment can make fail. Success allocates nothing. The function that detects a failure
// writes its text.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string text) : failure_(std::make_shared<const Failure>(Failure{code, std::move(text)})) {}

  [[nodiscard]] bool ok() const { return failure_ == nullptr; }
  [[nodiscard]] Code code() const { return failure_ ? failure_->code : Code::ok; }
  [[nodiscard]] std::string_view text() const { return failure_ ? std::string_view(failure_->text) : std::string_view(); }

 private:
  struct Failure {
    Code code;
    std::string text;
  };
  std::shared_ptr<const Failure> failure_;
};

// printf-like, because most texts carry numbers.
[[gnu::format(printf, 2, 3)]] Status failure(Code code, const char* format, ...);

// Like failure(), and appends ": " and the text of the current errno.
[[gnu::format(printf, 2, 3)]] Status system_failure(Code code, const char* format, ...);

}  // namespace seto
