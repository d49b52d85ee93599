#pragma once

namespace seto {

// Whether a turn of work moved something, and over which links: `far` are those with a long round trip (is_far).
struct Moved {
  bool near = false;
  bool far = false;

  explicit operator bool() const { return near || far; }
  Moved& operator|=(const Moved& other) {
    near = near || other.near;
    far = far || other.far;
    return *this;
  }
};

}  // namespace seto
