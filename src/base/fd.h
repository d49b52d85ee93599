#pragma once

#include <utility>

namespace seto {

// Owns a file descriptor and closes it. Move only; an empty one holds -1.
class Fd final {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { close(); }

  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] bool valid() const { return number_ >= 0; }

  // The caller closes it from now on.
  [[nodiscard]] int release() { return std::exchange(number_, -1); }
  void close();

 private:
  int number_ = -1;
};

}  // namespace seto
