#include "bench/common/plot.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "bench/common/sizes.h"

namespace seto::bench {
namespace {

constexpr double kWidth = 860, kHeight = 520;
constexpr double kLeft = 78, kRight = 24, kTop = 56, kBottom = 62;
constexpr std::size_t kMostSeries = 8;
constexpr const char* kColours[kMostSeries] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                               "#8a6d00", "#56b4e9", "#000000", "#7a3fb0"};
constexpr const char* kDashes[3] = {"none", "7 4", "2 4"};

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof(text), pattern, arguments);
  va_end(arguments);
  return text;
}

std::string escape(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

bool drawable(const PlotPoint& point) { return point.size > 0 && point.bandwidth > 0 && std::isfinite(point.bandwidth); }

// A logarithmic axis from a power of its base to another.
struct Axis {
  double base;
  double low;  // exponents
  double high;
  double from;  // pixels
  double to;
  double at(double value) const { return from + (std::log(value) / std::log(base) - low) / (high - low) * (to - from); }
};

Axis axis_over(const std::vector<double>& values, double base, double from, double to) {
  Axis axis{base, 0, 1, from, to};
  if (values.empty()) return axis;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  // The tolerance prevents that rounding adds a decade for a value that is a power of the base.
  axis.low = std::floor(std::log(*least) / std::log(base) + 1e-9);
  axis.high = std::max(axis.low + 1, std::ceil(std::log(*most) / std::log(base) - 1e-9));
  return axis;
}

std::string size_label(double size) {
  const std::string text = size_text(static_cast<std::uint64_t>(size));
  return std::isdigit(static_cast<unsigned char>(text.back())) != 0 ? text + " B"
                                                                    : text.substr(0, text.size() - 1) + " " + text.back() + "iB";
}

std::string size_axis_svg(const Axis& x) {
  std::string svg;
  const int step = std::max(1, static_cast<int>(std::ceil((x.high - x.low) / 10)));
  for (int exponent = static_cast<int>(x.low); exponent <= static_cast<int>(x.high); exponent += step) {
    const double value = std::pow(2.0, exponent);
    const double at = x.at(value);
    svg += format("<line class='grid' x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/>\n", at, kTop, at, kHeight - kBottom);
    svg +=
        format("<text x='%.1f' y='%.1f' text-anchor='middle'>%s</text>\n", at, kHeight - kBottom + 20, size_label(value).c_str());
  }
  return svg;
}

std::string bandwidth_axis_svg(const Axis& y) {
  std::string svg;
  for (int decade = static_cast<int>(y.low); decade <= static_cast<int>(y.high); ++decade) {
    for (int digit = 1; digit <= 9; ++digit) {
      if (decade == static_cast<int>(y.high) && digit > 1) break;
      const double at = y.at(std::pow(10.0, decade) * digit);
      svg += format("<line class='%s' x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/>\n", digit == 1 ? "grid" : "fine", kLeft, at,
                    kWidth - kRight, at);
    }
    const std::string label = format("%g", std::pow(10.0, decade));
    svg += format("<text x='%.1f' y='%.1f' text-anchor='end'>%s</text>\n", kLeft - 8, y.at(std::pow(10.0, decade)) + 4,
                  label.c_str());
  }
  return svg;
}

std::string series_svg(const PlotSeries& series, std::size_t index, const Axis& x, const Axis& y) {
  std::string line;
  std::string dots;
  for (const PlotPoint& point : series.points) {
    if (!drawable(point)) continue;
    line += format("%.1f,%.1f ", x.at(point.size), y.at(point.bandwidth));
    dots += format("<circle cx='%.1f' cy='%.1f' r='3' fill='%s'><title>%s\n%s: %.3g GB/s</title></circle>\n", x.at(point.size),
                   y.at(point.bandwidth), kColours[index], escape(series.label).c_str(), size_label(point.size).c_str(),
                   point.bandwidth);
  }
  return format("<polyline fill='none' stroke='%s' stroke-width='2' stroke-dasharray='%s' points='", kColours[index],
                kDashes[index % 3]) +
         line + "'/>\n" + dots;
}

std::string legend_svg(const std::vector<PlotSeries>& series) {
  std::string svg;
  double at = kTop + 18;
  for (std::size_t index = 0; index < series.size() && index < kMostSeries; ++index, at += 19) {
    svg += format("<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='%s' stroke-width='2' stroke-dasharray='%s'/>\n",
                  kLeft + 14, at - 4, kLeft + 44, at - 4, kColours[index], kDashes[index % 3]);
    svg += format("<text x='%.1f' y='%.1f'>", kLeft + 52, at) + escape(series[index].label) + "</text>\n";
  }
  if (series.size() > kMostSeries) {
    svg += format("<text x='%.1f' y='%.1f'>and %zu more, not drawn</text>\n", kLeft + 14, at, series.size() - kMostSeries);
  }
  return svg;
}

template <class Value>
Value value_or(const nlohmann::json& json, const char* key, Value fallback) {
  const auto found = json.find(key);
  if (found == json.end()) return fallback;
  if constexpr (std::is_same_v<Value, std::string>) {
    return found->is_string() ? found->template get<Value>() : fallback;
  } else {
    return found->is_number() ? found->template get<Value>() : fallback;
  }
}

}  // namespace

