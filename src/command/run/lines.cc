#include "src/command/run/lines.h"

#include <array>

namespace seto::command {
namespace {

// Colours that are readable on dark and on light backgrounds.
constexpr std::array<std::string_view, 6> kColours = {"\033[32m", "\033[33m", "\033[34m", "\033[35m", "\033[36m", "\033[31m"};
constexpr std::string_view kPlain = "\033[0m";

}  // namespace

Lines::Lines(Prefix prefix, int ranks) : prefix_(prefix), width_(static_cast<int>(std::to_string(ranks - 1).size())) {}

std::string Lines::add(int rank, Stream stream, std::string_view bytes) {
  if (prefix_ == Prefix::none) return std::string(bytes);
  std::string& rest = rests_[{rank, stream}];
  std::string text;
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (end == std::string_view::npos && rest.size() + piece.size() < kLineLimit) {
      rest.append(piece);
      break;
    }
    if (rest.empty()) {
      append_line(text, rank, piece);
    } else {
      append_line(text, rank, rest.append(piece));
      rest.clear();
    }
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
  }
  return text;
}

std::string Lines::finish(int rank, Stream stream) {
  const auto rest = rests_.find({rank, stream});
  std::string text;
  if (rest == rests_.end()) return text;
  if (!rest->second.empty()) append_line(text, rank, rest->second);
  rests_.erase(rest);
  return text;
}

void Lines::append_line(std::string& text, int rank, std::string_view line) const {
  const std::string number = std::to_string(rank);
  if (prefix_ == Prefix::coloured) text.append(kColours[static_cast<std::size_t>(rank) % kColours.size()]);
  text.append("[").append(static_cast<std::size_t>(width_) - number.size(), ' ').append(number).append("]");
  if (prefix_ == Prefix::coloured) text.append(kPlain);
  text.append(" ").append(line).append("\n");
}

}  // namespace seto::command
