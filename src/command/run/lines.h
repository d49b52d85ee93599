#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace seto::command {

enum class Stream : std::uint8_t { output, error };

// What ranks write, in pieces as they come, as whole lines with the rank before each. A longer line is cut there.
inline constexpr std::size_t kLineLimit = 65'536;

enum class Prefix : std::uint8_t { none, plain, coloured };

class Lines final {
 public:
  // `ranks`: so that prefixes have one width.
  Lines(Prefix prefix, int ranks);

  // The lines that are whole now.
  [[nodiscard]] std::string add(int rank, Stream stream, std::string_view bytes);
  // The rest of a rank that has ended, with an end of line.
  [[nodiscard]] std::string finish(int rank, Stream stream);

 private:
  void append_line(std::string& text, int rank, std::string_view line) const;

  Prefix prefix_;
  int width_;
  std::map<std::pair<int, Stream>, std::string> rests_;
};

}  // namespace seto::command
