#include "src/topology/draw/channel_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "src/topology/draw/channel_text.h"
#include "src/topology/draw/number_words.h"

namespace seto {
namespace {

constexpr std::size_t kMostOfAPattern = 2;
constexpr double kWords = 14;  // the height of the words above a row
constexpr double kReach = 17;  // how far the longest arrow is from the line
constexpr std::array<const char*, kMostOfAPattern> kRingColours = {"#1565c0", "#00838f"};
constexpr std::array<const char*, kMostOfAPattern> kTreeColours = {"#c62828", "#ad6800"};

std::string words_of(const char* what, const ChannelsOfOneWay& way, const FoundChannels& found) {
  const bool one = way.channels.size() == 1;
  return std::string(what) + (one ? " " : "s ") + numbers_text(way.channels) + " of " + std::to_string(found.channels.size()) +
         ", over " + std::string(name_of(found.worst_hop)) + ": " + rate_words(found.channel_bytes_per_second) +
         (one ? "" : " each");
}

}  // namespace

ChannelRows::ChannelRows(const TopologyHost& host, const HostChannels& channels) {
  if (member_names(host).size() < 2) return;
  const auto rings = different_rings(channels.rings);
  for (std::size_t i = 0; i < std::min(rings.size(), kMostOfAPattern); ++i) {
    Row row{words_of("ring", rings[i], channels.rings), kRingColours[i], {}};
    const RingOrder& ring = channels.rings.channels[rings[i].first];
    for (std::size_t at = 0; at < ring.size(); ++at) row.hops.push_back({ring[at], ring[(at + 1) % ring.size()]});
    rows_.push_back(std::move(row));
  }
  const auto trees = different_trees(channels.trees);
  for (std::size_t i = 0; i < std::min(trees.size(), kMostOfAPattern); ++i) {
    Row row{words_of("tree", trees[i], channels.trees), kTreeColours[i], {}};
    const TreeParents& parents = channels.trees.channels[trees[i].first];
    for (std::size_t child = 0; child < parents.size(); ++child)
      if (parents[child] >= 0) row.hops.push_back({parents[child], static_cast<int>(child)});
    rows_.push_back(std::move(row));
  }
}

void ChannelRows::draw(SvgCanvas& canvas, const std::vector<double>& columns, double left, double top) const {
  const double widest = columns.empty() ? 1 : std::max(1.0, columns.back() - columns.front());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    const double y = top + static_cast<double>(i) * kRowHeight;
    const double middle = y + kWords + (kRowHeight - kWords) / 2;
    canvas.left_text(left, y + kWords - 3, row.words, false, row.colour);
    for (const Hop& hop : row.hops) {
      const double from = columns[static_cast<std::size_t>(hop.from)];
      const double to = columns[static_cast<std::size_t>(hop.to)];
      const double reach = 8 + (kReach - 8) * std::min(1.0, std::abs(to - from) / widest);
      canvas.hop(from, to, middle, to > from ? -reach : reach, row.colour);
    }
    for (const double column : columns) canvas.dot(column, middle, row.colour);
  }
}

}  // namespace seto
