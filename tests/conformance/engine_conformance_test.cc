// The host engine over groups that work, delay, reorder, cut connections or send malformed data. One thread drives all ranks in a
// random order of turns. Whatever the medium does, a rank ends with the correct result, an error, or a wait that it can name.

#include "tests/conformance/engine_world.h"
#include "tests/support/conformance.h"
#include "tests/support/tcp_peer_groups.h"

namespace seto::support {
namespace {

class Engine : public OneThread {
 protected:
  explicit Engine(int most_ranks = kLess > 1 ? 4 : 5) : most_ranks_(most_ranks) {}

  // Jobs of every algorithm that exists for that many ranks, with types and sizes in turn.
  static std::vector<Job> jobs(int ranks, const std::vector<std::uint64_t>& counts) {
    constexpr DataType kTypes[] = {DataType::float32, DataType::uint8, DataType::bfloat16, DataType::int32, DataType::float64};
    constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::max, ReduceOp::prod};
    std::vector<Job> jobs;
    for (const Algorithm& algorithm : algorithms())
      for (const std::uint64_t count : counts) {
        const std::size_t turn = jobs.size();
        Job job{&algorithm, ranks, kTypes[turn % std::size(kTypes)], kOps[turn % std::size(kOps)], count};
        job.slice_elements = 64 / size_of(job.type) * (1 + turn % 3);
        job.root = static_cast<Rank>(turn % static_cast<std::size_t>(ranks));
        job.order = turn % 4 == 3 ? StepOrder::readiness : StepOrder::skewed;
        const Shape shape{algorithm.collective, ranks, job.root, 1, Finish::none};
        if (algorithm.refuses(shape, tiers_for(job)).empty()) jobs.push_back(job);
      }
    return jobs;
  }

