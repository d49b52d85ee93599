#include "transports/slots/words.h"

#include <algorithm>
#include <cstring>

#include "src/base/text.h"

namespace seto::slots {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

std::size_t words_for(std::size_t bytes) { return (bytes + kWord - 1) / kWord; }

// A checksum of a text and its size, added word by word.
class Check {
 public:
  explicit Check(std::size_t size) : size_(size), sum_((size + 1) * kOdd) {}
  void add(std::uint64_t word) { sum_ = (sum_ ^ sum_ >> 32 ^ word) * kOdd; }
  [[nodiscard]] std::uint64_t with_size() const { return std::uint64_t{size_} << 32 | sum_ >> 32; }

 private:
  static constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  std::size_t size_;
  std::uint64_t sum_;
};

}  // namespace

void put_words(WordLines& lines, std::string_view why) {
  why = why.substr(0, kMostWords);
  Check check(why.size());
  for (std::size_t at = 0; at < words_for(why.size()); ++at) {
    std::uint64_t word = 0;
    const std::string_view piece = why.substr(at * kWord, kWord);
    std::memcpy(&word, piece.data(), piece.size());
    lines.text[at].store(word, std::memory_order_relaxed);
    check.add(word);
  }
  lines.size_and_check.store(check.with_size(), std::memory_order_release);
}

std::string words_in(const WordLines& lines) {
  const std::uint64_t stored = lines.size_and_check.load(std::memory_order_acquire);
  const auto size = static_cast<std::size_t>(stored >> 32);
  if (size == 0 || size > kMostWords) return {};
  Check check(size);
  std::string text(words_for(size) * kWord, 0);
  for (std::size_t at = 0; at < words_for(size); ++at) {
    const std::uint64_t word = lines.text[at].load(std::memory_order_relaxed);
    std::memcpy(text.data() + at * kWord, &word, kWord);
    check.add(word);
  }
  if (check.with_size() != stored) return {};
  text.resize(size);
  return plain_ascii(text);
}

}  // namespace seto::slots
