// The words of the command line of link_calls. Pure, tested in tests/unit/bench.
#ifndef SETO_BENCH_LINKS_LINK_WORK_H_
#define SETO_BENCH_LINKS_LINK_WORK_H_

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

namespace seto::bench {

inline constexpr std::array<std::string_view, 4> kLinkWorks = {"all_reduce", "default", "fp16", "send_receive"};
inline constexpr std::size_t kMostAtOnce = 64;
inline constexpr std::size_t kMostIdleMs = 60'000;

struct LinkWork {
  std::string_view name;
  std::size_t size = 0, warm_ups = 0, calls = 0;
  std::size_t idle_ms = 0;  // nothing is sent for so long before each call
  std::size_t at_once = 1;  // calls of this size in flight, each on a stream of its own
  std::size_t checked = 0;  // 1: the result of each call is compared, not only that of the last one
};

// Takes the number that the text begins with, as far as the next colon or the end.
inline bool take_number(std::string_view& text, std::size_t& number) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || (rest != end && *rest != ':')) return false;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return true;
}

inline bool take(std::string_view& text, std::string_view lead) {
  if (text.substr(0, lead.size()) != lead) return false;
  text.remove_prefix(lead.size());
  return true;
}

// WORK:BYTES:WARM_UPS:CALLS[:idle=MS][:at-once=N][:checked=1]; nothing if the text is not of that form.
inline std::optional<LinkWork> parse_link_work(std::string_view text) {
  LinkWork work;
  work.name = text.substr(0, std::min(text.find(':'), text.size()));
  text.remove_prefix(work.name.size());
  if (std::find(kLinkWorks.begin(), kLinkWorks.end(), work.name) == kLinkWorks.end()) return std::nullopt;
  for (std::size_t* const number : {&work.size, &work.warm_ups, &work.calls}) {
    if (!take(text, ":") || !take_number(text, *number)) return std::nullopt;
  }
  while (!text.empty()) {
    std::size_t* const number = take(text, ":idle=")      ? &work.idle_ms
                                : take(text, ":at-once=") ? &work.at_once
                                : take(text, ":checked=") ? &work.checked
                                                          : nullptr;
    if (number == nullptr || !take_number(text, *number)) return std::nullopt;
  }
  const bool possible = work.size >= sizeof(float) && work.calls > 0 && work.idle_ms <= kMostIdleMs && work.at_once > 0 &&
                        work.at_once <= kMostAtOnce && work.checked <= 1 && (work.at_once == 1 || work.name != "send_receive");
  return possible ? std::optional(work) : std::nullopt;
}

}  // namespace seto::bench

#endif
