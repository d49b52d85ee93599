#pragma once

#include "include/seto/seto.h"
#include "src/base/fork.h"
#include "src/base/status.h"

namespace seto::api {

setoResult_t result_of(Code code);

// Remembers a failure as this thread's last, and gives its code. Success is remembered by nobody and costs nothing.
setoResult_t deliver_failure(const Status& status) noexcept;
inline setoResult_t deliver(const Status& status) noexcept { return status.ok() ? setoSuccess : deliver_failure(status); }

// Of the exception in flight: what the language or its library threw, since this one throws none.
setoResult_t deliver_exception() noexcept;
setoResult_t deliver_forked() noexcept;

// Every entry of the library: the body answers a Status, and nothing leaves but a code.
template <class Body>
setoResult_t enter(const Body& body) noexcept {
  try {
    if (process_was_forked()) [[unlikely]]
      return deliver_forked();
    return deliver(body());
  } catch (...) {
    return deliver_exception();
  }
}

}  // namespace seto::api
