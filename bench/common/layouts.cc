#include "bench/common/program.h"
#include "bench/common/sizes.h"

namespace seto::bench {

Layout whole_layout(std::size_t elements, std::size_t /*element_size*/, int /*ranks*/) {
  return {.count = elements, .send_count = elements, .receive_count = elements};
}

Layout exchange_layout(std::size_t elements, std::size_t element_size, int ranks) {
  const std::size_t part = part_count(elements, element_size, ranks);
  const std::size_t all = part * static_cast<std::size_t>(ranks);
  return {.count = part, .send_count = all, .receive_count = all};
}

Layout gather_layout(std::size_t elements, std::size_t element_size, int ranks) {
  const std::size_t part = part_count(elements, element_size, ranks);
  return {.count = part, .send_count = part, .receive_count = part * static_cast<std::size_t>(ranks), .send_stride = part};
}

Layout scatter_layout(std::size_t elements, std::size_t element_size, int ranks) {
  const std::size_t part = part_count(elements, element_size, ranks);
  return {.count = part, .send_count = part * static_cast<std::size_t>(ranks), .receive_count = part, .receive_stride = part};
}

double whole_bytes(const Layout& layout, std::size_t element_size, int /*ranks*/) {
  return static_cast<double>(layout.count) * static_cast<double>(element_size);
}
double parts_bytes(const Layout& layout, std::size_t element_size, int ranks) {
  return whole_bytes(layout, element_size, ranks) * ranks;
}

double factor_one(int /*ranks*/) { return 1.0; }
double factor_others(int ranks) { return static_cast<double>(ranks - 1) / ranks; }
double factor_twice_others(int ranks) { return 2.0 * factor_others(ranks); }

std::vector<Segment> part_of_each(const Case& shape, std::size_t source_offset) {
  const std::size_t part = shape.layout.count;
  std::vector<Segment> segments;
  for (int rank = 0; rank < shape.ranks; ++rank)
    segments.push_back({static_cast<std::size_t>(rank) * part, part, rank, source_offset});
  return segments;
}

}  // namespace seto::bench
