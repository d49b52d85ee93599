#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace seto {

// The address of a PCI function, such as 0000:3b:00.0. Some hosts number domains with more than 16 bits.
struct PciAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;    // 0 to 31
  std::uint8_t function = 0;  // 0 to 7

  friend auto operator<=>(const PciAddress&, const PciAddress&) = default;
};

// Reads domain:bus:device.function in hexadecimal digits, in either case.
std::optional<PciAddress> parse_pci_address(std::string_view text);
// Writes it in lower case.
std::string text_of(const PciAddress& address);

// PCI class codes have 24 bits: class, subclass, interface. These look at the class and, where it is needed, the subclass.
[[nodiscard]] constexpr bool is_bridge_class(std::uint32_t code) { return (code >> 8) == 0x0604; }
[[nodiscard]] constexpr bool is_gpu_class(std::uint32_t code) { return (code >> 16) == 0x03 || (code >> 16) == 0x12; }
[[nodiscard]] constexpr bool is_network_class(std::uint32_t code) { return (code >> 16) == 0x02; }
[[nodiscard]] constexpr bool is_infiniband_class(std::uint32_t code) { return (code >> 8) == 0x0207; }
// A switch of GPU links (NVSwitch) reports itself as a bridge of another kind.
[[nodiscard]] constexpr bool is_gpu_switch_class(std::uint32_t code) { return code == 0x068000; }

// The bytes that a PCI Express link carries in one direction in a second, after its line code (8b/10b up to generation 2,
// 128b/130b up to generation 5, 242 of 256 bytes of a flit in generation 6). Absent if the generation is not one of 1 to 6 or
// there are no lanes.
std::optional<double> pci_bytes_per_second(int generation, int lanes);

// The generation of PCI Express that has this speed in the words of the kernel, such as "16.0 GT/s PCIe". 0: none.
int pci_generation_of(std::string_view speed);

}  // namespace seto
