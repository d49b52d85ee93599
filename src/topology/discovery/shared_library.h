#pragma once

#include <string>
#include <utility>

#include "src/base/result.h"

namespace seto {

// A library that is opened at run time, so that one build runs on machines with and without it. It stays open until the process
// ends: libraries of drivers do not survive being closed.
class SharedLibrary final {
 public:
  // `file` is a name such as libnvidia-ml.so.1. The error says why it cannot be opened.
  static Result<SharedLibrary> open(const std::string& file);

  // Sets the function pointer. An error names the function that the library lacks.
  template <class Function>
  Status find(const char* name, Function*& function) const {
    void* address = nullptr;
    SETO_TRY(address_of(name, address));
    function = reinterpret_cast<Function*>(address);
    return {};
  }

 private:
  SharedLibrary(std::string file, void* handle) : file_(std::move(file)), handle_(handle) {}
  Status address_of(const char* name, void*& address) const;

  std::string file_;
  void* handle_;
};

}  // namespace seto
