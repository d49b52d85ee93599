#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/common/result.h"

namespace seto::bench {

struct PlotPoint {
  double size;       // bytes
  double bandwidth;  // GB/s
};
struct PlotSeries {
  std::string label;
  std::vector<PlotPoint> points;
};

// One series for each (type, op, root) of the rows, out of place; labels carry only what differs, after `prefix`.
std::vector<PlotSeries> series_of(const std::vector<ResultRow>& rows, const std::string& prefix);

// The rows of a document that json_text or nccl-tests wrote; nothing if the text is not one. `program` gets its name if known.
std::optional<std::vector<ResultRow>> rows_from_json(const std::string& text, std::string& program);

// Adds the series of an earlier run: "path", or "path=label". An empty string is success, else what went wrong.
[[nodiscard]] std::string add_series(const std::string& entry, std::vector<PlotSeries>& series);

// Bus bandwidth over size, both axes logarithmic, as an SVG document that needs nothing else. Points that are not positive are
// left out; at most eight series are drawn, in colours that stay apart for colour-blind readers, and the legend says what is left
// out.
std::string plot_svg(const std::string& title, const std::vector<PlotSeries>& series);

}  // namespace seto::bench
