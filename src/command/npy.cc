#include "src/command/npy.h"

#include <limits>
#include <optional>

#include "src/base/text.h"

namespace seto::command {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

std::size_t little_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// The text after 'name': in the header's dictionary.
std::string_view value_of(std::string_view header, std::string_view name) {
  const std::size_t at = header.find(std::string("'").append(name).append("'"));
  if (at == std::string_view::npos) return {};
  const std::size_t colon = header.find(':', at);
  if (colon == std::string_view::npos) return {};
  const std::size_t begin = header.find_first_not_of(' ', colon + 1);
  return begin == std::string_view::npos ? std::string_view() : header.substr(begin);
}

// The number of elements of a shape: "(3, 4)", "(5,)", "()".
std::optional<std::size_t> elements_of(std::string_view shape) {
  const std::size_t end = shape.find(')');
  if (!shape.starts_with('(') || end == std::string_view::npos) return std::nullopt;
  shape = shape.substr(1, end - 1);
  std::size_t count = 1;
  while (!shape.empty()) {
    std::string_view one = shape.substr(0, shape.find(','));
    shape.remove_prefix(std::min(shape.size(), one.size() + 1));
    while (!one.empty() && one.front() == ' ') one.remove_prefix(1);
    while (!one.empty() && one.back() == ' ') one.remove_suffix(1);
    if (one.empty()) continue;
    const std::optional<std::uint64_t> length = parse_uint(one);
    if (!length || (*length != 0 && count > std::numeric_limits<std::size_t>::max() / 16 / *length)) return std::nullopt;
    count *= *length;
  }
  return count;
}

}  // namespace

Result<NumpyArray> parse_npy(std::string_view file) {
  constexpr std::size_t kVersion = 6;
  if (!file.starts_with(kMagic) || file.size() < 12)
    return failure(Code::invalid_argument, "it is not a .npy file as written by numpy.save");
  const std::size_t width = file[kVersion] == 1 ? 2 : 4;  // size of the header length field
  const std::size_t begin = kVersion + 2 + width;
  const std::size_t length = little_endian(file.substr(kVersion + 2, width));
  if (length > file.size() - begin) return failure(Code::invalid_argument, "its header is incomplete");
  const std::string_view header = file.substr(begin, length);
  NumpyArray array;
  const std::string_view type = value_of(header, "descr");
  if (type.starts_with("'<f4'")) {
    array.type = setoFloat32;
  } else if (type.starts_with("'<f8'")) {
    array.type = setoFloat64;
  } else {
    const std::string_view name = type.substr(0, type.starts_with('\'') ? type.find('\'', 1) + 1 : std::string_view::npos);
    return failure(Code::invalid_argument, "it holds %.16s, not fp32 or fp64: save array.astype('<f4')",
                   plain_ascii(name.substr(0, 16)).c_str());
  }
  const std::optional<std::size_t> count = elements_of(value_of(header, "shape"));
  if (!count) return failure(Code::invalid_argument, "its shape cannot be read");
  array.count = *count;
  array.data = file.substr(begin + length);
  const std::size_t size = array.count * (array.type == setoFloat64 ? 8 : 4);
  if (array.data.size() < size)
    return failure(Code::invalid_argument, "it has %zu bytes of numbers, but its shape needs %zu", array.data.size(), size);
  array.data = array.data.substr(0, size);
  return array;
}

}  // namespace seto::command
