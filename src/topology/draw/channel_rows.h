#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/topology/draw/svg_canvas.h"
#include "src/topology/search/graph_search.h"

namespace seto {

// Rings and trees of a host as rows above its GPUs: a dot below each GPU's name, and an arrow for each hop, above the line to
// the right and below it to the left. The first two different rings and the first two different trees are drawn.
class ChannelRows final {
 public:
  ChannelRows(const TopologyHost& host, const HostChannels& channels);

  [[nodiscard]] double height() const { return static_cast<double>(rows_.size()) * kRowHeight; }
  // `columns`: the x of each member. `left` is where words begin.
  void draw(SvgCanvas& canvas, const std::vector<double>& columns, double left, double top) const;

  static constexpr double kRowHeight = 58;

 private:
  struct Hop {
    int from = 0;
    int to = 0;
  };
  struct Row {
    std::string words;
    const char* colour = "";
    std::vector<Hop> hops;
  };

  std::vector<Row> rows_;
};

}  // namespace seto
