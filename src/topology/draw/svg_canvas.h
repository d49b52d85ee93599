#pragma once

#include <string>
#include <string_view>

namespace seto {

inline constexpr const char* kSvgGrey = "#555";
inline constexpr const char* kSvgBlack = "#000";

struct SvgBox {
  double x = 0, y = 0, width = 0, height = 0;

  [[nodiscard]] double middle() const { return x + width / 2; }
  [[nodiscard]] double bottom() const { return y + height; }
};

// The look of a box: a fill, a dashed frame for what is assumed, and the colour of the frame.
struct SvgStyle {
  const char* fill = "#ffffff";
  bool dashed = false;
  const char* frame = kSvgGrey;
};

// Writes the few shapes of SVG that a topology needs. Text is escaped.
class SvgCanvas final {
 public:
  void box(const SvgBox& box, const SvgStyle& style);
  void line(double x1, double y1, double x2, double y2, const char* colour = kSvgGrey);
  // A curve above two points of the same height.
  void arc(double x1, double x2, double y, double height);
  // A line with a head at its second end.
  void arrow(double x1, double x2, double y, const char* colour = kSvgGrey);
  // A curve with a head from one point of a line to another; it leaves the line by up to `reach`, upwards if that is negative.
  void hop(double x1, double x2, double y, double reach, const char* colour);
  void dot(double x, double y, const char* colour);
  // Text in the middle of the width. A text that would be wider is cut, and its whole is shown under the mouse.
  void text(const SvgBox& place, std::string_view words, bool bold = false);
  void left_text(double x, double y, std::string_view words, bool bold = false, const char* colour = kSvgBlack);
  // A box without a frame, for charts of many.
  void bar(const SvgBox& box, const char* fill);

  [[nodiscard]] std::string document(double width, double height) const;

  static constexpr double kLetter = 6.2;  // the width of a letter of the font of 11 pixels

 private:
  std::string shapes_;
};

}  // namespace seto
