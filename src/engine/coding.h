#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/result.h"
#include "src/codec/codec.h"
#include "src/device/reduce.h"
#include "src/engine/compensation.h"
#include "src/plan/plan.h"

namespace seto {

// Plans number codecs from 1; 0 means that there is none.
constexpr std::uint8_t plan_number(Codec codec) { return static_cast<std::uint8_t>(static_cast<int>(codec) + 1); }

constexpr Codec codec_of(std::uint8_t number) { return static_cast<Codec>(number - 1); }

// Only the contributions and results of sums may be encoded.
constexpr bool sums(ReduceOp op) { return op == ReduceOp::sum || op == ReduceOp::avg || op == ReduceOp::premul_sum; }

// Executes steps that read, write or forward encoded bytes. It works strip by strip in memory of its own, so that a strip stays
// in
// the cache between its passes. One thread at a time.
class Coding final {
 public:
  struct Setup {
    std::uint8_t number = 0;  // the codec's number in plans; not 0
    DataType type = DataType::float32;
    ReduceOp op = ReduceOp::sum;
    std::uint32_t most_sources = 1;  // of a step
  };
  // Fails if the operation is not a sum, or if the codec does not take the type.
  static Status check(const Setup& setup);
  static Result<std::unique_ptr<Coding>> create(const Setup& setup);

  [[nodiscard]] std::size_t residual_size() const { return residual_size_; }  // bytes for one element

  // One piece of one slice of a step. Bit k of a mask says that operand k is encoded bytes.
  struct Piece {
    ReduceCall plain;  // as if nothing were encoded
    std::uint64_t coded_sources = 0;
    std::uint64_t coded_targets = 0;
    bool moves = false;        // one source, and nothing is computed
    bool rounds = false;       // targets that are not encoded get the value that the bytes decode to
    void* residual = nullptr;  // for each element that is encoded here; null: errors are dropped
  };
  void perform(const Piece& piece);
  // Before the first piece with a residual.
  void expect_residuals() { compensation_.prepare(); }

 private:
  Coding(const Setup& setup, Codec codec);

  [[nodiscard]] std::size_t size(std::uint64_t count) const { return encoded_size(codec_, count); }
  void forward(const Piece& piece) const;
  void strip(const Piece& piece, std::size_t first, std::size_t count);
  [[nodiscard]] std::byte* staged(std::uint32_t source) { return &staging_[source * kStripBytes]; }

  static constexpr std::size_t kStripBytes = 16 << 10;

  Codec codec_;
  std::size_t element_size_;
  std::size_t residual_size_;
  std::size_t strip_;  // elements
  ReduceFunction reduce_;
  EncodeFunction encode_;
  DecodeFunction decode_;
  Compensation compensation_;
  std::vector<std::byte> staging_;  // a strip for each source
  std::vector<std::byte> result_;
  std::vector<std::byte> bytes_;
};

}  // namespace seto
