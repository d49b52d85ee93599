#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "transports/resume/hello.h"
#include "transports/resume/retention.h"

// Accepted bytes are equal to their own encoding. A sender that hears it releases frames that it sent, or refuses and keeps them
// all.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace seto::resume;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto hello = decode_hello(bytes);
  if (!hello.ok()) return 0;
  HelloBytes again;
  if (encode(hello.value(), again) != size || !std::equal(bytes.begin(), bytes.end(), again.begin())) std::abort();

  constexpr std::uint64_t kSent = 200;
  CopyMemory copies(0);
  Retention<int> kept({1, kSent, 0}, copies);
  for (std::uint64_t number = 1; number <= kSent; ++number) (void)kept.add(0, {}, 0);
  const Heard& heard = hello.value().heard;
  const bool heard_well = kept.acknowledge(heard).ok();
  if (heard_well != (heard.last() <= kSent)) std::abort();
  for (std::uint64_t number = 1; number <= kSent; ++number) {
    const auto ranges = heard.beyond();
    const bool told = number <= heard.all_up_to || std::any_of(ranges.begin(), ranges.end(), [number](const NumberRange& range) {
                        return range.first <= number && number <= range.last;
                      });
    if (kept.keeps(number) == (heard_well && told)) std::abort();
  }
  return 0;
}
