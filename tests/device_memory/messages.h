#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/device_memory/device_ranks.h"

// Messages whose contents say which rank sent them.
namespace seto::testing {

template <class T>
std::vector<T> numbers(int rank, std::size_t count, int number = 0) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>((i * 7 + static_cast<std::size_t>(rank) * 31 + static_cast<std::size_t>(number) * 5) % 113);
  return values;
}

// Rank 0 sends, rank 1 receives.
template <class T>
void send_to_1(DeviceRank& mine, std::size_t count, setoDataType_t type) {
  SCOPED_TRACE(std::to_string(count) + " of type " + std::to_string(static_cast<int>(type)));
  if (mine.rank == 0) {
    T* const memory = mine.upload(numbers<T>(0, count));
    ASSERT_TRUE(succeeded(setoSend(memory, count, type, 1, mine.comm, mine.stream())));
    mine.synchronize();
  } else if (mine.rank == 1) {
    T* const memory = mine.upload(numbers<T>(9, count));
    ASSERT_TRUE(succeeded(setoRecv(memory, count, type, 0, mine.comm, mine.stream())));
    EXPECT_EQ(mine.read(memory, count), numbers<T>(0, count));
  }
}

// Every rank sends to the next one and receives from the one before, in one group.
inline void ring(DeviceRank& mine, int ranks, std::size_t count) {
  const int after = (mine.rank + 1) % ranks, before = (mine.rank + ranks - 1) % ranks;
  auto* const out = mine.upload(numbers<std::int32_t>(mine.rank, count));
  auto* const in = mine.upload(std::vector<std::int32_t>(count, -1));
  ASSERT_TRUE(succeeded(setoGroupStart()));
  ASSERT_TRUE(succeeded(setoSend(out, count, setoInt32, after, mine.comm, mine.stream())));
  ASSERT_TRUE(succeeded(setoRecv(in, count, setoInt32, before, mine.comm, mine.stream())));
  ASSERT_TRUE(succeeded(setoGroupEnd()));
  EXPECT_EQ(mine.read(in, count), numbers<std::int32_t>(before, count));
}

}  // namespace seto::testing
