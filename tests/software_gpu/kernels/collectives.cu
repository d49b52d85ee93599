// Small collectives for tests of the software GPU: the protocols that a library of collectives uses, in their shortest form.
#include <cuda_bf16.h>

#include <cstdint>

constexpr int kRanks = 4;

struct World {
  void* input[kRanks];
  void* output[kRanks];
  uint32_t* flags[kRanks];  // of each rank: one from each rank and block
  int count;
  int rank;
  uint32_t epoch;
};

__device__ inline void put_flag(uint32_t* flag, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

__device__ inline uint32_t get_flag(const uint32_t* flag) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

// All threads of the block of this number on all ranks meet. Flags only grow, so they are never cleared.
__device__ void meet(const World& world, uint32_t value) {
  __syncthreads();
  if (threadIdx.x < kRanks) {
    put_flag(world.flags[threadIdx.x] + blockIdx.x * kRanks + world.rank, value);
    while (get_flag(world.flags[world.rank] + blockIdx.x * kRanks + threadIdx.x) < value) {
    }
  }
  __syncthreads();
}

// The block reduces a part of its rank's chunk, and after the exchange it copies the parts of the blocks of its number.
template <class T, class Add>
__device__ void two_shot(const World& world, Add add) {
  const int chunk = world.count / kRanks;
  const int first = blockIdx.x * blockDim.x + threadIdx.x;
  const int step = gridDim.x * blockDim.x;
  meet(world, 2 * world.epoch);
  for (int i = first; i < chunk; i += step) {
    const int at = world.rank * chunk + i;
    T sum = static_cast<const T*>(world.input[0])[at];
    for (int rank = 1; rank < kRanks; ++rank) {
      sum = add(sum, static_cast<const T*>(world.input[rank])[at]);
    }
    static_cast<T*>(world.output[world.rank])[at] = sum;
  }
  meet(world, 2 * world.epoch + 1);
  for (int other = 0; other < kRanks; ++other) {
    for (int i = first; other != world.rank && i < chunk; i += step) {
      const int at = other * chunk + i;
      static_cast<T*>(world.output[world.rank])[at] = static_cast<const T*>(world.output[other])[at];
    }
  }
}

extern "C" __global__ void two_shot_float(World world) {
  two_shot<float>(world, [](float a, float b) { return a + b; });
}

extern "C" __global__ void two_shot_bf16(World world) {
  two_shot<__nv_bfloat162>(world, [](__nv_bfloat162 a, __nv_bfloat162 b) { return __hadd2(a, b); });
}

__device__ inline void put_credit(uint64_t* flag, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}

__device__ inline uint64_t get_credit(const uint64_t* flag) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(flag) : "memory");
  return value;
}

// Each block passes its elements to the next rank through one slot there, again and again. A flag of 4 bytes says that the slot is
// full; a credit of 8 bytes, which the receiver returns, says that it is free.
extern "C" __global__ void through_slots(World world) {
  const int next = (world.rank + 1) % kRanks;
  const int previous = (world.rank + kRanks - 1) % kRanks;
  const int step = gridDim.x * blockDim.x;
  const int first = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t rounds = world.count / step;
  uint32_t* const full = world.flags[world.rank] + 32 * blockIdx.x;
  uint32_t* const full_there = world.flags[next] + 32 * blockIdx.x;
  uint64_t* const credit = reinterpret_cast<uint64_t*>(full + 2);
  uint64_t* const credit_there = reinterpret_cast<uint64_t*>(world.flags[previous] + 32 * blockIdx.x + 2);
  uint32_t* const slot = world.flags[world.rank] + 32 * gridDim.x + blockIdx.x * blockDim.x;
  uint32_t* const slot_there = world.flags[next] + 32 * gridDim.x + blockIdx.x * blockDim.x;
  for (uint32_t round = 0; round < rounds; ++round) {
    const int i = round * step + first;
    const uint32_t number = (world.epoch - 1) * rounds + round + 1;
    if (threadIdx.x == 0) {
      while (get_credit(credit) + 1 < number) {
      }
    }
    __syncthreads();
    slot_there[threadIdx.x] = static_cast<const uint32_t*>(world.input[world.rank])[i];
    __syncthreads();
    if (threadIdx.x == 0) {
      put_flag(full_there, number);
      while (get_flag(full) < number) {
      }
    }
    __syncthreads();
    static_cast<uint32_t*>(world.output[world.rank])[i] = slot[threadIdx.x ^ 32];
    __syncthreads();
    if (threadIdx.x == 0) {
      put_credit(credit_there, number);
    }
  }
}

// Each word of 8 bytes carries its own flag, so that the data needs no release. `lines` of a rank has a row for each source rank.
extern "C" __global__ void flag_in_word_8(World world) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t own = static_cast<const uint32_t*>(world.input[world.rank])[i];
  for (int rank = 0; rank < kRanks; ++rank) {
    uint64_t* line = reinterpret_cast<uint64_t*>(world.flags[rank]) + world.rank * world.count + i;
    const uint64_t word = own | (static_cast<uint64_t>(world.epoch) << 32);
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(line), "l"(word) : "memory");
  }
  uint32_t sum = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    const uint64_t* line = reinterpret_cast<uint64_t*>(world.flags[world.rank]) + rank * world.count + i;
    uint64_t word;
    do {
      asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(line) : "memory");
    } while (static_cast<uint32_t>(word >> 32) != world.epoch);
    sum += static_cast<uint32_t>(word);
  }
  static_cast<uint32_t*>(world.output[world.rank])[i] = sum;
}

// The same with 12 bytes of data and a flag in one access of 16 bytes.
extern "C" __global__ void flag_in_word_16(World world) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t* own = static_cast<const uint32_t*>(world.input[world.rank]) + 3 * i;
  const uint64_t low = own[0] | (static_cast<uint64_t>(own[1]) << 32);
  const uint64_t high = own[2] | (static_cast<uint64_t>(world.epoch) << 32);
  for (int rank = 0; rank < kRanks; ++rank) {
    char* line = reinterpret_cast<char*>(world.flags[rank]) + 16 * (world.rank * (world.count / 3) + i);
    asm volatile("{ .reg .b128 word; mov.b128 word, {%1, %2}; st.relaxed.sys.global.b128 [%0], word; }" ::"l"(line), "l"(low),
                 "l"(high)
                 : "memory");
  }
  uint32_t sums[3] = {0, 0, 0};
  for (int rank = 0; rank < kRanks; ++rank) {
    const char* line = reinterpret_cast<char*>(world.flags[world.rank]) + 16 * (rank * (world.count / 3) + i);
    uint64_t first, second;
    do {
      asm volatile("{ .reg .b128 word; ld.relaxed.sys.global.b128 word, [%2]; mov.b128 {%0, %1}, word; }"
                   : "=l"(first), "=l"(second)
                   : "l"(line)
                   : "memory");
    } while (static_cast<uint32_t>(second >> 32) != world.epoch);
    sums[0] += static_cast<uint32_t>(first);
    sums[1] += static_cast<uint32_t>(first >> 32);
    sums[2] += static_cast<uint32_t>(second);
  }
  for (int k = 0; k < 3; ++k) {
    static_cast<uint32_t*>(world.output[world.rank])[3 * i + k] = sums[k];
  }
}
