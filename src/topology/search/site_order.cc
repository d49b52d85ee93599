#include "src/topology/search/site_order.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace seto {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostMoves = 200'000;  // of segments that are tried
constexpr std::size_t kLongestSegment = 3;
constexpr double kMessageBytes = 1 << 20;
constexpr double kUnknownRate = 125e6;

double cost(const SiteCosts& costs, int from, int to) {
  return costs[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

SiteOrder rated(const SiteCosts& costs, std::vector<int> sites) {
  SiteOrder order{std::move(sites), 0, 0};
  for (std::size_t i = 0; order.sites.size() > 1 && i < order.sites.size(); ++i) {
    const double link = cost(costs, order.sites[i], order.sites[(i + 1) % order.sites.size()]);
    order.worst = std::max(order.worst, link);
    order.sum += link;
  }
  return order;
}

// Begins the ring at site 0.
std::vector<int> from_first(std::vector<int> sites) {
  std::rotate(sites.begin(), std::find(sites.begin(), sites.end(), 0), sites.end());
  return sites;
}

// The best path over each set of sites, from site 0 to each last one. `add` combines the cost of a path with that of a link.
template <class Add>
class BestPaths final {
 public:
  BestPaths(const SiteCosts& costs, Add add)
      : count_(costs.size()), best_((std::size_t{1} << count_) * count_, kNever), before_(best_.size(), -1) {
    best_[index(1, 0)] = 0;
    for (std::size_t set = 1; set < std::size_t{1} << count_; set += 2)
      for (std::size_t last = 0; last < count_; ++last) {
        const double here = best_[index(set, last)];
        if (here == kNever) continue;
        for (std::size_t next = 1; next < count_; ++next) {
          if ((set >> next & 1) != 0) continue;
          const double there = add(here, costs[last][next]);
          const std::size_t to = index(set | std::size_t{1} << next, next);
          if (there >= best_[to]) continue;
          best_[to] = there;
          before_[to] = static_cast<int>(last);
        }
      }
    close(costs, add);
  }

  [[nodiscard]] double cost() const { return cost_; }

  [[nodiscard]] std::vector<int> ring() const {
    std::vector<int> sites;
    std::size_t set = (std::size_t{1} << count_) - 1;
    for (int last = last_; last >= 0;) {
      sites.push_back(last);
      const int before = before_[index(set, static_cast<std::size_t>(last))];
      set &= ~(std::size_t{1} << static_cast<std::size_t>(last));
      last = before;
    }
    std::reverse(sites.begin(), sites.end());
    return sites;
  }

 private:
  [[nodiscard]] std::size_t index(std::size_t set, std::size_t last) const { return set * count_ + last; }

  void close(const SiteCosts& costs, Add add) {
    const std::size_t all = (std::size_t{1} << count_) - 1;
    for (std::size_t last = 1; last < count_; ++last) {
      const double whole = add(best_[index(all, last)], costs[last][0]);
      if (whole >= cost_) continue;
      cost_ = whole;
      last_ = static_cast<int>(last);
    }
  }

  std::size_t count_;
  std::vector<double> best_;
  std::vector<int> before_;
  double cost_ = kNever;
  int last_ = -1;
};

// First the smallest worst link, then the smallest sum without any worse link: two searches, because one search for both would
// drop a path that is worse so far and better in the end.
SiteOrder exact(const SiteCosts& costs) {
  const double worst = BestPaths(costs, [](double path, double link) { return std::max(path, link); }).cost();
  const BestPaths best(costs, [worst](double path, double link) { return link > worst ? kNever : path + link; });
  return rated(costs, best.ring());
}

std::vector<int> nearest_first(const SiteCosts& costs, int start) {
  std::vector<int> sites = {start};
  std::vector<bool> used(costs.size());
  used[static_cast<std::size_t>(start)] = true;
  while (sites.size() < costs.size()) {
    int nearest = -1;
    for (int to = 0; to < static_cast<int>(costs.size()); ++to)
      if (!used[static_cast<std::size_t>(to)] &&
          (nearest < 0 || cost(costs, sites.back(), to) < cost(costs, sites.back(), nearest)))
        nearest = to;
    used[static_cast<std::size_t>(nearest)] = true;
    sites.push_back(nearest);
  }
  return sites;
}

// Takes up to three sites in a row out of the ring and puts them elsewhere, in their order or turned round; or turns a part of
// the ring round. Returns whether a change helped.
bool improve(const SiteCosts& costs, SiteOrder& order, std::size_t& moves) {
  const std::size_t count = order.sites.size();
  const auto try_order = [&](std::vector<int> sites) {
    ++moves;
    SiteOrder changed = rated(costs, std::move(sites));
    if (!(changed < order)) return false;
    order = std::move(changed);
    return true;
  };
  for (std::size_t first = 0; first < count; ++first) {
    for (std::size_t length = 1; length <= kLongestSegment && length + 2 <= count; ++length) {
      std::vector<int> rest = order.sites;
      std::rotate(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(first), rest.end());
      std::vector<int> segment(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(length));
      rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(length));
      for (int turned = 0; turned < 2; ++turned, std::reverse(segment.begin(), segment.end()))
        for (std::size_t place = 1; place < rest.size(); ++place) {
          if (moves >= kMostMoves) return false;
          std::vector<int> sites = rest;
          sites.insert(sites.begin() + static_cast<std::ptrdiff_t>(place), segment.begin(), segment.end());
          if (try_order(std::move(sites))) return true;
        }
    }
    for (std::size_t end = first + 2; end <= count; ++end) {
      if (moves >= kMostMoves) return false;
      std::vector<int> sites = order.sites;
      std::reverse(sites.begin() + static_cast<std::ptrdiff_t>(first), sites.begin() + static_cast<std::ptrdiff_t>(end));
      if (try_order(std::move(sites))) return true;
    }
  }
  return false;
}

}  // namespace

