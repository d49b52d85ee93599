#pragma once

#include <cstddef>
#include <vector>

#include "src/codec/codec.h"

namespace seto {

// Residuals of 16-bit numbers are kept in fp32, as value and residual are added in it. The sums' denormals follow the thread.
constexpr DataType residual_type(DataType type) { return type == DataType::float64 ? DataType::float64 : DataType::float32; }

// Encoding that owes nothing for long: what it leaves out of a number is added to the next one at that place. So the sum of all
// that was ever encoded there is off by one encoding's error, however many there were. One thread at a time.
class Compensation final {
 public:
  // For at most so many numbers at once.
  Compensation(Codec codec, DataType type, std::size_t most);

  // Takes its memory, as few of those that encode compensate: here, so that the first encode does not. Again: nothing.
  void prepare();

  // Encodes values + residual; residual, of residual_type, becomes what receivers, who read numbers of the type, miss of that.
  // Where what is sent is not finite, or the residual would make it so, it stays as it is: infinity owes nothing, and a number
  // that was lost with its block's NaN leaves no debt of NaN.
  void encode(const void* values, void* encoded, std::size_t count, void* residual);

 private:
  template <class Wide, class Narrow>
  void encode_as(const void* values, void* encoded, std::size_t count, void* residual);

  DataType type_;
  EncodeFunction encode_;
  DecodeFunction decode_;
  std::size_t most_;
  std::vector<std::byte> owed_;  // values and what is added to them
  std::vector<std::byte> sent_;  // what the bytes say
};

}  // namespace seto
