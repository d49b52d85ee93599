#pragma once

#include "include/seto/seto.h"
#include "src/base/fork.h"
#include "src/base/status.h"

namespace seto::api {

setoResult_t result_of(Code code);

// Stores a failure as this thread's last one, and returns its code. Success is not stored and costs nothing.
setoResult_t deliver_failure(const Status& status) noexcept;
inline setoResult_t deliver(const Status& status) noexcept { return status.ok() ? setoSuccess : deliver_failure(status); }

// The code of the exception in flight. The library throws none itself; the language or a standard library may.
setoResult_t deliver_exception() noexcept;
setoResult_t deliver_forked() noexcept;

// The frame of every C function: the body returns a Status, and only a code leaves the library.
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
