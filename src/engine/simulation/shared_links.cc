#include "src/engine/simulation/shared_links.h"

#include <algorithm>
#include <utility>

namespace seto {
namespace {

// Rounding leaves less than this of a flow that has ended: a thousandth of a byte, a share of what its class has moved, and what
// moves in the last digits of the time.
double rounding_of(double moved, double rate, double now_ns) { return 1e-3 + moved * 1e-12 + rate * now_ns * 1e-15; }

}  // namespace

SharedLinks::SharedLinks(std::span<const double> bytes_per_ns)
    : capacities_(bytes_per_ns.begin(), bytes_per_ns.end()), carried_(bytes_per_ns.size(), 0) {}

std::uint32_t SharedLinks::class_of(std::span<const std::uint32_t> links, double most_bytes_per_ns) {
  for (std::size_t i = 0; i < classes_.size(); ++i)
    if (classes_[i].limit == most_bytes_per_ns &&
        std::equal(links.begin(), links.end(), classes_[i].links.begin(), classes_[i].links.end()))
      return static_cast<std::uint32_t>(i);
  Class added;
  added.links.assign(links.begin(), links.end());
  added.limit = most_bytes_per_ns;
  classes_.push_back(std::move(added));
  return static_cast<std::uint32_t>(classes_.size() - 1);
}

void SharedLinks::begin(std::uint32_t class_index, double bytes, std::uint32_t token, double now_ns) {
  advance(now_ns);
  Class& mine = classes_[class_index];
  mine.flows.push({mine.moved + bytes, begun_++, token});
  share();
  find_next_end();
}

std::vector<std::uint32_t> SharedLinks::end_flows() {
  advance(next_end_ns_);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> ended;  // (number, token)
  for (Class& one : classes_) {
    const double reached = one.moved + rounding_of(one.moved, one.rate, now_ns_);
    for (; !one.flows.empty() && one.flows.top().end <= reached; one.flows.pop())
      ended.emplace_back(one.flows.top().number, one.flows.top().token);
    if (one.flows.empty()) one.moved = 0;
  }
  std::sort(ended.begin(), ended.end());
  std::vector<std::uint32_t> tokens;
  for (const auto& [number, token] : ended) tokens.push_back(token);
  share();
  find_next_end();
  return tokens;
}

void SharedLinks::advance(double now_ns) {
  const double passed_ns = now_ns - now_ns_;
  now_ns_ = now_ns;
  for (Class& one : classes_) {
    if (one.flows.empty()) continue;
    const double bytes = one.rate * passed_ns;
    one.moved += bytes;
    for (const std::uint32_t link : one.links) carried_[link] += bytes * static_cast<double>(one.flows.size());
  }
}

// Progressive filling: the rates of all classes grow together. Whatever is full first, a link or the limit of a class, fixes the
// rates of the classes that it stops, and the others grow on.
void SharedLinks::share() {
  std::vector<double> free = capacities_;
  std::vector<double> flows(capacities_.size(), 0);  // that still grow
  std::vector<Class*> growing;
  for (Class& one : classes_) {
    if (one.flows.empty()) continue;
    growing.push_back(&one);
    for (const std::uint32_t link : one.links) flows[link] += static_cast<double>(one.flows.size());
  }
  while (!growing.empty()) {
    double rate = kNever;
    for (std::size_t link = 0; link < free.size(); ++link)
      if (flows[link] > 0) rate = std::min(rate, free[link] / flows[link]);
    for (const Class* one : growing) rate = std::min(rate, one->limit);
    const auto stops = [&](const Class* one) {
      return one->limit <= rate || std::any_of(one->links.begin(), one->links.end(),
                                               [&](std::uint32_t link) { return free[link] / flows[link] <= rate; });
    };
    const auto stopped = std::stable_partition(growing.begin(), growing.end(), [&](const Class* one) { return !stops(one); });
    for (auto one = stopped; one != growing.end(); ++one) {
      (*one)->rate = rate;
      const auto count = static_cast<double>((*one)->flows.size());
      for (const std::uint32_t link : (*one)->links) {
        free[link] = std::max(0.0, free[link] - rate * count);
        flows[link] -= count;
      }
    }
    growing.erase(stopped, growing.end());
  }
}

void SharedLinks::find_next_end() {
  next_end_ns_ = kNever;
  for (const Class& one : classes_)
    if (!one.flows.empty())
      next_end_ns_ = std::min(next_end_ns_, now_ns_ + std::max(0.0, one.flows.top().end - one.moved) / one.rate);
}

}  // namespace seto
