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

// How plans number codecs: 0 is none.
constexpr std::uint8_t plan_number(Codec codec) { return static_cast<std::uint8_t>(static_cast<int>(codec) + 1); }

constexpr Codec codec_of(std::uint8_t number) { return static_cast<Codec>(number - 1); }

// What may travel encoded at all.
constexpr bool sums(ReduceOp op) { return op == ReduceOp::sum || op == ReduceOp::avg || op == ReduceOp::premul_sum; }

// What the steps of one launch do with encoded bytes: read them, write them, or hand them on. Works through memory of its own,
// strip by strip, so that a strip stays in the cache between its passes. One thread at a time.
class Coding final {
 public:
  struct Setup {
    std::uint8_t number = 0;  // of the shape; not 0
    DataType type = DataType::float32;
    ReduceOp op = ReduceOp::sum;
    std::uint32_t most_sources = 1;  // of a step
  };
  // Fails for what is no sum, and for types that the codec does not take.
  static Result<std::unique_ptr<Coding>> create(const Setup& setup);

  // Bytes of so many elements. Additive over whole blocks.
  [[nodiscard]] std::size_t size(std::uint64_t count) const { return encoded_size(codec_, count); }
  // Elements: cuts at multiples of it change no bits.
  [[nodiscard]] std::uint32_t block() const { return facts_of(codec_).block; }
  [[nodiscard]] std::size_t residual_size() const { return residual_size_; }  // bytes of an element's

  // One piece of one slice of a step. Bit k of a mask: operand k is encoded bytes.
  struct Piece {
    ReduceCall plain;  // as if nothing were encoded
    std::uint64_t coded_sources = 0;
    std::uint64_t coded_targets = 0;
    bool moves = false;        // one source, and nothing is computed
    bool rounds = false;       // targets that are not encoded get what the bytes decode to
    void* residual = nullptr;  // of what is encoded here, element by element; null: what is left out is lost
  };
  void perform(const Piece& piece);
  // Before the first piece with a residual.
  void expect_residuals() { compensation_.prepare(); }

 private:
  Coding(const Setup& setup, Codec codec);

  void hand_on(const Piece& piece) const;
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
