#include "src/topology/graph/core_set.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>

namespace seto {

std::optional<CoreSet> CoreSet::parse(std::string_view text) {
  CoreSet set;
  while (!text.empty()) {
    const std::size_t comma = text.rfind(',');
    std::string_view word = comma == std::string_view::npos ? text : text.substr(comma + 1);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(0, comma);
    if (word.starts_with("0x")) {
      word.remove_prefix(2);
      if (word.empty()) return std::nullopt;
    }
    std::uint32_t value = 0;
    const auto [at, error] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
    if (!word.empty() && (error != std::errc() || at != word.data() + word.size())) return std::nullopt;
    if (set.words_.size() == kMostWords) return std::nullopt;
    set.words_.push_back(value);
  }
  set.trim();
  return set;
}

CoreSet CoreSet::of_thread() {
  CoreSet cores;
  cpu_set_t permitted;
  if (sched_getaffinity(0, sizeof permitted, &permitted) != 0) return cores;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &permitted)) cores.add(core);
  return cores;
}

void CoreSet::add(std::size_t core) {
  const std::size_t word = core / 32;
  if (word >= kMostWords) return;
  if (words_.size() <= word) words_.resize(word + 1);
  words_[word] |= std::uint32_t{1} << (core % 32);
}

bool CoreSet::contains(std::size_t core) const {
  return core / 32 < words_.size() && (words_[core / 32] >> (core % 32) & 1) != 0;
}

std::size_t CoreSet::count() const {
  std::size_t total = 0;
  for (const std::uint32_t word : words_) total += static_cast<std::size_t>(std::popcount(word));
  return total;
}

CoreSet CoreSet::both(const CoreSet& other) const {
  CoreSet result;
  result.words_.resize(std::min(words_.size(), other.words_.size()));
  for (std::size_t i = 0; i < result.words_.size(); ++i) result.words_[i] = words_[i] & other.words_[i];
  result.trim();
  return result;
}

std::string CoreSet::text() const {
  std::string result;
  for (std::size_t i = words_.size(); i-- > 0;) {
    std::array<char, 12> word{};
    std::snprintf(word.data(), word.size(), "%s%08x", result.empty() ? "" : ",", words_[i]);
    result += word.data();
  }
  return result;
}

std::string CoreSet::ranges() const {
  std::string result;
  const std::size_t end = words_.size() * 32;
  for (std::size_t core = 0; core < end; ++core) {
    if (!contains(core)) continue;
    std::size_t last = core;
    while (contains(last + 1)) ++last;
    result.append(result.empty() ? "" : ",").append(std::to_string(core));
    if (last > core) result.append("-").append(std::to_string(last));
    core = last;
  }
  return result;
}

void CoreSet::trim() {
  while (!words_.empty() && words_.back() == 0) words_.pop_back();
}

}  // namespace seto
