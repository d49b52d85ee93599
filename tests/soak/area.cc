#include "tests/soak/area.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "include/seto/seto.h"
#include "tests/soak/random.h"

namespace seto::soak {
namespace {

constexpr std::size_t kMargin = 64;
constexpr std::byte kUntouched{0xa5};

}  // namespace

void Area::Release::operator()(std::byte* memory) const {
  if (of_library)
    setoMemFree(memory);
  else
    ::operator delete[](memory, std::align_val_t{64});
}

Area::Area(std::size_t elements, std::size_t element, std::uint64_t key)
    : element_(element), begin_(kMargin + element * (key % 9)), expected_(begin_ + elements * element + kMargin, kUntouched) {
  if (mixed(key) % 16 == 0) {
    void* lent = nullptr;
    if (setoMemAlloc(&lent, expected_.size()) == setoSuccess) memory_ = {static_cast<std::byte*>(lent), Release{true}};
  }
  if (memory_ == nullptr)
    memory_ = {static_cast<std::byte*>(::operator new[](expected_.size(), std::align_val_t{64})), Release{false}};
}

void Area::fill() const { std::memcpy(memory_.get(), expected_.data(), expected_.size()); }

std::string Area::difference() const {
  if (std::memcmp(memory_.get(), expected_.data(), expected_.size()) == 0) return {};
  const auto differ = std::mismatch(expected_.begin(), expected_.end(), memory_.get());
  const auto offset = static_cast<std::size_t>(differ.first - expected_.begin());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < expected_.size(); ++i) wrong += expected_[i] != memory_[i] ? 1U : 0U;
  char text[200];
  std::snprintf(text, sizeof text,
                "%zu bytes differ, the first is byte %ld of element size %zu (0x%02x, not 0x%02x); the area has %zu", wrong,
                static_cast<long>(offset) - static_cast<long>(begin_), element_, std::to_integer<unsigned>(*differ.second),
                std::to_integer<unsigned>(*differ.first), expected_.size() - begin_ - kMargin);
  return text;
}

}  // namespace seto::soak
