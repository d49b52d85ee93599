#include "transports/resume/heard.h"

#include <bit>
#include <cstring>

namespace seto::resume {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kFixed = 16;
constexpr std::size_t kEach = 8;

Status refuse(const char* what) {
  return failure(Code::remote_error, "an acknowledgement is garbage (%s): the connection is given up", what);
}

template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

}  // namespace

std::size_t encode(const Heard& heard, HeardBytes& bytes) {
  const auto count = static_cast<std::uint64_t>(heard.count);
  std::memcpy(bytes.data(), &heard.all_up_to, sizeof heard.all_up_to);
  std::memcpy(bytes.data() + sizeof heard.all_up_to, &count, sizeof count);
  std::size_t at = kFixed;
  std::uint64_t before = heard.all_up_to;
  for (const NumberRange& range : heard.beyond()) {
    const std::array<std::uint32_t, 2> words{static_cast<std::uint32_t>(range.first - before),
                                             static_cast<std::uint32_t>(range.last - range.first + 1)};
    std::memcpy(bytes.data() + at, words.data(), sizeof words);
    at += kEach;
    before = range.last;
  }
  return at;
}

Result<Heard> decode_heard(std::span<const std::byte> bytes) {
  if (bytes.size() < kFixed) return refuse("too short");
  Heard heard;
  heard.all_up_to = number_at<std::uint64_t>(bytes, 0);
  const auto count = number_at<std::uint64_t>(bytes, 8);
  if (count > Heard::kMostRanges) return refuse("too many ranges");
  if (bytes.size() != kFixed + kEach * count) return refuse("another size");
  // Half of all numbers are never sent: no sum below can overflow.
  if (heard.all_up_to >> 63 != 0) return refuse("a number that no frame can have");
  std::uint64_t before = heard.all_up_to;
  for (; heard.count < count; ++heard.count) {
    const auto distance = number_at<std::uint32_t>(bytes, kFixed + kEach * heard.count);
    const auto length = number_at<std::uint32_t>(bytes, kFixed + kEach * heard.count + 4);
    if (distance < 2 || length == 0) return refuse("ranges without a gap between them");
    heard.ranges[heard.count] = {before + distance, before + distance + length - 1};
    before = heard.ranges[heard.count].last;
  }
  return heard;
}

}  // namespace seto::resume
