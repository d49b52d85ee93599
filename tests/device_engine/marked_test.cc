// Exchanges of marked messages (decision 50) with the source of the kernels on threads of the host, against the host's own
// engine: the same bits, whatever else runs in the same workspaces.

#include <gtest/gtest.h>

#include <iterator>

#include "tests/device_engine/emulated_devices.h"
#include "tests/device_engine/emulated_sequence.h"

namespace seto::support {
namespace {

DeviceJob job_of(const char* algorithm, Collective collective, int ranks, std::uint64_t count) {
  DeviceJob job{find_algorithm(algorithm, collective), ranks, DataType::float32, ReduceOp::sum, count};
  job.marked = true;
  return job;
}

DeviceJob sum_of(int ranks, std::uint64_t count) { return job_of("one_shot", Collective::all_reduce, ranks, count); }

std::vector<DeviceJob> exchanges(int ranks, std::uint64_t count) {
  return {sum_of(ranks, count), job_of("direct", Collective::all_gather, ranks, count),
          job_of("direct", Collective::reduce_scatter, ranks, count), job_of("direct", Collective::all_to_all, ranks, count)};
}

void compare(const DeviceJob& job, std::uint64_t seed) {
  SCOPED_TRACE(job.text() + ", seed " + std::to_string(seed));
  const std::vector<BoundProgram> programs = job.programs();
  auto devices = EmulatedDevices::create(programs, job.cut());
  ASSERT_TRUE(devices.ok()) << devices.status().text();
  expect_bits_of_host(job, programs, seed, 3,
                      [&](auto& memory, auto& residuals) { return devices.value()->run(memory, residuals); });
}

// Runs the jobs in turn, as so many operations from a seed on, and expects the bits of the host.
Status run_sequence(EmulatedSequence& sequence, const std::vector<DeviceJob>& jobs, std::uint64_t operations, std::uint64_t seed,
                    std::uint64_t timeout_ms = 100'000) {
  std::vector<std::vector<DeviceMemory>> host(operations);
  for (std::uint64_t operation = 0; operation < operations; ++operation)
    for (Rank rank = 0; rank < jobs.front().ranks; ++rank)
      host[operation].emplace_back(jobs[operation % jobs.size()], rank, seed + operation);
  std::vector<std::vector<DeviceMemory>> device = host;
  std::vector<std::vector<std::byte>> residuals(host.front().size());
  for (std::uint64_t operation = 0; operation < operations; ++operation)
    SETO_TRY(run_on_host(jobs[operation % jobs.size()].programs(), host[operation], residuals));
  SETO_TRY(sequence.run(device, timeout_ms));
  for (std::uint64_t operation = 0; operation < operations; ++operation)
    for (std::size_t rank = 0; rank < host.front().size(); ++rank)
      if (device[operation][rank].output != host[operation][rank].output ||
          device[operation][rank].input != host[operation][rank].input)
        return failure(Code::internal, "operation %ju, rank %zu: other bits than those of the host", std::uintmax_t{operation},
                       rank);
  return {};
}

TEST(MarkedExchange, AllFoldsGiveTheBitsOfTheHost) {
  std::uint64_t seed = 5;
  constexpr int kRanks[] = {2, 3, 9};  // 9: more sources than are looked at together
  for (int type = 0; type < kDataTypeCount; ++type)
    for (int op = 0; op < kReduceOpCount; ++op) {
      DeviceJob job = sum_of(kRanks[seed % std::size(kRanks)], 1 + seed % 97);
      job.type = static_cast<DataType>(type);
      job.op = static_cast<ReduceOp>(op);
      job.in_place = seed % 2 == 0;
      if (!job.exists()) continue;
      compare(job, seed += 5);
      if (HasFatalFailure()) return;
    }
}

TEST(MarkedExchange, AllCollectivesOfOneExchangeGiveTheBitsOfTheHost) {
  std::uint64_t seed = 7;
  constexpr DataType kTypes[] = {DataType::int8, DataType::bfloat16, DataType::int64};
  for (const int ranks : {2, 3, 8})
    for (const std::uint64_t count : {1, 5, 130})
      for (DeviceJob job : exchanges(ranks, count))
        for (const bool in_place : {false, true}) {
          job.type = kTypes[seed % std::size(kTypes)];
          job.in_place = in_place;
          compare(job, seed += 5);
          if (HasFatalFailure()) return;
        }
}

// Long and short exchanges, other collectives and calls with flags take turns in the same workspaces. No rank waits for the
// others between operations.
TEST(MarkedExchange, OthersRunInTheSameWorkspaces) {
  for (const int ranks : {2, 4}) {
    std::vector<DeviceJob> jobs;
    for (const std::uint64_t count : {300, 3, 77})
      for (const DeviceJob& job : exchanges(ranks, count)) {
        jobs.push_back(job);
        if (count == 3) continue;
        jobs.push_back({find_algorithm("ring", Collective::all_reduce), ranks, DataType::float32, ReduceOp::sum, count});
        jobs.push_back({find_algorithm("tree", Collective::broadcast), ranks, DataType::float32, ReduceOp::sum, count});
      }
    for (const DeviceJob& job : jobs) ASSERT_TRUE(job.algorithm != nullptr && job.exists());
    auto sequence = EmulatedSequence::create(jobs);
    ASSERT_TRUE(sequence.ok()) << sequence.status().text();
    const Status ran = run_sequence(sequence.value(), jobs, 4 * jobs.size(), 11);
    EXPECT_TRUE(ran.ok()) << ran.text();
  }
}

TEST(MarkedExchange, ProgramsOfALaunchRunOneAfterAnother) {
  constexpr std::uint32_t kTimes = 7;
  DeviceJob job = sum_of(3, 200);
  job.type = DataType::int64;
  job.in_place = true;
  const std::vector<BoundProgram> programs = job.programs();
  auto devices = EmulatedDevices::create(programs, job.cut());
  ASSERT_TRUE(devices.ok()) << devices.status().text();
  devices.value()->repeat(kTimes);
  std::vector<DeviceMemory> host;
  for (Rank rank = 0; rank < job.ranks; ++rank) host.emplace_back(job, rank, 77);
  std::vector<DeviceMemory> device = host;
  std::vector<std::vector<std::byte>> residuals(host.size());
  for (int launch = 0; launch < 2; ++launch) {
    for (std::uint32_t time = 0; time < kTimes; ++time) ASSERT_TRUE(run_on_host(programs, host, residuals).ok());
    const Status ran = devices.value()->run(device, residuals);
    ASSERT_TRUE(ran.ok()) << ran.text();
    for (std::size_t rank = 0; rank < host.size(); ++rank) EXPECT_EQ(device[rank].output, host[rank].output);
  }
}

// A rank stores the words of a call, and is stopped. What it had queued after that must not store words with the same marks: a
// rank that comes late would take them for those of the first call.
void expect_late_rank_gets_first_call(DeviceJob job) {
  SCOPED_TRACE(job.text());
  auto made = EmulatedSequence::create({job});
  ASSERT_TRUE(made.ok()) << made.status().text();
  EmulatedSequence& sequence = made.value();
  std::vector<std::vector<DeviceMemory>> host(2);
  for (std::uint64_t call = 0; call < 2; ++call)
    for (Rank rank = 0; rank < job.ranks; ++rank) host[call].emplace_back(job, rank, 31 + 2 * call);
  std::vector<std::vector<DeviceMemory>> device = host;
  std::vector<std::vector<std::byte>> residuals(host.front().size());
  ASSERT_TRUE(run_on_host(job.programs(), host[0], residuals).ok());
  EXPECT_FALSE(sequence.run_until_it_waits(0, 0, device[0][0]));
  EXPECT_FALSE(sequence.run_until_it_waits(1, 0, device[0][1]));
  for (const std::size_t rank : {0, 1}) {
    const std::vector<std::byte> before = device[1][rank].output;
    (void)sequence.run_until_it_waits(rank, 0, device[1][rank], 2);
    EXPECT_EQ(device[1][rank].output, before);
  }
  EXPECT_TRUE(sequence.run_until_it_waits(2, 0, device[0][2])) << "all its messages are there";
  EXPECT_EQ(device[0][2].output, host[0][2].output);
}

TEST(StoppedKernels, ALateRankDoesNotTakeALaterCallForTheStoppedOne) {
  for (DeviceJob job : exchanges(3, 50)) {
    expect_late_rank_gets_first_call(job);
    job.marked = false;  // with flags
    expect_late_rank_gets_first_call(job);
  }
}

// The root of a broadcast waits for no rank, so it is stopped between the programs of a launch. The second one never runs, so a
// later launch must not take its number.
TEST(StoppedKernels, ALaterLaunchDoesNotTakeTheNumberOfAProgramThatNeverRan) {
  const DeviceJob job{find_algorithm("direct", Collective::broadcast), 2, DataType::float32, ReduceOp::sum, 50};
  auto made = EmulatedSequence::create({job});
  ASSERT_TRUE(made.ok()) << made.status().text();
  EmulatedSequence& sequence = made.value();
  DeviceMemory root(job, 0, 3), later_root(job, 0, 5), first(job, 1, 3), second(job, 1, 5);
  const std::vector<std::byte> before = second.output;
  EXPECT_TRUE(sequence.run_until_it_waits(0, 0, root, 2)) << "it does not wait in a program";
  EXPECT_TRUE(sequence.run_until_it_waits(1, 0, first));
  (void)sequence.run_until_it_waits(0, 0, later_root);
  EXPECT_FALSE(sequence.run_until_it_waits(1, 0, second)) << "no rank has sent the second call";
  EXPECT_EQ(second.output, before);
}

// Marks come again after 2^31 exchanges. A long exchange leaves words with its mark where later ones, which are shorter, write
// nothing. The exchange that begins the next age clears them.
TEST(MarkedExchange, ResultsAreRightAcrossTheBeginOfAnAge) {
  const std::vector<DeviceJob> jobs = {sum_of(3, 200), sum_of(3, 1)};
  auto sequence = EmulatedSequence::create(jobs);
  ASSERT_TRUE(sequence.ok()) << sequence.status().text();
  ASSERT_TRUE(run_sequence(sequence.value(), jobs, 1, 3).ok());  // the mark of exchange 1
  sequence.value().set_exchanges(kernels::kExchangesOfAge - 3);
  const Status across = run_sequence(sequence.value(), jobs, 6, 20);
  EXPECT_TRUE(across.ok()) << across.text();
  sequence.value().set_exchanges(kernels::kExchangesOfAge);  // the next exchange has the same mark as the first one
  const Status again = run_sequence(sequence.value(), jobs, 1, 50);
  EXPECT_TRUE(again.ok()) << again.text();
  sequence.value().set_exchanges(2 * kernels::kExchangesOfAge - 2);
  const Status later = run_sequence(sequence.value(), jobs, 5, 60);
  EXPECT_TRUE(later.ok()) << later.text();
}

// The other ranks are held back: a rank that is alone in the exchange with the marks of the first one must wait for their words.
TEST(MarkedExchange, MarksOfAnAgeBeforeAreCleared) {
  const std::vector<DeviceJob> jobs = {sum_of(3, 200)};
  auto sequence = EmulatedSequence::create(jobs);
  ASSERT_TRUE(sequence.ok()) << sequence.status().text();
  ASSERT_TRUE(run_sequence(sequence.value(), jobs, 1, 3).ok());  // exchange 1 leaves words
  sequence.value().set_exchanges(kernels::kExchangesOfAge - 1);
  ASSERT_TRUE(run_sequence(sequence.value(), jobs, 1, 20).ok());  // it begins the age, in the other slot
  DeviceMemory alone(jobs.front(), 0, 50);
  EXPECT_FALSE(sequence.value().run_until_it_waits(0, 0, alone)) << "it took words of exchange 1";
}

// A rank that has not met the others may still have to clear its area, so no rank sends words to it.
TEST(MarkedExchange, NoRankSendsBeforeAllRanksHaveMet) {
  const std::vector<DeviceJob> jobs = {sum_of(3, 200)};
  auto sequence = EmulatedSequence::create(jobs);
  ASSERT_TRUE(sequence.ok()) << sequence.status().text();
  ASSERT_TRUE(run_sequence(sequence.value(), jobs, 2, 3).ok());
  sequence.value().set_exchanges(kernels::kExchangesOfAge - 1);
  const std::vector<std::uint64_t> before = sequence.value().marked_words(1);
  DeviceMemory alone(jobs.front(), 0, 50);
  EXPECT_FALSE(sequence.value().run_until_it_waits(0, 0, alone));
  EXPECT_EQ(sequence.value().marked_words(1), before);
  EXPECT_EQ(sequence.value().marked_words(0), std::vector<std::uint64_t>(before.size(), 0)) << "it has cleared its own";
}

// The failure names the message that did not come.
TEST(MarkedExchange, ARankThatNeverLaunchesStopsTheOthers) {
  const DeviceJob job = sum_of(3, 100);
  const std::vector<BoundProgram> programs = job.programs();
  auto devices = EmulatedDevices::create(programs, job.cut());
  ASSERT_TRUE(devices.ok()) << devices.status().text();
  std::vector<DeviceMemory> memory;
  for (Rank rank = 0; rank < job.ranks; ++rank) memory.emplace_back(job, rank, 1);
  std::vector<std::vector<std::byte>> residuals(3);
  devices.value()->launch_only(2);
  const Status status = devices.value()->run(memory, residuals, 50);
  EXPECT_EQ(status.code(), Code::timeout);
  EXPECT_NE(status.text().find("waited 50 ms for operand"), std::string_view::npos) << status.text();
}

TEST(MarkedExchange, OnlyExchangesHaveMarkedMessages) {
  const auto refusal = [](const DeviceJob& job) {
    return std::string(DeviceChannels::join(job.programs(), job.cut()).status().text());
  };
  EXPECT_EQ(refusal(sum_of(4, 100)), "");
  EXPECT_NE(refusal(job_of("ring", Collective::all_reduce, 4, 100)).find("not one message"), std::string::npos);
  EXPECT_NE(refusal(job_of("two_shot", Collective::all_reduce, 4, 100)).find("not one message"), std::string::npos);
  EXPECT_NE(refusal(job_of("direct", Collective::broadcast, 4, 100)).find("not one message"), std::string::npos);
  EXPECT_NE(refusal(sum_of(4, 0)).find("empty part"), std::string::npos);
  DeviceJob blocks = sum_of(4, 100);
  blocks.blocks = 2;
  EXPECT_NE(refusal(blocks).find("several blocks"), std::string::npos);
  const std::uint64_t most = DeviceChannels::most_marked_bytes(4) / sizeof(float);
  EXPECT_EQ(refusal(sum_of(4, most)), "");
  EXPECT_NE(refusal(sum_of(4, most + 1)).find("do not fit"), std::string::npos);
  EXPECT_GE(DeviceChannels::most_marked_bytes(8), std::uint64_t{4096});
}

}  // namespace
}  // namespace seto::support
