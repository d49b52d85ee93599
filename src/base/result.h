#pragma once

#include <optional>
#include <utility>

#include "src/base/check.h"
#include "src/base/status.h"

namespace seto {

// A value or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}                                      // NOLINT: meant to convert
  Result(Status status) : status_(std::move(status)) { SETO_CHECK(!status_.ok()); }  // NOLINT: meant to convert

  [[nodiscard]] bool ok() const { return value_.has_value(); }
  [[nodiscard]] const Status& status() const { return status_; }

  T& value() & {
    SETO_CHECK(ok());
    return *value_;
  }
  const T& value() const& {
    SETO_CHECK(ok());
    return *value_;
  }
  T value() && {
    SETO_CHECK(ok());
    return std::move(*value_);
  }
  T* operator->() { return &value(); }
  T& operator*() & { return value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

// Returns from the enclosing function with the failure, if there is one.
#define SETO_TRY(expression)                                                                 \
  do {                                                                                       \
    if (::seto::Status seto_status_ = (expression); !seto_status_.ok()) return seto_status_; \
  } while (false)

#define SETO_CONCAT_INNER(a, b) a##b
#define SETO_CONCAT(a, b) SETO_CONCAT_INNER(a, b)

// SETO_ASSIGN(auto fd, open_it()): declares the value, or returns from the function with the failure.
#define SETO_ASSIGN(declaration, expression) SETO_ASSIGN_INNER(SETO_CONCAT(seto_result_, __LINE__), declaration, expression)
#define SETO_ASSIGN_INNER(result, declaration, expression) \
  auto result = (expression);                              \
  if (!result.ok()) return result.status();                \
  declaration = std::move(result).value()

}  // namespace seto
