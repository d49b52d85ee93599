// Versions of what choice knows: one rank's rules, and all interleavings of a whole communicator as far as random ones reach.

#include "src/core/choice/version_switch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "tests/support/seed.h"

namespace seto {
namespace {

constexpr std::uint64_t kAhead = VersionSwitch::kAhead;

TEST(VersionSwitch, WithoutAProposalOneVersionIsForEver) {
  const VersionSwitch versions(5);
  EXPECT_EQ(versions.version_of(1), 5U);
  EXPECT_EQ(versions.version_of(1'000'000), 5U);
  EXPECT_EQ(versions.last_like(1), VersionSwitch::kAlways);
}

TEST(VersionSwitch, AfterAPromiseLaterOperationsWait) {
  VersionSwitch versions(0);
  EXPECT_EQ(versions.promise(1'000), 1'000U);
  EXPECT_EQ(versions.promise(1'020), 1'000U) << "a rank answers a proposal once";
  EXPECT_EQ(versions.version_of(1'000 + kAhead), 0U);
  EXPECT_FALSE(versions.version_of(1'001 + kAhead));
  EXPECT_EQ(versions.last_like(1), 1'000 + kAhead);
  ASSERT_TRUE(versions.commit(1, 1'500));
  EXPECT_EQ(versions.version_of(1'500), 0U);
  EXPECT_EQ(versions.version_of(1'501), 1U);
  EXPECT_EQ(versions.last_like(1'200), 1'500U);
  EXPECT_EQ(versions.last_like(1'501), VersionSwitch::kAlways);
}

TEST(VersionSwitch, ASecondProposalMayComeBeforeTheFirstVersionIsUsed) {
  VersionSwitch versions(0);
  (void)versions.promise(10);
  ASSERT_TRUE(versions.commit(1, 500));
  EXPECT_EQ(versions.promise(20), 500U);
  EXPECT_EQ(versions.version_of(400), 0U);
  EXPECT_EQ(versions.version_of(500 + kAhead), 1U);
  EXPECT_FALSE(versions.version_of(501 + kAhead));
  ASSERT_TRUE(versions.commit(2, 500 + kAhead));
  EXPECT_EQ(versions.version_of(501 + kAhead), 2U);
  versions.enter(501 + kAhead);
  EXPECT_EQ(versions.version_of(501 + kAhead), 2U);
}

TEST(VersionSwitch, RefusesWhatWasNotAgreed) {
  VersionSwitch versions(3);
  EXPECT_FALSE(versions.commit(4, 1'000)) << "nothing was promised";
  (void)versions.promise(10);
  EXPECT_FALSE(versions.commit(4, 10 + kAhead - 1)) << "operations of the old version may be bound there";
  EXPECT_FALSE(versions.commit(3, 1'000)) << "an old version";
  EXPECT_TRUE(versions.commit(4, 10 + kAhead));
  EXPECT_FALSE(versions.commit(5, 2'000));
}

TEST(VersionVote, EndsWithTheLastAnswer) {
  VersionVote vote(3);
  EXPECT_FALSE(vote.is_open());
  EXPECT_FALSE(vote.answer(0, 1, 5));
  vote.begin(1);
  EXPECT_TRUE(vote.is_open());
  EXPECT_FALSE(vote.answer(0, 1, 5));
  EXPECT_FALSE(vote.answer(1, 2, 900)) << "of another proposal";
  EXPECT_FALSE(vote.answer(1, 1, 70));
  EXPECT_FALSE(vote.answer(1, 1, 7'000)) << "a second answer";
  EXPECT_FALSE(vote.answer(7, 1, 1)) << "no such rank";
  EXPECT_FALSE(vote.answer(-1, 1, 1));
  EXPECT_FALSE(vote.answer(2, 1, ~std::uint64_t{0})) << "no such operation";
  EXPECT_TRUE(vote.answer(2, 1, 6));
  EXPECT_EQ(vote.after(), 70 + kAhead);
  EXPECT_FALSE(vote.is_open());
}

// Ranks that issue operations, bind them at once or late, and exchange messages in order. A step of the schedule is one action of
// one rank, drawn at random. Which operations are ahead of others is limited as in a communicator: by the slowest rank.
class Model {
 public:
  Model(int ranks, std::mt19937_64& random) : random_(random), ranks_(static_cast<std::size_t>(ranks)), vote_(ranks) {}

  void step(bool may_propose) {
    const std::size_t who = random_() % ranks_.size();
    switch (random_() % 4) {
      case 0:
        return issue(who);
      case 1:
        return bind(who);
      case 2:
        return deliver(who);
      default:
        if (who == 0 && may_propose && random_() % 16 == 0) propose();
    }
  }
  // All messages arrive, and every rank issues and binds as many operations as the others.
  void finish() {
    std::uint64_t most = 0;
    for (const Party& rank : ranks_) most = std::max(most, rank.issued);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t who = 0; who < ranks_.size(); ++who) {
        const std::size_t bound = ranks_[who].version.size();
        while (!ranks_[who].inbox.empty()) deliver(who), moved = true;
        ranks_[who].issued = most;
        bind(who);
        moved = moved || ranks_[who].version.size() != bound;
      }
    }
    for (const Party& rank : ranks_) ASSERT_EQ(rank.version.size(), most) << "an operation waits for ever";
    for (std::uint64_t operation = 0; operation < most; ++operation)
      for (const Party& rank : ranks_)
        ASSERT_EQ(rank.version[operation], ranks_[0].version[operation]) << "operation " << operation + 1;
    ASSERT_FALSE(vote_.is_open());
  }
  [[nodiscard]] std::uint64_t versions() const { return next_; }

 private:
  struct Message {
    enum class Kind : std::uint8_t { propose, answer, commit } kind;
    std::size_t from;
    std::uint64_t version;
    std::uint64_t operation;
  };
  struct Party {
    std::uint64_t issued = 0;
    std::vector<std::uint64_t> version;  // of each bound operation
    VersionSwitch versions{0};
    std::deque<Message> inbox;
  };

  void issue(std::size_t who) {
    Party& rank = ranks_[who];
    const std::uint64_t burst = random_() % 64 == 0 ? 1'000 : 1 + random_() % 8;  // a thousand calls on a host stream
    rank.issued += burst;
    // The calling thread binds only while nothing waits.
    bind(who);
  }
  void bind(std::size_t who) {
    Party& rank = ranks_[who];
    while (rank.version.size() < rank.issued) {
      const std::uint64_t operation = rank.version.size() + 1;
      const auto version = rank.versions.version_of(operation);
      if (!version) return;
      rank.versions.enter(operation);
      rank.version.push_back(*version);
    }
  }
  void deliver(std::size_t who) {
    Party& rank = ranks_[who];
    if (rank.inbox.empty()) return;
    const Message message = rank.inbox.front();
    rank.inbox.pop_front();
    if (message.kind == Message::Kind::propose)
      ranks_[0].inbox.push_back({Message::Kind::answer, who, message.version, rank.versions.promise(rank.issued)});
    else if (message.kind == Message::Kind::answer)
      count(message);
    else
      ASSERT_TRUE(rank.versions.commit(message.version, message.operation));
  }
  void propose() {
    if (vote_.is_open() || (ranks_[0].versions.newest_after() > 0 && ranks_[0].issued <= ranks_[0].versions.newest_after()))
      return;
    vote_.begin(++next_);
    for (std::size_t who = 1; who < ranks_.size(); ++who) ranks_[who].inbox.push_back({Message::Kind::propose, 0, next_, 0});
    count({Message::Kind::answer, 0, next_, ranks_[0].versions.promise(ranks_[0].issued)});
  }
  void count(const Message& answer) {
    if (!vote_.answer(static_cast<Rank>(answer.from), answer.version, answer.operation)) return;
    for (std::size_t who = 1; who < ranks_.size(); ++who)
      ranks_[who].inbox.push_back({Message::Kind::commit, 0, next_, vote_.after()});
    ASSERT_TRUE(ranks_[0].versions.commit(next_, vote_.after()));
  }

  std::mt19937_64& random_;
  std::vector<Party> ranks_;
  VersionVote vote_;
  std::uint64_t next_ = 0;
};

TEST(VersionSwitch, NoOperationHasTwoVersionsWhateverTheOrder) {
  std::mt19937_64 random(testing::chosen_seed());
  std::uint64_t versions = 0;
  for (int run = 0; run < 300; ++run) {
    Model model(2 + static_cast<int>(random() % 5), random);
    const int steps = 200 + static_cast<int>(random() % 2'000);
    for (int step = 0; step < steps; ++step) model.step(true);
    model.finish();
    if (HasFatalFailure()) return;
    versions += model.versions();
  }
  EXPECT_GT(versions, 300U) << "the schedule proposes too rarely to show anything";
}

}  // namespace
}  // namespace seto