std::vector<PlotSeries> series_of(const std::vector<ResultRow>& rows, const std::string& prefix) {
  std::set<std::string> types, ops;
  std::set<int> roots;
  for (const ResultRow& row : rows) {
    types.insert(row.type);
    ops.insert(row.op);
    roots.insert(row.root);
  }
  std::vector<PlotSeries> series;
  std::map<std::string, std::size_t> index_of;
  for (const ResultRow& row : rows) {
    std::string label = prefix;
    if (types.size() > 1) label += " " + row.type;
    if (ops.size() > 1) label += " " + row.op;
    if (roots.size() > 1) label += " root " + std::to_string(row.root);
    const auto [found, added] = index_of.try_emplace(label, series.size());
    if (added) series.push_back({label, {}});
    series[found->second].points.push_back({static_cast<double>(row.size), row.out_of_place.bus_bandwidth});
  }
  return series;
}

std::optional<std::vector<ResultRow>> rows_from_json(const std::string& text, std::string& program) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("results") || !json["results"].is_array()) return std::nullopt;
  program = value_or<std::string>(json, "program", program);
  std::vector<ResultRow> rows;
  for (const nlohmann::json& entry : json["results"]) {
    if (!entry.is_object() || !entry.contains("out_of_place") || !entry["out_of_place"].is_object()) continue;
    ResultRow row = {};
    row.size = value_or<std::uint64_t>(entry, "size", 0);
    row.type = value_or<std::string>(entry, "type", "");
    row.op = value_or<std::string>(entry, "redop", "");
    row.root = value_or<int>(entry, "root", -1);
    row.out_of_place.bus_bandwidth = value_or<double>(entry["out_of_place"], "bus_bw", 0);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string add_series(const std::string& entry, std::vector<PlotSeries>& series) {
  const std::size_t equals = entry.find('=');
  const std::string path = entry.substr(0, equals);
  std::ifstream file(path);
  if (!file) return "cannot read " + path + ": " + std::strerror(errno);
  std::stringstream text;
  text << file.rdbuf();
  std::string label = path;
  const auto rows = rows_from_json(text.str(), label);
  if (!rows) return path + " is not a result file of -J";
  if (equals != std::string::npos) label = entry.substr(equals + 1);
  const std::vector<PlotSeries> added = series_of(*rows, label);
  series.insert(series.end(), added.begin(), added.end());
  return {};
}

std::string plot_svg(const std::string& title, const std::vector<PlotSeries>& series) {
  std::vector<double> sizes, bandwidths;
  for (std::size_t index = 0; index < series.size() && index < kMostSeries; ++index) {
    for (const PlotPoint& point : series[index].points) {
      if (!drawable(point)) continue;
      sizes.push_back(point.size);
      bandwidths.push_back(point.bandwidth);
    }
  }
  const Axis x = axis_over(sizes, 2, kLeft, kWidth - kRight);
  const Axis y = axis_over(bandwidths, 10, kHeight - kBottom, kTop);
  std::string svg = format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %g %g' font-family='sans-serif' font-size='12'>\n", kWidth, kHeight);
  svg += "<style>.grid{stroke:#c4c8cc}.fine{stroke:#eceef0}text{fill:#24292f}</style>\n";
  svg += format("<rect width='%g' height='%g' fill='white'/>\n", kWidth, kHeight);
  svg += format("<text x='%g' y='30' font-size='16' font-weight='bold'>", kLeft) + escape(title) + "</text>\n";
  // The bandwidth axis is drawn first, because its fine lines must lie under the size grid.
  svg += bandwidth_axis_svg(y) + size_axis_svg(x);
  for (std::size_t index = 0; index < series.size() && index < kMostSeries; ++index)
    svg += series_svg(series[index], index, x, y);
  svg += legend_svg(series);
  svg += format("<text x='%g' y='%g' text-anchor='middle'>size</text>\n", (kLeft + kWidth - kRight) / 2, kHeight - 16);
  const double middle = (kTop + kHeight - kBottom) / 2;
  svg += format("<text x='18' y='%g' text-anchor='middle' transform='rotate(-90 18 %g)'>bus bandwidth, GB/s</text>\n", middle,
                middle);
  return svg + "</svg>\n";
}

}  // namespace seto::bench
