#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/net/address.h"

namespace seto {

// The kind of an interface, which tells whether other machines are likely to reach its addresses.
enum class InterfaceKind : std::uint8_t {
  ordinary,  // a network card, a bond or VLAN of cards, a bridge with a card, the container's end of a veth pair
  internal,  // connects this machine to its own containers or virtual machines: docker0, virbr0, a tap
  tunnel,    // its packets travel inside those of another interface: WireGuard, tun, ppp, IP in IP
  loopback,
};
std::string_view name_of(InterfaceKind kind);
// The kind of an interface with these flags of the kernel, from what a folder like /sys/class/net says about it.
[[nodiscard]] InterfaceKind kind_of(const std::string& classes, const std::string& name, unsigned flags);

struct Interface {
  std::string name;
  std::uint32_t index = 0;
  InterfaceKind kind = InterfaceKind::ordinary;
  bool up = true;                // administratively up, and with a carrier
  std::uint32_t speed_mbit = 0;  // 0: unknown to the driver
  std::vector<SocketAddress> addresses;
};

// The interfaces of this process's network namespace, in the order of the kernel. An interface without a carrier is down.
[[nodiscard]] Result<std::vector<Interface>> list_interfaces();

// The filter of SETO_INTERFACE: a comma-separated list. Each item is the name of an interface, a prefix of names (unless an
// interface has exactly that name) or an address block: eth,10.1.0.0/16. All items after a ^ are excluded: ^docker,virbr or
// eth,^eth3. An empty filter allows everything.
class InterfaceFilter final {
 public:
  InterfaceFilter() = default;
  static Result<InterfaceFilter> parse(std::string_view text);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool empty() const { return wanted_.empty() && unwanted_.empty(); }
  // `one` is an element of `all`; the names in `all` decide whether an item is a name or a prefix.
  [[nodiscard]] bool allows(const std::vector<Interface>& all, const Interface& one, const SocketAddress& address) const;
  // True if an item selects the address explicitly; allows() is also true if no item excludes it.
  [[nodiscard]] bool asks_for(const std::vector<Interface>& all, const Interface& one, const SocketAddress& address) const;

 private:
  struct Item {
    std::string name;  // empty: the item is an address block
    SocketAddress block{};
    unsigned prefix_length = 0;
  };
  static bool matches(const Item& item, const std::vector<Interface>& all, const Interface& one, const SocketAddress& address);
  static Result<Item> parse_item(std::string_view text);

  std::string text_;
  std::vector<Item> wanted_;
  std::vector<Item> unwanted_;
};

// Returns the addresses at which peers may reach this process, best first, port 0: ordinary interfaces, faster first; then
// internal interfaces; then link-local addresses; then tunnels, because another address may lead to the same peer without the
// detour; loopback only if there is no other address or the filter selects it.
// Interfaces that are down are skipped. Fails if the filter leaves no address; the text lists the interfaces.
[[nodiscard]] Result<std::vector<SocketAddress>> candidates(const std::vector<Interface>& all, const InterfaceFilter& filter);

// Returns the addresses to connect to for a peer's address: the address itself or, for link-local IPv6, one address for each
// own interface, because the peer's interface index is meaningless here.
[[nodiscard]] std::vector<SocketAddress> with_scopes(const SocketAddress& address, const std::vector<Interface>& own);

// "eth0 (10.0.0.1, fe80::1), lo (127.0.0.1)".
[[nodiscard]] std::string to_text(const std::vector<Interface>& all);

}  // namespace seto
