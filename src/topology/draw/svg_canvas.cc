#include "src/topology/draw/svg_canvas.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>

#include "src/topology/xml/xml_element.h"

namespace seto {
namespace {

// Coordinates need no more than a tenth of a pixel.
std::string pixels(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

std::string attribute(const char* key, double value) {
  return std::string(" ").append(key).append("=\"").append(pixels(value)).append("\"");
}

}  // namespace

void SvgCanvas::box(const SvgBox& box, const SvgStyle& style) {
  shapes_ += "<rect" + attribute("x", box.x) + attribute("y", box.y) + attribute("width", box.width) +
             attribute("height", box.height) + " rx=\"3\" fill=\"" + style.fill + "\" stroke=\"" + style.frame + "\"" +
             (style.dashed ? " stroke-dasharray=\"4 3\"" : "") + "/>\n";
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, const char* colour) {
  shapes_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) + attribute("y2", y2) + " stroke=\"" +
             colour + "\"/>\n";
}

void SvgCanvas::arc(double x1, double x2, double y, double height) {
  shapes_ += "<path d=\"M " + pixels(x1) + " " + pixels(y) + " Q " + pixels((x1 + x2) / 2) + " " + pixels(y - 2 * height) + " " +
             pixels(x2) + " " + pixels(y) + "\" fill=\"none\" stroke=\"#2a7\"/>\n";
}

void SvgCanvas::arrow(double x1, double x2, double y, const char* colour) {
  line(x1, y, x2, y, colour);
  const double back = x2 > x1 ? -7 : 7;
  shapes_ += "<path d=\"M " + pixels(x2) + " " + pixels(y) + " l " + pixels(back) + " -4 l 0 8 z\" fill=\"" + colour + "\"/>\n";
}

void SvgCanvas::hop(double x1, double x2, double y, double reach, const char* colour) {
  // The head stands where the curve ends, beside the dot, and points along it.
  const double side = x2 > x1 ? -1 : 1;
  const double end = x2 + 5 * side;
  const double end_y = y + (reach < 0 ? -3 : 3);
  shapes_ += "<path d=\"M " + pixels(x1) + " " + pixels(y) + " Q " + pixels((x1 + x2) / 2) + " " + pixels(y + 2 * reach) + " " +
             pixels(end) + " " + pixels(end_y) + "\" fill=\"none\" stroke=\"" + colour + "\"/>\n";
  shapes_ += "<path d=\"M " + pixels(x2 + 2 * side) + " " + pixels(y + (reach < 0 ? -1 : 1)) + " l " + pixels(7 * side) + " " +
             pixels(reach < 0 ? -6 : 6) + " l " + pixels(-1 * side) + " " + pixels(reach < 0 ? 7 : -7) + " z\" fill=\"" + colour +
             "\"/>\n";
}

void SvgCanvas::dot(double x, double y, const char* colour) {
  shapes_ += "<circle" + attribute("cx", x) + attribute("cy", y) + " r=\"3\" fill=\"" + colour + "\"/>\n";
}

void SvgCanvas::text(const SvgBox& place, std::string_view words, bool bold) {
  const auto room = static_cast<std::size_t>(std::max(1.0, place.width / kLetter));
  const bool cut = words.size() > room;
  std::string shown = xml_escaped(words.substr(0, cut ? room - 1 : words.size()));
  if (cut) shown += "…";
  shapes_ += "<text" + attribute("x", place.middle()) + attribute("y", place.y + place.height / 2 + 4) +
             " text-anchor=\"middle\"" + (bold ? " font-weight=\"bold\"" : "") + ">" + shown +
             (cut ? "<title>" + xml_escaped(words) + "</title>" : "") + "</text>\n";
}

void SvgCanvas::left_text(double x, double y, std::string_view words, bool bold, const char* colour) {
  shapes_ += "<text" + attribute("x", x) + attribute("y", y) + (bold ? " font-weight=\"bold\"" : "") + " fill=\"" + colour +
             "\">" + xml_escaped(words) + "</text>\n";
}

void SvgCanvas::bar(const SvgBox& box, const char* fill) {
  shapes_ += "<rect" + attribute("x", box.x) + attribute("y", box.y) + attribute("width", box.width) +
             attribute("height", box.height) + " fill=\"" + fill + "\"/>\n";
}

std::string SvgCanvas::document(double width, double height) const {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) + attribute("height", height) +
         " viewBox=\"0 0 " + pixels(width) + " " + pixels(height) + "\" font-family=\"sans-serif\" font-size=\"11\">\n" +
         "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + shapes_ + "</svg>\n";
}

}  // namespace seto
