#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/net/address.h"

namespace seto {

// What stands behind an interface, as far as the choice of an address asks: whether other machines are likely to reach it.
enum class InterfaceKind : std::uint8_t {
  ordinary,  // a network card, a bond or VLAN of some, a bridge that holds one, the end of a veth pair that a container sees
  internal,  // between this machine and its own containers or guests: docker0, virbr0, a tap
  loopback,
};
std::string_view name_of(InterfaceKind kind);

struct Interface {
  std::string name;
  std::uint32_t index = 0;
  InterfaceKind kind = InterfaceKind::ordinary;
  bool up = true;                // and its cable is plugged in
  std::uint32_t speed_mbit = 0;  // 0: the driver does not say
  std::vector<SocketAddress> addresses;
};

// Of this process's network namespace, in the order of the kernel. One whose cable is out is listed as down.
[[nodiscard]] Result<std::vector<Interface>> list_interfaces();

// From the text of SETO_INTERFACE: items with commas between them, each the name of an interface, the beginning of one (unless
// an interface has exactly that name) or an address block, as eth,10.1.0.0/16. What follows a ^ is not used: ^docker,virbr or
// eth,^eth3. Empty: everything.
class InterfaceFilter final {
 public:
  InterfaceFilter() = default;
  static Result<InterfaceFilter> parse(std::string_view text);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool empty() const { return wanted_.empty() && unwanted_.empty(); }
  // The interface is one of `all`, whose names decide whether an item is a name or the beginning of one.
  [[nodiscard]] bool allows(const std::vector<Interface>& all, const Interface& one, const SocketAddress& address) const;
  // An item asks for it, rather than that none forbids it.
  [[nodiscard]] bool asks_for(const std::vector<Interface>& all, const Interface& one, const SocketAddress& address) const;

 private:
  struct Item {
    std::string name;  // empty: a block
    SocketAddress block{};
    unsigned prefix_length = 0;
  };
  static bool matches(const Item& item, const std::vector<Interface>& all, const Interface& one, const SocketAddress& address);
  static Result<Item> parse_item(std::string_view text);

  std::string text_;
  std::vector<Item> wanted_;
  std::vector<Item> unwanted_;
};

// The addresses at which others may reach this process, best first, port 0: of ordinary interfaces, the faster first; then of
// internal ones; then link-local; loopback only where no address reaches further, or where the filter asks for it. Interfaces
// that are down have none. A filter that leaves nothing is a failure that lists what there is.
[[nodiscard]] Result<std::vector<SocketAddress>> candidates(const std::vector<Interface>& all, const InterfaceFilter& filter);

// What to connect to for an address that a peer gave: itself, or, for a link-local IPv6 one, its forms on our own interfaces,
// because its interface is only known where it was made.
[[nodiscard]] std::vector<SocketAddress> with_scopes(const SocketAddress& address, const std::vector<Interface>& own);

// "eth0 (10.0.0.1, fe80::1), lo (127.0.0.1)".
[[nodiscard]] std::string to_text(const std::vector<Interface>& all);

}  // namespace seto
