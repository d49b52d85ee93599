#include <algorithm>

#include "src/base/text.h"
#include "src/net/interfaces.h"

namespace seto {
namespace {

unsigned bits_of(AddressFamily family) { return family == AddressFamily::ipv4 ? 32 : 128; }

bool in_block(const SocketAddress& address, const SocketAddress& block, unsigned prefix_length) {
  if (address.family != block.family) return false;
  for (unsigned bit = 0; bit < prefix_length; ++bit) {
    const auto mask = static_cast<unsigned>(0x80U >> (bit % 8));
    if (((address.bytes[bit / 8] ^ block.bytes[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

Result<InterfaceFilter> InterfaceFilter::parse(std::string_view text) {
  InterfaceFilter filter;
  filter.text_ = text;
  bool excluding = false;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view part = trimmed(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (part.starts_with('^')) {
      excluding = true;
      part = trimmed(part.substr(1));
    }
    if (part.empty()) continue;
    SETO_ASSIGN(Item item, parse_item(part));
    (excluding ? filter.unwanted_ : filter.wanted_).push_back(std::move(item));
  }
  return filter;
}

Result<InterfaceFilter::Item> InterfaceFilter::parse_item(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto block = parse_host(text.substr(0, slash));
  if (!block && slash == std::string_view::npos) return Item{std::string(text)};
  const unsigned most = block ? bits_of(block->family) : 0;
  const auto length = slash == std::string_view::npos ? most : parse_uint(text.substr(slash + 1));
  if (!block || !length || *length > most) {
    return failure(
        Code::invalid_argument,
        "SETO_INTERFACE: '%.100s' is not an address block; write an address, a slash and a number of bits, as 10.1.0.0/16",
        std::string(text).c_str());
  }
  return Item{{}, *block, static_cast<unsigned>(*length)};
}

bool InterfaceFilter::matches(const Item& item, const std::vector<Interface>& all, const Interface& one,
                              const SocketAddress& address) {
  if (item.name.empty()) return in_block(address, item.block, item.prefix_length);
  const bool is_a_name = std::any_of(all.begin(), all.end(), [&](const Interface& other) { return other.name == item.name; });
  return is_a_name ? one.name == item.name : one.name.starts_with(item.name);
}

bool InterfaceFilter::asks_for(const std::vector<Interface>& all, const Interface& one, const SocketAddress& address) const {
  return std::any_of(wanted_.begin(), wanted_.end(), [&](const Item& item) { return matches(item, all, one, address); });
}

bool InterfaceFilter::allows(const std::vector<Interface>& all, const Interface& one, const SocketAddress& address) const {
  if (!wanted_.empty() && !asks_for(all, one, address)) return false;
  return std::none_of(unwanted_.begin(), unwanted_.end(), [&](const Item& item) { return matches(item, all, one, address); });
}

}  // namespace seto
