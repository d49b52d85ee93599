// When the memory that other ranks write to may be freed.
#include "tests/device_memory/device_ranks.h"

namespace seto::testing {
namespace {

class DeviceWorkspaces : public DeviceMemory {
 protected:
  static constexpr std::size_t kPair = 2;
  struct Place {
    std::shared_ptr<GpuContext> gpu;
    std::unique_ptr<Workspaces> workspaces;
  };

  void make_pair() {
    start_gpus(static_cast<int>(kPair));
    for (std::size_t rank = 0; rank < kPair; ++rank) {
      Result<std::shared_ptr<GpuContext>> gpu = GpuContext::of_device(gpu_of(static_cast<int>(rank)));
      ASSERT_TRUE(ok(gpu.status()));
      const ContextScope scope(*gpu.value());
      Result<std::unique_ptr<Workspaces>> made = Workspaces::create(gpu.value());
      ASSERT_TRUE(ok(made.status()));
      places_.push_back({gpu.value(), std::move(made).value()});
      places_.back().workspaces->describe(statements_.emplace_back());
      Result<RankStatement> allocated = places_.back().workspaces->allocate(statements_.back());
      ASSERT_TRUE(ok(allocated.status()));
      statements_.back() = allocated.value();
    }
  }
  Workspaces& join(std::size_t rank, const std::vector<bool>& nearby) {
    const ContextScope scope(*places_[rank].gpu);
    Workspaces& workspaces = *places_[rank].workspaces;
    EXPECT_TRUE(ok(workspaces.connect(static_cast<Rank>(rank), statements_, nearby).status()));
    workspaces.join();
    return workspaces;
  }

  std::vector<RankStatement> statements_;

 private:
  std::vector<Place> places_;
};

// However long that takes: it writes to the memory of the others then.
TEST_F(DeviceWorkspaces, ARankOfTheSameProcessIsAwaited) {
  ASSERT_NO_FATAL_FAILURE(make_pair());
  Workspaces& first = join(0, {true, true});
  Workspaces& second = join(1, {true, true});
  first.leave();
  first.give_up_other_processes();
  first.mark_dead(1);
  EXPECT_FALSE(first.all_left());
  second.leave();
  EXPECT_TRUE(first.all_left());
  EXPECT_TRUE(second.all_left());
}

TEST_F(DeviceWorkspaces, ARankOfAnotherProcessIsGivenUp) {
  ASSERT_NO_FATAL_FAILURE(make_pair());
  ++statements_[1].process;
  Workspaces& first = join(0, {true, false});
  EXPECT_FALSE(first.all_left());
  first.give_up_other_processes();
  EXPECT_TRUE(first.all_left());
}

}  // namespace
}  // namespace seto::testing
