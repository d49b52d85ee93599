#include "src/topology/xml/attributes.h"

#include <algorithm>
#include <charconv>

#include "src/base/text.h"

namespace seto {

Status element_failure(const XmlElement& element, const std::string& what) {
  return failure(Code::invalid_argument, "line %zu: <%s>: %s", element.line, element.name.c_str(), what.c_str());
}

const std::string* Attributes::take(std::string_view key) {
  taken_.push_back(key);
  const std::string* const value = element_.attribute(key);
  return value == nullptr || value->empty() ? nullptr : value;
}

void Attributes::fail(const std::string& what) {
  if (first_.ok()) first_ = element_failure(element_, what);
}

void Attributes::refuse(std::string_view key, const std::string& value, const std::string& expected) {
  fail(std::string(key) + ": '" + plain_ascii(value.substr(0, 40)) + "' is not " + expected);
}

std::string Attributes::text(std::string_view key) {
  const std::string* const value = take(key);
  return value == nullptr ? std::string() : *value;
}

std::string Attributes::name(std::string_view key) {
  std::string value = text(key);
  if (std::any_of(value.begin(), value.end(), [](char c) { return c < ' ' || c == 0x7f; }))
    refuse(key, value, "a name of printable ASCII characters");
  return value;
}

int Attributes::integer(std::string_view key, int least, int most, int fallback) {
  const std::string* const value = take(key);
  if (value == nullptr) return fallback;
  int result = 0;
  const auto [at, error] = std::from_chars(value->data(), value->data() + value->size(), result);
  if (error == std::errc() && at == value->data() + value->size() && result >= least && result <= most) return result;
  refuse(key, *value, "a number from " + std::to_string(least) + " to " + std::to_string(most));
  return fallback;
}

std::optional<std::uint64_t> Attributes::hexadecimal(std::string_view key, std::uint64_t most) {
  const std::string* const value = take(key);
  if (value == nullptr) return std::nullopt;
  std::string_view digits = *value;
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  std::uint64_t result = 0;
  const auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result, 16);
  if (error == std::errc() && at == digits.data() + digits.size() && result <= most) return result;
  refuse(key, *value, "a hexadecimal number in range, such as 0x030200");
  return std::nullopt;
}

std::optional<double> Attributes::number(std::string_view key, double least, double most) {
  const std::string* const value = take(key);
  if (value == nullptr) return std::nullopt;
  double result = 0;
  const auto [at, error] = std::from_chars(value->data(), value->data() + value->size(), result);
  if (error == std::errc() && at == value->data() + value->size() && result >= least && result <= most)
    return result + 0.0;  // -0 becomes 0
  refuse(key, *value, "a number from " + std::to_string(least) + " to " + std::to_string(most));
  return std::nullopt;
}

std::optional<bool> Attributes::flag(std::string_view key) {
  const int value = integer(key, 0, 1, -1);
  return value < 0 ? std::nullopt : std::optional<bool>(value == 1);
}

std::optional<PciAddress> Attributes::address(std::string_view key) {
  const std::string* const value = take(key);
  if (value == nullptr) {
    fail(std::string(key) + " is missing");
    return std::nullopt;
  }
  const std::optional<PciAddress> result = parse_pci_address(*value);
  if (!result) refuse(key, *value, "a PCI address such as 0000:3b:00.0");
  return result;
}

void Attributes::ignore(std::initializer_list<std::string_view> keys) { taken_.insert(taken_.end(), keys); }

Status Attributes::done() const {
  if (!first_.ok()) return first_;
  for (const auto& [key, value] : element_.attributes) {
    if (std::find(taken_.begin(), taken_.end(), key) != taken_.end()) continue;
    const std::string guess(nearest(key, taken_));
    return element_failure(element_,
                           "attribute '" + key.substr(0, 40) + "' is unknown" + (guess.empty() ? "" : "; did you mean " + guess));
  }
  return {};
}

}  // namespace seto
