#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <span>
#include <vector>

namespace seto {

// Flows over links that they share max-min fairly: no flow can be faster without making a slower or equally slow one slower.
//
// Flows over the same links with the same limit are one class and have one rate, so the work of an event depends on the number of
// classes alone. Times only grow from call to call.
class SharedLinks final {
 public:
  explicit SharedLinks(std::span<const double> bytes_per_ns);

  // The class of flows over these links (none: only the limit counts), each at most this fast.
  std::uint32_t class_of(std::span<const std::uint32_t> links, double most_bytes_per_ns);

  // A flow begins. `token` comes back when all its bytes have crossed.
  void begin(std::uint32_t class_index, double bytes, std::uint32_t token, double now_ns);

  static constexpr double kNever = std::numeric_limits<double>::infinity();
  // The time at which the next flow ends, if none begins before.
  [[nodiscard]] double next_end_ns() const { return next_end_ns_; }
  // The tokens of the flows that end at next_end_ns(), in the order in which they began.
  [[nodiscard]] std::vector<std::uint32_t> end_flows();

  [[nodiscard]] double rate_of(std::uint32_t class_index) const { return classes_[class_index].rate; }
  [[nodiscard]] double bytes_over(std::uint32_t link) const { return carried_[link]; }

 private:
  struct Flow {
    double end;  // in bytes that each flow of the class has moved
    std::uint64_t number;
    std::uint32_t token;
    friend bool operator>(const Flow& a, const Flow& b) { return a.end != b.end ? a.end > b.end : a.number > b.number; }
  };
  struct Class {
    std::vector<std::uint32_t> links;
    double limit = 0;
    double rate = 0;   // of each flow
    double moved = 0;  // by each flow since the class was last empty
    std::priority_queue<Flow, std::vector<Flow>, std::greater<>> flows;
  };
  void advance(double now_ns);
  void share();
  void find_next_end();

  std::vector<double> capacities_;
  std::vector<double> carried_;  // by link
  std::vector<Class> classes_;
  double now_ns_ = 0;
  double next_end_ns_ = kNever;
  std::uint64_t begun_ = 0;
};

}  // namespace seto
