#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "src/control/channel/control_frames.h"

// Every cut of the bytes gives the same frames, and each frame is equal to its own encoding.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace seto;
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string whole;
  std::string cut;
  ControlFrameReader one;
  ControlFrameReader many;
  const bool sound = one.feed(bytes, [&](const ControlFrame& frame) { whole += encode(frame); }).ok();
  bool still_sound = true;
  for (std::size_t at = 0; at < bytes.size() && still_sound; at += piece) {
    still_sound = many.feed(bytes.substr(at, piece), [&](const ControlFrame& frame) { cut += encode(frame); }).ok();
  }
  if (sound != still_sound || whole != cut || bytes.substr(0, whole.size()) != whole) std::abort();
  return 0;
}
