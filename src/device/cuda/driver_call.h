#pragma once

#include "src/base/status.h"
#include "src/device/cuda/driver_code.h"

namespace seto::cuda {

// The driver's own texts of its errors; null before the functions were found.
struct DriverMessages {
  DriverCode (*name)(DriverCode, const char**) = nullptr;
  DriverCode (*text)(DriverCode, const char**) = nullptr;
};

// The failure of a call: its name, the driver's name and text of the error, and what the user should do.
[[nodiscard]] Status driver_failure(const char* call, DriverCode code, const DriverMessages* messages);

// One function of the driver. It is called like a function, and returns a Status that explains a failure; success allocates
// nothing. `version` is the release of CUDA in which the function got these arguments: the driver keeps older forms too.
template <class... Arguments>
class Call final {
 public:
  using Function = DriverCode (*)(Arguments...);

  constexpr Call(const char* name, int version) : name_(name), version_(version) {}

  Status operator()(Arguments... arguments) const {
    const DriverCode code = function_(arguments...);
    if (code == DriverCode::success) [[likely]]
      return {};
    return failed(code);
  }

  // For calls whose error is an answer, as not_ready is that of a query.
  [[nodiscard]] DriverCode code(Arguments... arguments) const { return function_(arguments...); }
  [[nodiscard]] Status failed(DriverCode code) const { return driver_failure(name_, code, messages_); }

  [[nodiscard]] constexpr const char* name() const { return name_; }
  [[nodiscard]] constexpr int version() const { return version_; }

  // False: the driver lacks the function, so it must not be called. Only those of MulticastFunctions may be lacking.
  [[nodiscard]] bool is_found() const { return function_ != nullptr; }

  void set(void* address, const DriverMessages* messages) {
    function_ = reinterpret_cast<Function>(address);
    messages_ = messages;
  }

 private:
  const char* name_;
  int version_;
  Function function_ = nullptr;
  const DriverMessages* messages_ = nullptr;
};

}  // namespace seto::cuda
