// Sizes and error bounds of codecs, for callers that check results.

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/api/support/errors.h"
#include "src/api/support/handles.h"
#include "src/codec/codec.h"
#include "src/core/call/ids.h"
#include "src/engine/coding.h"

using namespace seto;       // NOLINT: the entries of the C API belong to no namespace
using namespace seto::api;  // NOLINT

namespace {

// Converts a codec id to its number in plans (0: none), and checks that the codec accepts the type.
Result<std::uint8_t> number_of(int codec, setoDataType_t datatype) {
  if (!is_codec_id(codec))
    return failure(Code::invalid_argument, "codec: %d is not an id; call setoCodecId (%s)", codec, known_codecs().c_str());
  if (static_cast<unsigned>(datatype) >= kDataTypeCount)
    return failure(Code::invalid_argument, "datatype: %d is not a setoDataType_t", static_cast<int>(datatype));
  const std::uint8_t number = codec_number(codec);
  const auto type = static_cast<DataType>(datatype);
  if (number != 0 && !encodes(codec_of(number), type))
    return failure(Code::invalid_argument, "codec: %s does not accept %s", codec_name(number).data(), name_of(type).data());
  return number;
}

// The largest finite value of a type that codecs accept.
double largest_of(DataType type) {
  return type == DataType::float64    ? std::numeric_limits<double>::max()
         : type == DataType::bfloat16 ? static_cast<double>(0x1.fep127F)
                                      : static_cast<double>(std::numeric_limits<float>::max());
}

// The step of a codec grows with the power of two below a number; between two powers the larger one applies.
double power_above(double magnitude) { return std::exp2(std::ceil(std::log2(magnitude))); }

double bound_of(Codec codec, DataType type, int ranks, double largest) {
  const auto once = [&](double magnitude) {
    const double most = std::min(power_above(magnitude), std::numeric_limits<double>::max());
    return error_bound(codec, type, Rounding::nearest, most, most);
  };
  const double contributions = ranks * once(largest);
  const double most = ranks * largest + contributions;
  if (!std::isfinite(power_above(most))) return std::numeric_limits<double>::infinity();  // the sum may overflow
  // The additions round too: fewer than `ranks` of them, before and after the sum is encoded.
  const double epsilon = type == DataType::bfloat16  ? 0x1p-8
                         : type == DataType::float64 ? std::numeric_limits<double>::epsilon()
                                                     : static_cast<double>(std::numeric_limits<float>::epsilon());
  return contributions + once(most) + ranks * epsilon * most;
}

}  // namespace

extern "C" {

setoResult_t setoCodecSize(int codec, setoDataType_t datatype, size_t count, size_t* size) {
  return enter([&]() -> Status {
    if (size == nullptr) return null_argument("size");
    SETO_ASSIGN(const std::uint8_t number, number_of(codec, datatype));
    const std::size_t element = size_of(static_cast<DataType>(datatype));
    if (count > std::numeric_limits<std::size_t>::max() / 16)
      return failure(Code::invalid_argument, "count: %zu is too large", count);
    *size = number == 0 ? count * element : encoded_size(codec_of(number), count);
    return {};
  });
}

setoResult_t setoCodecErrorBound(int codec, setoDataType_t datatype, int ranks, double largest, double* bound) {
  return enter([&]() -> Status {
    if (bound == nullptr) return null_argument("bound");
    SETO_ASSIGN(const std::uint8_t number, number_of(codec, datatype));
    if (ranks < 1) return failure(Code::invalid_argument, "ranks: %d is not 1 or more", ranks);
    if (!(largest >= 0) || std::isinf(largest)) return failure(Code::invalid_argument, "largest: %g is not a magnitude", largest);
    if (const double most = largest_of(static_cast<DataType>(datatype)); number != 0 && largest > most)
      return failure(Code::invalid_argument, "largest: %g is beyond every %s, which end at %g", largest,
                     name_of(static_cast<DataType>(datatype)).data(), most);
    *bound = number == 0 || largest == 0 ? 0 : bound_of(codec_of(number), static_cast<DataType>(datatype), ranks, largest);
    return {};
  });
}

}  // extern "C"
