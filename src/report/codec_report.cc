#include "src/report/codec_report.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <limits>
#include <vector>

#include "src/base/clock.h"
#include "src/base/json_writer.h"
#include "src/codec/codec.h"

namespace seto {
namespace {

constexpr int kPictureWidth = 40;
constexpr double kWholePictureDb = 100;

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, pattern);
  (void)std::vsnprintf(text.data(), text.size(), pattern, arguments);
  va_end(arguments);
  return text.data();
}

double bits_of(Codec codec) {
  const CodecFacts& facts = facts_of(codec);
  return facts.bits + 8.0 * facts.header_size / facts.block;
}

// ---- rates ----

struct Rates {
  double encode = 0;  // bytes of fp32 a second
  double decode = 0;
};

template <class Work>
double rate_of(std::size_t bytes, const Work& work) {
  constexpr std::uint64_t kLongEnoughNs = 15'000'000;
  work();
  const std::uint64_t start = monotonic_ns();
  std::uint64_t times = 0;
  std::uint64_t took = 0;
  for (; took < kLongEnoughNs; took = monotonic_ns() - start, ++times) work();
  return static_cast<double>(bytes * times) * 1e9 / static_cast<double>(took);
}

Rates rates_of(Codec codec) {
  constexpr std::size_t kCount = std::size_t{1} << 18;  // 1 MiB of fp32
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = std::sin(static_cast<float>(i));
  std::vector<std::byte> bytes(encoded_size(codec, kCount));
  const EncodeFunction encode = encode_function(codec, DataType::float32, Rounding::nearest);
  const DecodeFunction decode = decode_function(codec, DataType::float32);
  const std::size_t size = kCount * sizeof(float);
  return {rate_of(size,
                  [&] {
                    encode({values.data(), bytes.data(), kCount, Store::cached, 0, 0});
                  }),
          rate_of(size, [&] {
            decode({bytes.data(), nullptr, values.data(), kCount, Store::cached});
          })};
}

// Measured once per process: a caller asks twice, first for the length of the text.
const Rates& known_rates(Codec codec) {
  static const std::array<Rates, kCodecCount> all = [] {
    std::array<Rates, kCodecCount> rates;
    for (int value = 0; value < kCodecCount; ++value)
      rates[static_cast<std::size_t>(value)] = rates_of(static_cast<Codec>(value));
    return rates;
  }();
  return all[static_cast<std::size_t>(codec)];
}

// ---- errors ----

// The largest relative error of a number of about the size of the largest one in its block, where a codec has its full precision.
double relative_error(Codec codec) { return error_bound(codec, DataType::float32, Rounding::nearest, 1, 1); }

// The largest error of a much smaller number, as a share of the largest number in its block.
double smallest_error(Codec codec) {
  return error_bound(codec, DataType::float32, Rounding::nearest, 1, std::numeric_limits<float>::min());
}

// The result of encoding and decoding an array with one codec.
struct Checked {
  Codec codec = Codec::fp16;
  std::size_t bytes = 0;
  double largest_error = 0;
  double signal_to_noise_db = 0;  // infinity: exact; NaN: no finite number is left to compare
  std::size_t became_nan = 0;     // finite numbers that became NaN
  std::size_t lost_infinities = 0;
};

double number_at(DataType type, const std::byte* at) {
  if (type == DataType::float64) {
    double value = 0;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, size_of(type));
  return std::bit_cast<float>(type == DataType::bfloat16 ? bits << 16 : bits);
}

// `largest` is the largest finite magnitude. Squares are computed relative to it, because the square of a large number may
// overflow.
Checked checked(Codec codec, const std::vector<std::byte>& values, DataType type, std::size_t count, double largest) {
  const std::size_t element = size_of(type);
  const int scale = largest > 0 ? -std::ilogb(largest) : 0;
  Checked result;
  result.codec = codec;
  result.bytes = encoded_size(codec, count);
  std::vector<std::byte> bytes(result.bytes);
  std::vector<std::byte> back(values.size());
  encode_function(codec, type, Rounding::nearest)({values.data(), bytes.data(), count, Store::cached, 0, 0});
  decode_function(codec, type)({bytes.data(), nullptr, back.data(), count, Store::cached});
  double signal = 0;
  double noise = 0;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double before = number_at(type, &values[i * element]);
    const double after = number_at(type, &back[i * element]);
    if (std::isinf(before) && after != before) ++result.lost_infinities;
    if (!std::isfinite(before)) continue;
    if (std::isnan(after)) {
      ++result.became_nan;
      continue;
    }
    ++compared;
    const double error = std::abs(after - before);
    result.largest_error = std::max(result.largest_error, error);
    const double share = std::ldexp(before, scale);
    const double missed = std::ldexp(error, scale);
    signal += share * share;
    noise += missed * missed;
  }
  result.signal_to_noise_db = noise > 0      ? 10 * std::log10(signal / noise)
                              : compared > 0 ? std::numeric_limits<double>::infinity()
                                             : std::numeric_limits<double>::quiet_NaN();
  return result;
}

std::string picture(double db) {
  if (std::isnan(db)) return {};
  const double share = std::isfinite(db) ? std::clamp(db / kWholePictureDb, 0.0, 1.0) : 1.0;
  return std::string(static_cast<std::size_t>(std::lround(share * kPictureWidth)), '#');
}

// Statistics of the input array.
struct Numbers {
  std::size_t not_finite = 0;
  std::size_t zeros = 0;
  double largest = 0;
  double smallest = std::numeric_limits<double>::infinity();  // of the nonzero numbers
};

