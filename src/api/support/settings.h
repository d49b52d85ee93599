#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "include/seto/seto.h"
#include "src/base/config.h"
#include "src/base/result.h"
#include "src/bootstrap/providers/callback.h"
#include "src/core/connect/context.h"

namespace seto::api {

// What a communicator is made with: defaults, environment, parent and the caller's struct, in this order.
struct Settings {
  Config config;
  std::string name;
  std::shared_ptr<Context> context;  // null: a new one
  AllGatherCallback bootstrap;
  bool blocking = true;
  bool share_context = true;  // with communicators split from it
};

// Of the release: "0.1.0".
std::string version_text();

// The environment, with the log as it says. Failures name the variable.
Result<Settings> settings_of_environment();

// `base` with what the struct says. The struct may be null.
Result<Settings> with_struct(Settings base, const setoConfig_t* config);

// What a child communicator begins with.
Settings inherited(const Settings& parent, const std::shared_ptr<Context>& context);

// A C program may put any number into an enumeration; reading it as one would be undefined.
template <class Enumeration>
int number_in(const Enumeration& value) {
  int number;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

// Size, magic and version of a versioned struct, before its fields are looked at. A struct of a newer header is longer: it is
// accepted if what this library does not know is zero. `name` is for the text.
struct StructShape {
  const char* name;
  std::size_t least_size;
  std::size_t known_size;
  unsigned int magic;
};
Status check_struct(const void* data, const StructShape& shape);

}  // namespace seto::api
