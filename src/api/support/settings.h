#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "include/seto/seto.h"
#include "src/base/config.h"
#include "src/base/result.h"
#include "src/bootstrap/providers/callback.h"
#include "src/core/connect/context.h"

namespace seto {
class GpuContext;
}

namespace seto::api {

// The settings of a new communicator, from the defaults, the environment, the parent and the caller's struct; later sources
// override earlier ones.
struct Settings {
  Config config;
  std::string name;
  std::shared_ptr<Context> context;  // null: a new one
  AllGatherCallback bootstrap;
  std::shared_ptr<GpuContext> gpu;  // null: host memory
  bool blocking = true;
  bool share_context = true;  // with communicators that are split from this one
};

// The release: "0.1.0".
std::string version_text();

// Reads the environment and opens the log. An error text names the variable.
Result<Settings> settings_of_environment();

// `base` with the values of the struct, which may be null.
Result<Settings> with_struct(Settings base, const setoConfig_t* config);

// Decides between host and device memory, for a communicator that the calling thread makes: config.memory is one of them then.
Status settle_memory(Settings& settings);

// The initial settings of a child communicator.
Settings inherited(const Settings& parent, const std::shared_ptr<Context>& context);

// A C program may store any number in an enumeration; reading it as the enumeration would be undefined.
template <class Enumeration>
int number_in(const Enumeration& value) {
  int number;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

// Checks size, magic and version of a versioned struct before its fields are read. A struct of a newer header is longer: it is
// accepted if the bytes that this library does not know are zero. `name` is used in error texts.
struct StructShape {
  const char* name;
  std::size_t least_size;
  std::size_t known_size;
  unsigned int magic;
};
Status check_struct(const void* data, const StructShape& shape);

}  // namespace seto::api