Numbers numbers_in(const std::vector<std::byte>& values, DataType type, std::size_t count) {
  Numbers numbers;
  for (std::size_t i = 0; i < count; ++i) {
    const double magnitude = std::abs(number_at(type, &values[i * size_of(type)]));
    if (!std::isfinite(magnitude)) {
      ++numbers.not_finite;
    } else if (magnitude == 0) {
      ++numbers.zeros;
    } else {
      numbers.largest = std::max(numbers.largest, magnitude);
      numbers.smallest = std::min(numbers.smallest, magnitude);
    }
  }
  return numbers;
}

std::string check_text(const Numbers& numbers, const std::vector<Checked>& all, DataType type, std::size_t count) {
  std::string text = format("%zu numbers of %s, %zu bytes: magnitudes %.3g to %.3g, %zu zeros, %zu not finite\n", count,
                            std::string(name_of(type)).c_str(), count * size_of(type), numbers.largest > 0 ? numbers.smallest : 0,
                            numbers.largest, numbers.zeros, numbers.not_finite);
  text += format("%-6s %14s %8s %14s %10s  %s\n", "codec", "bytes", "share", "largest error", "SNR (dB)", "0 to 100 dB");
  for (const Checked& one : all) {
    const double ratio = one.signal_to_noise_db;
    const std::string db = std::isnan(ratio) ? "none" : std::isfinite(ratio) ? format("%.1f", ratio) : "exact";
    text += format("%-6s %14zu %7.1f%% %14.3g %10s  %s\n", std::string(facts_of(one.codec).name).c_str(), one.bytes,
                   count == 0 ? 0.0 : 100.0 * static_cast<double>(one.bytes) / static_cast<double>(count * size_of(type)),
                   one.largest_error, db.c_str(), picture(one.signal_to_noise_db).c_str());
    if (one.became_nan > 0)
      text += format("       %zu finite numbers became NaN, in blocks with numbers that are not finite\n", one.became_nan);
    if (one.lost_infinities > 0) text += format("       %zu infinities became NaN\n", one.lost_infinities);
  }
  return text;
}

std::string check_json(const Numbers& numbers, const std::vector<Checked>& all, DataType type, std::size_t count) {
  JsonWriter json;
  json.open('{').key("type").value(name_of(type)).key("count").number(std::uint64_t{count});
  json.key("not_finite").number(std::uint64_t{numbers.not_finite}).key("zeros").number(std::uint64_t{numbers.zeros});
  json.key("largest").number(numbers.largest).key("codecs").open('[');
  for (const Checked& one : all) {
    json.open('{').key("codec").value(facts_of(one.codec).name).key("bytes").number(std::uint64_t{one.bytes});
    json.key("largest_error").number(one.largest_error).key("became_nan").number(std::uint64_t{one.became_nan});
    json.key("lost_infinities").number(std::uint64_t{one.lost_infinities});
    if (std::isfinite(one.signal_to_noise_db)) json.key("signal_to_noise_db").number(one.signal_to_noise_db);
    json.close('}');
  }
  json.close(']').close('}');
  return std::move(json).text();
}

}  // namespace

std::string codecs_report(ReportFormat report) {
  std::string text =
      format("%-6s %8s %6s %10s %10s %8s %8s\n", "codec", "bits", "block", "relative", "floor", "encode", "decode");
  std::string notes;
  JsonWriter json;
  json.open('[');
  for (int value = 0; value < kCodecCount; ++value) {
    const auto codec = static_cast<Codec>(value);
    const CodecFacts& facts = facts_of(codec);
    const std::string name(facts.name);
    const Rates& rates = known_rates(codec);
    text += format("%-6s %8.4g %6u %10.2g %10.2g %8.1f %8.1f\n", name.c_str(), bits_of(codec), facts.block, relative_error(codec),
                   smallest_error(codec), rates.encode * 1e-9, rates.decode * 1e-9);
    notes += name + ": NaN " + std::string(facts.nan) + "; infinity " + std::string(facts.infinity) + "; zero " +
             std::string(facts.zero) + "; denormals " + std::string(facts.denormal) + "\n";
    json.open('{').key("codec").value(name).key("bits").number(bits_of(codec)).key("block").number(std::uint64_t{facts.block});
    json.key("relative_error").number(relative_error(codec)).key("smallest_error").number(smallest_error(codec));
    json.key("encode_bytes_per_second").number(rates.encode).key("decode_bytes_per_second").number(rates.decode);
    json.key("nan").value(facts.nan).key("infinity").value(facts.infinity).key("zero").value(facts.zero);
    json.key("denormal").value(facts.denormal).close('}');
  }
  json.close(']');
  if (report == ReportFormat::json) return std::move(json).text();
  return text +
         "bits: of an element, including headers. relative: the worst error of a number next to the largest of its block, over "
         "it.\n"
         "floor: the worst error of far smaller numbers, over that largest. encode, decode: GB/s of fp32 on one core, in "
         "cache.\n" +
         notes;
}

Result<std::string> codec_check(const void* values, DataType type, std::size_t count, ReportFormat report) {
  // A copy with the alignment that the element type needs.
  std::vector<std::byte> own(count * size_of(type));
  if (!own.empty()) std::memcpy(own.data(), values, own.size());
  const Numbers numbers = numbers_in(own, type, count);
  std::vector<Checked> all;
  for (int value = 0; value < kCodecCount; ++value)
    if (const auto codec = static_cast<Codec>(value); encodes(codec, type))
      all.push_back(checked(codec, own, type, count, numbers.largest));
  if (all.empty())
    return failure(Code::invalid_argument, "datatype: no codec accepts %s; float32, float64 and bfloat16 have codecs",
                   std::string(name_of(type)).c_str());
  return report == ReportFormat::text ? check_text(numbers, all, type, count) : check_json(numbers, all, type, count);
}

}  // namespace seto
