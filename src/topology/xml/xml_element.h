#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"

namespace seto {

struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlElement> children;
  std::size_t line = 0;       // of its opening tag; the first line is 1
  std::size_t text_line = 0;  // of the first text between its tags; 0: there is none. The text is not kept

  [[nodiscard]] const std::string* attribute(std::string_view key) const;
};

// A document, and what NCCL's own reader would refuse in it. The lines are 0 where there is nothing of the kind.
struct XmlDocument {
  XmlElement root;
  std::size_t prolog_line = 0;       // of <?xml ...?> or <!DOCTYPE ...>
  std::size_t tab_line = 0;          // of a tab outside comments
  std::size_t newline_tag_line = 0;  // of a tag that continues on the next line
};

inline constexpr std::size_t kMostXmlBytes = 16u << 20;
inline constexpr std::size_t kMostXmlElements = 65'536;
inline constexpr std::size_t kMostXmlAttributes = 64;  // of an element
inline constexpr std::size_t kMostXmlDepth = 64;
inline constexpr std::size_t kMostXmlValue = 4096;  // bytes of a name or a value

// Reads the subset of XML that topology files use: elements, attributes, comments, the five named entities and ASCII character
// references. The text of an error begins with the line.
Result<XmlDocument> parse_xml(std::string_view text);

// Escapes the characters that may not stand in an attribute's value.
std::string xml_escaped(std::string_view value);

}  // namespace seto
