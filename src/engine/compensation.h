#pragma once

#include <cstddef>
#include <vector>

#include "src/codec/codec.h"

namespace seto {

// Value and residual of 16-bit numbers are added in fp32, so their residuals are kept in fp32. Denormals are treated as the
// floating point settings of the thread say.
constexpr DataType residual_type(DataType type) { return type == DataType::float64 ? DataType::float64 : DataType::float32; }

// Encoding with error feedback: the error of a number is added to the next number at that place. So the sum of all numbers that
// were encoded there differs from the exact sum by the error of one encoding, however many there were. One thread at a time.
class Compensation final {
 public:
  // `most`: the limit of numbers in one encode().
  Compensation(Codec codec, DataType type, std::size_t most);

  // Allocates memory, so that encode() does not. Few encodings compensate, so the constructor does not either. A repeated call
  // does nothing.
  void prepare();

  // Encodes values + residual. The residual, of residual_type, becomes that sum minus the number that receivers decode. It keeps
  // its old value where the sum or the decoded number is not finite: neither an infinity nor a NaN of the block enters later
  // sums.
  void encode(const void* values, void* encoded, std::size_t count, void* residual);

 private:
  template <class Wide, class Narrow>
  void encode_as(const void* values, void* encoded, std::size_t count, void* residual);

  DataType type_;
  EncodeFunction encode_;
  DecodeFunction decode_;
  std::size_t most_;
  std::vector<std::byte> owed_;  // values plus residuals
  std::vector<std::byte> sent_;  // the decoded values of the bytes
};

}  // namespace seto
