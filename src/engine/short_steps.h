#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/device/reduce.h"
#include "src/engine/bound_program.h"
#include "src/engine/host_streams.h"

namespace seto {

// The steps of a program that has one slice, and in it only short messages: all that HostExecutor derives from program, step and
// slice before it touches a byte is derived once. The general step takes five times the instructions, and for an 8-byte
// all_reduce that was a third of the call. Gives the same bits: it calls the same kernels with the same operands.
class ShortSteps final {
 public:
  // The longest message and the longest piece, in bytes. Stores past the cache are never worth it at this size.
  static constexpr std::uint64_t kMost = 4 << 10;

  // Null: the program has other steps as well. Both arguments outlive the result.
  static std::unique_ptr<ShortSteps> create(const BoundProgram& program, const HostStreams& streams);

  // The values of one operation.
  struct Operation {
    Mark mark = 0;
    std::array<std::byte*, 4> memories{};  // by space
    const void* scalar = nullptr;
  };
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(steps_.size()); }
  // The steps at the beginning that only send memory.
  [[nodiscard]] std::uint32_t first_sends() const;
  // Does a step whole or not at all.
  bool try_step(std::uint32_t lane, const Operation& operation) const;

 private:
  // A stream, or memory at an offset from the begin of a space.
  struct Source {
    ReceiveStream* stream = nullptr;
    BorrowingReceiver* borrowing = nullptr;
    Space space = Space::input;
    std::uint64_t offset = 0;
  };
  struct Target {
    SendStream* stream = nullptr;
    Space space = Space::output;
    std::uint64_t offset = 0;
  };
  struct Step {
    const Source* sources = nullptr;
    const Target* targets = nullptr;
    std::uint32_t source_count = 0;
    std::uint32_t target_count = 0;
    std::uint64_t count = 0;  // elements
    std::uint64_t bytes = 0;
    std::uint64_t scaled = 0;
    std::uint32_t divisor = 1;
    bool moves = false;  // a plain copy
    bool sends = false;  // of memory to one stream
  };

  ShortSteps(const BoundProgram& program, const HostStreams& streams);
  void perform(const Step& step, const void* const* from, const ReduceTarget* to, const void* scalar) const;

  const ReduceFunction reduce_;
  std::vector<Source> sources_;
  std::vector<Target> targets_;
  std::vector<Step> steps_;
};

}  // namespace seto
