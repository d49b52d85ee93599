#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/bootstrap/rendezvous/frames.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

// A decoded body is equal after encoding and decoding it again.
void read_back(const seto::Frame& frame) {
  const std::string_view body = frame.body;
  seto::FrameReader again(seto::kHelloBodySize);
  seto::Frame written;
  if (const auto hello = seto::decode_hello(body)) {
    again.append(seto::encode_hello(*hello));
    check(again.next(written) == seto::FrameReader::Outcome::frame);
    const auto same = seto::decode_hello(written.body);
    check(same && same->number == hello->number && same->rank == hello->rank &&
          same->address.addresses == hello->address.addresses);
  }
  static_cast<void>(seto::decode_ready(body));
  if (const auto contribution = seto::decode_contribution(body)) check(contribution->message.size() + 8 == body.size());
  for (const int size : {1, 2, 1'000}) {
    const auto result = seto::decode_result(body, size);
    check(!result || result->size() == static_cast<std::size_t>(size));
  }
  check(!seto::decode_failure(body).ok());
  static_cast<void>(seto::decode_orphan(body));
}

}  // namespace

// Feeds a stream in pieces, whose length the first byte gives. The reader never holds more than one frame of its limit and one
// piece.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  constexpr std::size_t kLimit = 4'096;
  const std::size_t piece = 1 + data[0];
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  seto::FrameReader reader(kLimit);
  while (!rest.empty()) {
    reader.append(rest.substr(0, piece));
    rest.remove_prefix(std::min(piece, rest.size()));
    seto::Frame frame;
    auto outcome = reader.next(frame);
    for (; outcome == seto::FrameReader::Outcome::frame; outcome = reader.next(frame)) {
      check(frame.body.size() <= kLimit);
      read_back(frame);
    }
    if (outcome == seto::FrameReader::Outcome::garbage) return 0;
  }
  return 0;
}
