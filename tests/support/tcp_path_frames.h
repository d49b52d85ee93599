#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transports/tcp/link/link.h"

namespace seto::support {

using tcp::Frame;
using tcp::PathDialer;
using tcp::Sink;
using tcp::Unwritten;

class Dialer final : public PathDialer {
 public:
  void paths_broke() override { ++breaks; }
  void give_up() override { ++given_up; }
  int breaks = 0, given_up = 0;
};

// Keeps each payload in memory of its own, which it frees when the frame has come: a copy that is written later is an error that
// a sanitizer finds.
class Frames final : public Sink {
 public:
  Result<std::byte*> place(std::uint32_t, const Frame& frame) override {
    EXPECT_EQ(half_.count(frame.mark), 0U) << "it was placed twice";
    auto& memory = half_[frame.mark] = std::make_unique<std::byte[]>(frame.length);
    return memory.get();
  }
  Status arrived(std::uint32_t, const Frame& frame, std::byte* at) override {
    EXPECT_EQ(half_[frame.mark].get(), at);
    EXPECT_EQ(whole.count(frame.mark), 0U) << "it came twice";
    whole[frame.mark].assign(reinterpret_cast<const char*>(at), frame.length);
    half_.erase(frame.mark);
    return {};
  }
  void unplace(std::uint32_t, const Frame& frame, std::byte* at) override {
    EXPECT_EQ(half_[frame.mark].get(), at);
    half_.erase(frame.mark);
    ++unplaced;
  }
  std::map<std::uint64_t, std::string> whole;  // by mark
  int unplaced = 0;

 private:
  std::map<std::uint64_t, std::unique_ptr<std::byte[]>> half_;
};

// A buffer of a caller.
struct Buffer {
  explicit Buffer(std::size_t size) : bytes(size) {}
  std::vector<std::byte> bytes;
  Unwritten unwritten{0};
  resume::Lender lender;
};

}  // namespace seto::support
