#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace seto::command {

enum class Stream : std::uint8_t { output, error };

// Assembles the output of ranks into whole lines with the rank as prefix. A longer line is cut at this limit.
inline constexpr std::size_t kLineLimit = 65'536;

enum class Prefix : std::uint8_t { none, plain, coloured };

class Lines final {
 public:
  // `ranks` fixes the width of the prefixes.
  Lines(Prefix prefix, int ranks);

  // Returns the lines that are complete now.
  [[nodiscard]] std::string add(int rank, Stream stream, std::string_view bytes);
  // Returns the rest of an ended rank's output, with a newline.
  [[nodiscard]] std::string finish(int rank, Stream stream);

 private:
  void append_line(std::string& text, int rank, std::string_view line) const;

  Prefix prefix_;
  int width_;
  std::map<std::pair<int, Stream>, std::string> rests_;
};

}  // namespace seto::command