double seconds_of_message(const LinkFacts& link) {
  const double rate = link.bytes_per_second.value_or(0);
  return link.round_trip_s.value_or(0) / 2 + kMessageBytes / (rate > 0 ? rate : kUnknownRate);
}

SiteCosts site_costs(const SiteLinks& links) {
  SiteCosts costs(links.sites(), std::vector<double>(links.sites()));
  for (std::uint32_t from = 0; from < links.sites(); ++from)
    for (std::uint32_t to = 0; to < links.sites(); ++to)
      if (from != to) costs[from][to] = seconds_of_message(links.between(from, to));
  return costs;
}

SiteOrder heuristic_site_order(const SiteCosts& costs) {
  std::vector<SiteOrder> starts;
  for (int start = 0; start < static_cast<int>(costs.size()); ++start)
    starts.push_back(rated(costs, from_first(nearest_first(costs, start))));
  std::stable_sort(starts.begin(), starts.end());
  SiteOrder best = starts.front();
  std::size_t moves = 0;
  for (SiteOrder& order : starts) {
    while (improve(costs, order, moves)) {
    }
    if (order < best) best = order;
    if (moves >= kMostMoves) break;
  }
  return rated(costs, from_first(std::move(best.sites)));
}

SiteOrder site_order(const SiteCosts& costs) {
  if (costs.size() <= 3) {  // with three sites the only choice is the direction
    SiteOrder one = rated(costs, costs.size() < 2    ? std::vector<int>(costs.size(), 0)
                                 : costs.size() == 2 ? std::vector<int>{0, 1}
                                                     : std::vector<int>{0, 1, 2});
    if (costs.size() < 3) return one;
    SiteOrder other = rated(costs, {0, 2, 1});
    return other < one ? other : one;
  }
  return costs.size() <= kMostExactSites ? exact(costs) : heuristic_site_order(costs);
}

}  // namespace seto
