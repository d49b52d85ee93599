#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/topology/graph/pci_address.h"
#include "src/topology/xml/xml_element.h"

namespace seto {

// Reads the attributes of one element and checks their ranges. An attribute that is absent or empty gives the fallback. The first
// error is kept, so that a caller reads all attributes and asks once, by done().
class Attributes final {
 public:
  explicit Attributes(const XmlElement& element) : element_(element) {}

  std::string text(std::string_view key);
  // A name that is written again as it is: printable ASCII.
  std::string name(std::string_view key);
  int integer(std::string_view key, int least, int most, int fallback);
  std::optional<std::uint64_t> hexadecimal(std::string_view key, std::uint64_t most);
  std::optional<double> number(std::string_view key, double least, double most);
  std::optional<bool> flag(std::string_view key);
  std::optional<PciAddress> address(std::string_view key);
  // Attributes that may be there and are not read.
  void ignore(std::initializer_list<std::string_view> keys);

  void fail(const std::string& what);
  // The first error, whatever attributes were not read.
  [[nodiscard]] const Status& first() const { return first_; }
  // The first error, or the first attribute that was not read.
  [[nodiscard]] Status done() const;

 private:
  const std::string* take(std::string_view key);
  void refuse(std::string_view key, const std::string& value, const std::string& expected);

  const XmlElement& element_;
  std::vector<std::string_view> taken_;
  Status first_;
};

Status element_failure(const XmlElement& element, const std::string& what);

}  // namespace seto
