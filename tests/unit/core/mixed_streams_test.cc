// One peer group made of three: which of them serves a rank, and a multicast over all of them.

#include "src/core/connect/mixed_streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace seto::testing {
namespace {

constexpr std::size_t kSlot = 8;

// The calls of a scripted group, as text.
using Log = std::vector<std::string>;

class ScriptedSender final : public SendStream {
 public:
  ScriptedSender(std::string name, Log& log, bool& full) : name_(std::move(name)), log_(log), full_(full) {}
  std::byte* acquire(Mark) override { return full_ ? nullptr : slot_.data(); }
  void commit(Mark, std::size_t size) override {
    log_.push_back(name_ + " sends " + std::string(reinterpret_cast<const char*>(slot_.data()), size));
  }
  [[nodiscard]] std::uint64_t handed_over(std::uint64_t) const override { return 3 * name_.size(); }
  [[nodiscard]] std::uint64_t acknowledged(std::uint64_t) const override { return 2 * name_.size(); }
  [[nodiscard]] std::uint64_t released(std::uint64_t) const override { return name_.size(); }

 private:
  std::string name_;
  Log& log_;
  bool& full_;
  std::array<std::byte, kSlot> slot_{};
};

class ScriptedGroup final : public PeerGroup, private PeerStatus {
 public:
  ScriptedGroup(std::string name, Log& log) : name_(std::move(name)), log_(log) {}

  bool full = false;
  Status failed;

  [[nodiscard]] std::uint32_t members() const override { return 0; }
  [[nodiscard]] PeerStatus& status() override { return *this; }
  Result<std::unique_ptr<SendStream>> open_send(StreamAddress address, std::span<const std::uint32_t> receivers,
                                                const StreamGeometry&) override {
    std::string text = name_ + ": " + std::to_string(address.sender) + " to";
    for (const std::uint32_t receiver : receivers) text.append(1, ' ').append(std::to_string(receiver));
    log_.push_back(text);
    return std::unique_ptr<SendStream>(new ScriptedSender(name_, log_, full));
  }
  Result<std::unique_ptr<ReceiveStream>> open_receive(StreamAddress address, const StreamGeometry&) override {
    return seto::failure(Code::internal, "%s receives from %u", name_.c_str(), address.sender);
  }
  Result<std::unique_ptr<PairSender>> open_pair_send(std::uint32_t receiver) override {
    return seto::failure(Code::internal, "%s pair to %u", name_.c_str(), receiver);
  }
  Result<std::unique_ptr<PairReceiver>> open_pair_receive(std::uint32_t sender) override {
    return seto::failure(Code::internal, "%s pair from %u", name_.c_str(), sender);
  }
  void complete(std::uint64_t operation) override { log_.push_back(name_ + " completes " + std::to_string(operation)); }
  [[nodiscard]] Status failure() const override { return failed; }

 private:
  void begin(const Note&) override {}
  bool note_of(std::uint32_t, std::uint64_t, Note&) const override { return false; }
  [[nodiscard]] std::uint64_t completed_by(std::uint32_t member) const override { return 100 * name_.size() + member; }
  void leave(Fate) override { log_.push_back(name_ + " leaves"); }
  [[nodiscard]] Fate fate_of(std::uint32_t) const override { return {}; }
  [[nodiscard]] std::uint64_t departures() const override { return name_.size(); }
  void explain(std::string_view) override {}
  [[nodiscard]] std::string explanation_of(std::uint32_t) const override { return {}; }
  [[nodiscard]] bool departed(std::uint32_t) const override { return false; }
  [[nodiscard]] bool silent(std::uint32_t) const override { return false; }

  std::string name_;
  Log& log_;
};

// Rank 2 of six: memory joins it with 3, a fabric with 0, 3 and 5 (3 is nearer), and the network with all.
class ThreeParts : public ::testing::Test {
 protected:
  Log log_;
  std::shared_ptr<ScriptedGroup> memory_ = std::make_shared<ScriptedGroup>("mem", log_);
  std::shared_ptr<ScriptedGroup> fabric_ = std::make_shared<ScriptedGroup>("fabric", log_);
  std::shared_ptr<ScriptedGroup> network_ = std::make_shared<ScriptedGroup>("network", log_);
  MixedStreams mixed_{{{memory_, {2, 3}}, {fabric_, {0, 2, 3, 5}}, {network_, {0, 1, 2, 3, 4, 5}}}, {1, 2, 0, 0, 2, 1}};
};

TEST_F(ThreeParts, CountTheDeparturesOfAllGroups) {
  EXPECT_EQ(static_cast<PeerGroup&>(mixed_).status().departures(), std::string("memfabricnetwork").size());
}

TEST_F(ThreeParts, ReachEachRankInItsGroup) {
  const auto text_of = [](const auto& result) { return std::string(result.status().text()); };
  EXPECT_EQ(text_of(mixed_.open_receive({3, 0, 0}, {})), "mem receives from 1");
  EXPECT_EQ(text_of(mixed_.open_receive({5, 0, 0}, {})), "fabric receives from 3");
  EXPECT_EQ(text_of(mixed_.open_pair_send(4)), "network pair to 4");
  EXPECT_EQ(text_of(mixed_.open_pair_receive(0)), "fabric pair from 0");
  EXPECT_EQ(mixed_.open_pair_send(6).status().code(), Code::invalid_usage) << "no such rank";
  EXPECT_EQ(mixed_.open_receive({6, 0, 0}, {}).status().code(), Code::invalid_usage);
  EXPECT_EQ(mixed_.status().completed_by(3), 301U);
  EXPECT_EQ(mixed_.status().completed_by(5), 603U);
  EXPECT_EQ(mixed_.status().completed_by(1), 701U);
}

TEST_F(ThreeParts, SendOneMessageToReceiversInAllOfThem) {
  const std::array<std::uint32_t, 4> receivers = {0, 1, 3, 5};
  auto stream = mixed_.open_send({2, 1, 0}, receivers, {});
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(log_, (Log{"mem: 0 to 1", "fabric: 1 to 0 3", "network: 2 to 1"}));
  fabric_->full = true;
  EXPECT_EQ((*stream)->acquire(mark_of(1, 0)), nullptr) << "one group has no slot yet";
  fabric_->full = false;
  std::byte* const buffer = (*stream)->acquire(mark_of(1, 0));
  ASSERT_NE(buffer, nullptr);
  std::memcpy(buffer, "news", 4);
  log_.clear();
  (*stream)->commit(mark_of(1, 0), 4);
  EXPECT_EQ(log_, (Log{"mem sends news", "fabric sends news", "network sends news"}));
  EXPECT_EQ((*stream)->handed_over(1), 9U) << "the last of them counts";
  EXPECT_EQ((*stream)->acknowledged(1), 6U);
  EXPECT_EQ((*stream)->released(1), 3U);
}

TEST_F(ThreeParts, EndTogether) {
  mixed_.complete(7);
  mixed_.status().leave({});
  EXPECT_EQ(log_, (Log{"mem completes 7", "fabric completes 7", "network completes 7", "mem leaves", "fabric leaves",
                       "network leaves"}));
  EXPECT_TRUE(mixed_.failure().ok());
  network_->failed = failure(Code::remote_error, "rank 4 sent garbage");
  EXPECT_EQ(mixed_.failure().text(), "rank 4 sent garbage");
}

}  // namespace
}  // namespace seto::testing
