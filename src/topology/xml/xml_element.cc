#include "src/topology/xml/xml_element.h"

#include <charconv>
#include <cstdint>

namespace seto {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' ||
         c == ':';
}

// A quoted excerpt of the text for an error, with a question mark for each byte that is not printable.
std::string excerpt(std::string_view text) {
  std::string result = "'";
  for (const char c : text.substr(0, 24)) result += c >= ' ' && c < 0x7f ? c : '?';
  return result + "'";
}

class Parser final {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<XmlDocument> document() {
    if (text_.size() > kMostXmlBytes)
      return wrong("the text has " + std::to_string(text_.size()) + " bytes; at most 16 MiB are read");
    SETO_TRY(skip_to_tag(nullptr));
    if (at_end()) return wrong("there is no element");
    SETO_TRY(element(document_.root, 1));
    SETO_TRY(skip_to_tag(nullptr));
    if (!at_end()) return wrong("there is a second element after the first; a document has one");
    return std::move(document_);
  }

 private:
  Status wrong(const std::string& what) const { return failure(Code::invalid_argument, "line %zu: %s", line_, what.c_str()); }

  bool at_end() const { return at_ == text_.size(); }
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  void advance(std::size_t bytes) {
    for (; bytes > 0 && !at_end(); --bytes, ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] == '\t' && document_.tab_line == 0) document_.tab_line = line_;
    }
  }

  // Comments may contain tabs: no reader minds.
  Status skip_comment() {
    const std::size_t end = text_.find("-->", at_ + 4);
    if (end == std::string_view::npos) return wrong("the comment that begins here has no end");
    for (; at_ < end + 3; ++at_)
      if (text_[at_] == '\n') ++line_;
    return {};
  }

  Status skip_prolog(std::string_view end_mark) {
    if (document_.prolog_line == 0) document_.prolog_line = line_;
    const std::size_t end = text_.find(end_mark, at_);
    if (end == std::string_view::npos) return wrong("the declaration that begins here has no end");
    if (text_.substr(at_, end - at_).find('[') != std::string_view::npos) return wrong("a DOCTYPE with declarations is not read");
    advance(end + end_mark.size() - at_);
    return {};
  }

  // Skips space, comments and, outside elements, the prolog; within an element also text, whose line is noted there.
  Status skip_to_tag(XmlElement* inside) {
    while (!at_end()) {
      if (is_space(text_[at_])) {
        advance(1);
      } else if (starts("<!--")) {
        SETO_TRY(skip_comment());
      } else if (inside == nullptr && starts("<?")) {
        SETO_TRY(skip_prolog("?>"));
      } else if (inside == nullptr && starts("<!DOCTYPE")) {
        SETO_TRY(skip_prolog(">"));
      } else if (text_[at_] == '<') {
        return {};
      } else if (inside == nullptr) {
        return wrong("expected '<', found " + excerpt(text_.substr(at_)));
      } else {
        if (inside->text_line == 0) inside->text_line = line_;
        advance(1);
      }
    }
    return {};
  }

  Status element(XmlElement& result, std::size_t depth) {
    if (depth > kMostXmlDepth) return wrong("elements are nested more than " + std::to_string(kMostXmlDepth) + " deep");
    if (++elements_ > kMostXmlElements) return wrong("there are more than " + std::to_string(kMostXmlElements) + " elements");
    result.line = line_;
    advance(1);
    SETO_TRY(name(result.name));
    bool empty = false;
    SETO_TRY(rest_of_tag(result, empty));
    if (empty) return {};
    while (true) {
      SETO_TRY(skip_to_tag(&result));
      if (at_end()) return wrong("<" + result.name + "> of line " + std::to_string(result.line) + " is not closed");
      if (starts("</")) return closing_tag(result);
      SETO_TRY(element(result.children.emplace_back(), depth + 1));
    }
  }

  Status closing_tag(const XmlElement& opened) {
    advance(2);
    std::string closed;
    SETO_TRY(name(closed));
    if (closed != opened.name)
      return wrong("</" + closed + "> closes <" + opened.name + "> of line " + std::to_string(opened.line));
    skip_space_in_tag();
    if (!starts(">")) return wrong("expected '>' after </" + closed);
    advance(1);
    return {};
  }

  // True if there was space.
  bool skip_space_in_tag() {
    const std::size_t before = at_;
    while (!at_end() && is_space(text_[at_])) {
      if (text_[at_] == '\n' && document_.newline_tag_line == 0) document_.newline_tag_line = line_;
      advance(1);
    }
    return at_ > before;
  }

  Status rest_of_tag(XmlElement& result, bool& empty) {
    while (true) {
      const bool space = skip_space_in_tag();
      if (at_end()) return wrong("the tag <" + result.name + " has no end");
      empty = starts("/>");
      if (empty || text_[at_] == '>') {
        advance(empty ? 2 : 1);
        return {};
      }
      if (!space) return wrong("expected a space before " + excerpt(text_.substr(at_)) + " in <" + result.name + ">");
      SETO_TRY(attribute(result));
    }
  }

  Status attribute(XmlElement& result) {
    std::string key;
    SETO_TRY(name(key));
    if (result.attribute(key) != nullptr) return wrong("attribute " + key + " of <" + result.name + "> is there twice");
    if (result.attributes.size() == kMostXmlAttributes) return wrong("<" + result.name + "> has too many attributes");
    if (!starts("=\"") && !starts("='")) return wrong("expected =\" after attribute " + key);
    const char quote = text_[at_ + 1];
    advance(2);
    std::string value;
    SETO_TRY(attribute_value(key, quote, value));
    result.attributes.emplace_back(std::move(key), std::move(value));
    return {};
  }

  Status attribute_value(const std::string& key, char quote, std::string& value) {
    while (true) {
      if (at_end()) return wrong("the value of attribute " + key + " has no end");
      const char c = text_[at_];
      if (c == quote) break;
      if (c == '<') return wrong("the value of attribute " + key + " contains '<'");
      if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
        return wrong("the value of attribute " + key + " contains a " +
                     std::string(c == '\n'   ? "newline"
                                 : c == '\t' ? "tab"
                                             : "control character"));
      if (value.size() == kMostXmlValue) return wrong("the value of attribute " + key + " is too long");
      if (c == '&') {
        SETO_TRY(entity(value));
      } else {
        value += c;
        advance(1);
      }
    }
    advance(1);
    return {};
  }

  Status entity(std::string& value) {
    static constexpr std::pair<std::string_view, char> kEntities[] = {
        {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (const auto& [text, character] : kEntities) {
      if (!starts(text)) continue;
      value += character;
      advance(text.size());
      return {};
    }
    const std::size_t end = text_.substr(at_, 8).find(';');
    if (end == std::string_view::npos || !starts("&#")) return wrong("unknown entity " + excerpt(text_.substr(at_, 8)));
    const bool hexadecimal = starts("&#x");
    const char* const first = text_.data() + at_ + (hexadecimal ? 3 : 2);
    const char* const last = text_.data() + at_ + end;
    std::uint32_t code = 0;
    const auto [stop, error] = std::from_chars(first, last, code, hexadecimal ? 16 : 10);
    if (error != std::errc() || stop != last || code == 0 || code > 0x7e)
      return wrong("character reference " + excerpt(text_.substr(at_, end + 1)) + " is not an ASCII character");
    value += static_cast<char>(code);
    advance(end + 1);
    return {};
  }

  Status name(std::string& result) {
    while (!at_end() && is_name_character(text_[at_]) && result.size() < kMostXmlValue) {
      result += text_[at_];
      advance(1);
    }
    if (result.empty()) return wrong("expected a name, found " + excerpt(text_.substr(at_)));
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t elements_ = 0;
  XmlDocument document_;
};

}  // namespace

const std::string* XmlElement::attribute(std::string_view key) const {
  for (const auto& [name_of_attribute, value] : attributes)
    if (name_of_attribute == key) return &value;
  return nullptr;
}

Result<XmlDocument> parse_xml(std::string_view text) { return Parser(text).document(); }

std::string xml_escaped(std::string_view value) {
  std::string result;
  for (const char c : value) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (static_cast<unsigned char>(c) < ' ') {
      result += "&#" + std::to_string(static_cast<int>(c)) + ";";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace seto
