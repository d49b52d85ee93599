#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/software_gpu/fault.h"
#include "tests/software_gpu/machine.h"

namespace seto::software_gpu {

// Memory of a GPU that a test fills and reads while no kernel runs.
template <class T>
class DeviceArray final {
 public:
  DeviceArray(Machine& machine, std::uint32_t gpu, std::size_t count, const std::string& name = "array")
      : address_(machine.allocate(gpu, count * sizeof(T), name)), count_(count) {
    fill(T{});
  }

  [[nodiscard]] std::uint64_t address() const { return address_; }
  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(address_); }
  T& operator[](std::size_t i) const { return data()[i]; }
  void fill(T value) const { std::fill_n(data(), count_, value); }
  [[nodiscard]] std::vector<T> values() const { return {data(), data() + count_}; }

 private:
  std::uint64_t address_;
  std::size_t count_;
};

// A module around kernels that a test writes out.
[[nodiscard]] inline std::string ptx_module(const std::string& kernels, const std::string& target = "sm_80") {
  return ".version 9.0\n.target " + target + "\n.address_size 64\n" + kernels;
}

// Launches and waits for the end.
template <class... T>
void run_kernel(Machine& machine, const Program& program, const std::string& kernel, const Dim3& grid, const Dim3& block,
                const T&... arguments) {
  machine.launch({.program = &program, .kernel = kernel, .grid = grid, .block = block, .arguments = arguments_of(arguments...)});
  machine.run();
}

// The kind and the text of the fault that `run` throws.
template <class F>
[[nodiscard]] std::pair<FaultKind, std::string> fault_of(const F& run) {
  try {
    run();
  } catch (const Fault& fault) {
    return {fault.kind(), fault.what()};
  }
  ADD_FAILURE() << "no fault was thrown";
  return {};
}

}  // namespace seto::software_gpu
