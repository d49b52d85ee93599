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

// One series for each (type, op, root) of the rows, out of place. A label has only the values that differ, after `prefix`.
std::vector<PlotSeries> series_of(const std::vector<ResultRow>& rows, const std::string& prefix);

// The rows of a document that json_text or nccl-tests wrote; empty if the text is not one. `program` gets its name if known.
std::optional<std::vector<ResultRow>> rows_from_json(const std::string& text, std::string& program);

// Adds the series of an earlier run: "path", or "path=label". Returns an empty string on success, else the error.
[[nodiscard]] std::string add_series(const std::string& entry, std::vector<PlotSeries>& series);

// Bus bandwidth over size, both axes logarithmic, as a self-contained SVG document. Points that are not positive are omitted. At
// most eight series are drawn, in colours that colour-blind readers can distinguish, and the legend names how many are omitted.
std::string plot_svg(const std::string& title, const std::vector<PlotSeries>& series);

}  // namespace seto::bench
