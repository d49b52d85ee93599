#include "src/topology/graph/pci_address.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>

namespace seto {
namespace {

// Takes hexadecimal digits up to `end` (or to the end of the text, if it is 0) off the front.
std::optional<std::uint32_t> take_hex(std::string_view& text, char end, std::size_t most_digits, std::uint32_t most) {
  const std::size_t length = end == '\0' ? text.size() : text.find(end);
  if (length == std::string_view::npos || length == 0 || length > most_digits) return std::nullopt;
  std::uint32_t value = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + length, value, 16);
  if (error != std::errc() || at != text.data() + length || value > most) return std::nullopt;
  text.remove_prefix(end == '\0' ? length : length + 1);
  return value;
}

}  // namespace

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  const auto domain = take_hex(text, ':', 8, 0xffffffff);
  const auto bus = domain ? take_hex(text, ':', 2, 0xff) : std::nullopt;
  const auto device = bus ? take_hex(text, '.', 2, 0x1f) : std::nullopt;
  const auto function = device ? take_hex(text, '\0', 1, 0x7) : std::nullopt;
  if (!function) return std::nullopt;
  return PciAddress{*domain, static_cast<std::uint8_t>(*bus), static_cast<std::uint8_t>(*device),
                    static_cast<std::uint8_t>(*function)};
}

std::string text_of(const PciAddress& address) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", address.domain, static_cast<unsigned>(address.bus),
                static_cast<unsigned>(address.device), static_cast<unsigned>(address.function));
  return text.data();
}

std::optional<double> pci_bytes_per_second(int generation, int lanes) {
  static constexpr std::array<double, 6> kTransfers = {2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9};
  if (generation < 1 || generation > 6 || lanes < 1) return std::nullopt;
  const double code = generation <= 2 ? 8.0 / 10 : generation <= 5 ? 128.0 / 130 : 242.0 / 256;
  return kTransfers[static_cast<std::size_t>(generation - 1)] * code / 8 * lanes;
}

int pci_generation_of(std::string_view speed) {
  if (speed.ends_with(" PCIe")) speed.remove_suffix(5);
  static constexpr std::array<std::array<std::string_view, 2>, 6> kSpeeds = {{{"2.5 GT/s", "2.5 GT/s"},
                                                                              {"5 GT/s", "5.0 GT/s"},
                                                                              {"8 GT/s", "8.0 GT/s"},
                                                                              {"16 GT/s", "16.0 GT/s"},
                                                                              {"32 GT/s", "32.0 GT/s"},
                                                                              {"64 GT/s", "64.0 GT/s"}}};
  for (std::size_t i = 0; i < kSpeeds.size(); ++i)
    if (speed == kSpeeds[i][0] || speed == kSpeeds[i][1]) return static_cast<int>(i) + 1;
  return 0;
}

}  // namespace seto