  // Chunks long enough to be lent where members share an address space; in place, too, where the collective supports it.
  static std::vector<Job> long_jobs(int ranks) {
    std::vector<Job> all;
    for (Job job : jobs(ranks, {std::uint64_t{17'000} * static_cast<std::uint64_t>(ranks)})) {
      job.slice_elements *= 64;
      all.push_back(job);
      if (!shared_at(job, job.root)) continue;
      job.in_place = InPlace::yes;
      all.push_back(job);
    }
    // Four and five ranks take ten times as long as two: of their jobs one of three, of both kinds in turn.
    const std::size_t every = kEvery > 1 ? kEvery : ranks > 3 ? 3 : 1;
    std::vector<Job> taken;
    for (std::size_t i = static_cast<std::size_t>(ranks) % every; i < all.size(); i += every) taken.push_back(all[i]);
    return taken;
  }

  void expect_right(const std::function<Faults(std::uint64_t seed)>& faults, bool dawdles) const {
    expect_right([](int ranks) { return jobs(ranks, {0, 1, 50, 700}); }, faults, dawdles);
  }
  void expect_right(const std::function<std::vector<Job>(int ranks)>& made,
                    const std::function<Faults(std::uint64_t seed)>& faults, bool dawdles, std::uint64_t operations = 4) const {
    std::uint64_t seed = 1, withheld = 0;
    for (int ranks = 2; ranks <= most_ranks_; ++ranks)
      for (const Job& job : made(ranks)) {
        SCOPED_TRACE(job.text() + ", seed " + std::to_string(++seed));
        World world(*GetParam(), job, [&](PeerGroupMember& member) { return faults(seed * 8 + member.index()); });
        if (!world.drive(operations, seed, kPatience)) {
          for (const auto& worker : world.workers_) {
            const Executor::Wait wait = worker->waits_at();
            ADD_FAILURE() << "done " << worker->done() << ": " << wait.text << ", " << wait.step;
          }
          return;
        }
        for (const auto& worker : world.workers_) {
          ASSERT_EQ(worker->wrong(), 0U);
          ASSERT_FALSE(worker->touched_late());
        }
        for (const auto& peer_group : world.peer_groups_) {
          ASSERT_TRUE(peer_group->failure().ok()) << peer_group->failure().text();
          withheld += peer_group->withheld();
        }
      }
    EXPECT_EQ(withheld > 1000, dawdles);
  }

 private:
  int most_ranks_;
};

TEST_P(Engine, IsRightOverEveryTransport) {
  expect_right([](std::uint64_t seed) { return Faults{.seed = seed}; }, false);
}

TEST_P(Engine, IsRightWithDelays) {
  expect_right([](std::uint64_t seed) { return Faults{.seed = seed, .most_delay = 5}; }, true);
}

TEST_P(Engine, IsRightWithLentMessages) {
  expect_right(
      long_jobs, [](std::uint64_t seed) { return Faults{.seed = seed, .most_delay = 3}; }, true);
}

// One slice of a few lines: the host executor has these steps ready. Some are in readiness order, and take the general way.
TEST_P(Engine, IsRightWithShortMessages) {
  const auto short_jobs = [](int ranks) {
    std::vector<Job> all = jobs(ranks, {0, 1, 14, 60, 500});
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i].slice_elements = 4 << 10;
      if (i % 2 == 1 && shared_at(all[i], all[i].root)) all[i].in_place = InPlace::yes;
    }
    return all;
  };
  expect_right(
      short_jobs, [](std::uint64_t seed) { return Faults{.seed = seed}; }, false);
  expect_right(
      short_jobs, [](std::uint64_t seed) { return Faults{.seed = seed, .most_delay = 5}; }, true);
}

// Every rank chooses alone, and by operation: the first ones go through slots.
class EngineByOffset : public Engine {};

TEST_P(EngineByOffset, IsRightWithLentMessages) {
  expect_right(
      long_jobs, [](std::uint64_t seed) { return Faults{.seed = seed, .most_delay = 3}; }, true, 8);
}

INSTANTIATE_TEST_SUITE_P(All, EngineByOffset, ::testing::Values(&lending_by_offset()), name_of_one);

TEST_P(Engine, IsRightWithStreamsInAnyOrder) {
  expect_right([](std::uint64_t seed) { return Faults{.seed = seed, .most_delay = 1, .hold = 13}; }, true);
}

// From some message on, nothing of one rank arrives. Ranks that need it wait and name it; the others succeed.
TEST_P(Engine, NamesARankThatIsCutOff) {
  std::uint64_t seed = 100, stuck = 0, whole = 0;
  for (Job job : jobs(4, {300})) {
    if (job.algorithm->collective == Collective::barrier) continue;
    job.order = StepOrder::skewed;  // one step waits; in readiness order many wait, and one of them is named
    for (std::uint64_t after : {0U, 1U, 2U, 5U, 1000U}) {
      SCOPED_TRACE(job.text() + ", seed " + std::to_string(++seed) + ", cut after " + std::to_string(after));
      const auto culprit = static_cast<std::uint32_t>(seed % 4);
      World world(*GetParam(), job, [&](PeerGroupMember& member) {
        Faults faults{.seed = seed};
        if (member.index() == culprit) faults.cut_after = after;
        return faults;
      });
      const bool ended = world.drive(2, seed, 2000);
      whole += ended ? 1 : 0;
      bool named = ended;
      for (const auto& worker : world.workers_) {
        EXPECT_EQ(worker->wrong(), 0U);
        if (worker->done() == 2) continue;
        const Executor::Wait wait = worker->waits_at();
        if (wait.peer != static_cast<Rank>(culprit)) continue;
        named = named || wait.text.find("from rank " + std::to_string(culprit)) != std::string::npos;
      }
      EXPECT_TRUE(named) << "no rank waits for rank " << culprit;
      if (ended) continue;
      ++stuck;
      // The group is abandoned: every rank sees which rank left, everything can end early, and the next group in the same memory
      // works.
      world.peer_groups_[culprit]->status().leave({6, culprit});
      for (const auto& peer_group : world.peer_groups_) EXPECT_EQ(peer_group->status().fate_of(culprit).reason, 6U);
      for (auto& worker : world.workers_) worker.reset();
      for (const auto& member : world.members_) member->close(0);
      for (Rank rank = 0; rank < 4; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        world.workers_[at] = std::make_unique<Worker>(job, rank, world.members_[at]->peer_group(1));
      }
      ASSERT_TRUE(world.drive(1, seed, kPatience));
      for (const auto& worker : world.workers_) EXPECT_EQ(worker->wrong(), 0U);
      world.workers_.clear();
    }
  }
  EXPECT_GT(stuck, 20U);
  EXPECT_GT(whole, 0U);
}

// Stray stores into the headers of streams with slots: never a crash, and never a wrong result.
TEST_P(Engine, RejectsMalformedHeaders) {
  std::uint64_t seed = 1000, damages = 0, found = 0;
  for (const Job& job : jobs(3, {900})) {
    if (job.algorithm->collective == Collective::barrier) continue;
    for (int round = 0; round < 12; ++round) {
      SCOPED_TRACE(job.text() + ", seed " + std::to_string(++seed));
      World world(*GetParam(), job, [&](PeerGroupMember& member) {
        Faults faults{.seed = seed * 4 + member.index()};
        faults.garbage = [&damages, &member](const Sent& sent, std::uint64_t random) {
          if (random % 16 != 0) return;
          ++damages;
          const Damage damage = kDamages[random / 16 % std::size(kDamages)];
          member.damage({sent.address, sent.receiver, operation_of(sent.mark), damage, random >> 40});
        };
        return faults;
      });
      const bool ended = world.drive(3, seed, 1000);
      bool failed = false;
      for (const auto& peer_group : world.peer_groups_) {
        const Status reason = peer_group->failure();
        if (reason.ok()) continue;
        failed = true;
        EXPECT_EQ(reason.code(), Code::remote_error);
        EXPECT_TRUE(reason.text().starts_with("member ")) << reason.text();
      }
      found += failed ? 1 : 0;
      EXPECT_TRUE(ended || failed) << "the run hangs, and no group reports a failure";
      for (const auto& worker : world.workers_) EXPECT_EQ(worker->wrong(), 0U);
    }
  }
  EXPECT_GT(damages, 1000U);
  EXPECT_GT(found, 100U);
}

// The same over sockets: bytes arrive in pieces, and may be placed at their destination.
class EngineOverSockets : public Engine {
 protected:
  EngineOverSockets() : Engine(kLess > 1 ? 3 : 5) {}  // sanitizers are slow here
};

TEST_P(EngineOverSockets, IsRightWithDelays) {
  expect_right([](std::uint64_t seed) { return Faults{.seed = seed, .most_delay = 5}; }, true);
}

TEST_P(EngineOverSockets, IsRightWithPlacing) {
  expect_right(
      long_jobs, [](std::uint64_t seed) { return Faults{.seed = seed, .most_delay = 3, .hold = 13}; }, true);
}

INSTANTIATE_TEST_SUITE_P(All, EngineOverSockets, ::testing::Values(&tcp_transport(1), &tcp_transport(3), &tls_transport(1)),
                         name_of_one);
INSTANTIATE_TEST_SUITE_P(All, Engine, ::testing::ValuesIn(one_thread_transports()), name_of_one);

}  // namespace
}  // namespace seto::support
