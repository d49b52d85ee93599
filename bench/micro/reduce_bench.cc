// Reduce and copy kernels alone. bytes_per_second counts one source's bytes, so that a row compares directly with a message size
// over its time.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "src/device/reduce.h"

namespace {

using seto::DataType;
using seto::ReduceOp;
using seto::ReduceTarget;
using seto::Store;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<char, Free>;

// Adds one page to a multiple of the page size, so that the buffers of a call do not use the same cache sets.
Buffer make_buffer(std::size_t size, std::size_t index) {
  const std::size_t padded = (size + 4095) / 4096 * 4096 + index * 4096 + 4096;
  Buffer buffer(static_cast<char*>(std::aligned_alloc(4096, padded)));
  std::memset(buffer.get(), 0, padded);
  return buffer;
}

struct Shape {
  DataType type;
  ReduceOp op;
  std::uint32_t sources;
  std::uint32_t targets;
  Store store;
  std::size_t size;
  std::uint64_t scaled;
};

void reduce_shape(benchmark::State& state, const Shape& shape) {
  std::vector<Buffer> buffers;
  std::vector<const void*> sources;
  std::vector<ReduceTarget> targets;
  for (std::uint32_t k = 0; k < shape.sources; ++k) {
    buffers.push_back(make_buffer(shape.size, buffers.size()));
    sources.push_back(buffers.back().get());
  }
  for (std::uint32_t k = 0; k < shape.targets; ++k) {
    buffers.push_back(make_buffer(shape.size, buffers.size()));
    targets.push_back({buffers.back().get(), shape.store});
  }
  const float scalar = 0.5f;
  const seto::ReduceCall call{sources.data(),
                              shape.sources,
                              targets.data(),
                              shape.targets,
                              shape.size / seto::size_of(shape.type),
                              shape.scaled,
                              &scalar,
                              1};
  const auto function = seto::reduce_function(shape.type, shape.op);
  for (auto _ : state) {
    function(call);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(shape.size) * state.iterations());
}

void copy_shape(benchmark::State& state, std::size_t size, std::uint32_t target_count, Store store) {
  const Buffer source = make_buffer(size, 0);
  std::vector<Buffer> buffers;
  std::vector<ReduceTarget> targets;
  for (std::uint32_t k = 0; k < target_count; ++k) {
    buffers.push_back(make_buffer(size, k + 1));
    targets.push_back({buffers.back().get(), store});
  }
  for (auto _ : state) {
    seto::copy_bytes(source.get(), targets.data(), target_count, size);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(size) * state.iterations());
}

void memcpy_shape(benchmark::State& state, std::size_t size) {
  const Buffer source = make_buffer(size, 0);
  const Buffer target = make_buffer(size, 1);
  for (auto _ : state) {
    std::memcpy(target.get(), source.get(), size);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(size) * state.iterations());
}

std::string name_of_size(std::size_t size) {
  if (size >= (1u << 20)) return std::to_string(size >> 20) + "MiB";
  if (size >= (1u << 10)) return std::to_string(size >> 10) + "KiB";
  return std::to_string(size) + "B";
}

const char* name_of_store(Store store) { return store == Store::cached ? "cached" : "past_cache"; }

void add_reduce(const Shape& shape) {
  std::ostringstream text;
  text << name_of(shape.op) << '/' << name_of(shape.type) << '/' << shape.sources << "_to_" << shape.targets
       << (shape.scaled != 0 ? "_scaled" : "") << '/' << name_of_store(shape.store) << '/' << name_of_size(shape.size);
  const std::string name = text.str();
  benchmark::RegisterBenchmark(name.c_str(), [shape](benchmark::State& state) { reduce_shape(state, shape); });
}

constexpr std::size_t kInCache = std::size_t{256} << 10;
constexpr std::size_t kBeyondCache = std::size_t{64} << 20;

void add_all() {
  for (const std::size_t size : {std::size_t{8}, std::size_t{256}, std::size_t{4} << 10, kInCache, kBeyondCache}) {
    for (const std::uint32_t sources : {1u, 2u, 3u, 4u, 8u}) {
      for (const std::uint32_t targets : {1u, 2u, 3u}) {
        for (const Store store : {Store::cached, Store::past_cache}) {
          add_reduce({DataType::float32, ReduceOp::sum, sources, targets, store, size, 0});
        }
      }
    }
    add_reduce({DataType::float32, ReduceOp::sum, 2, 1, Store::cached, size, 3});
  }
  for (int type = 0; type < seto::kDataTypeCount; ++type) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min}) {
      if (type == static_cast<int>(DataType::float32) && op == ReduceOp::sum) continue;
      for (const Store store : {Store::cached, Store::past_cache}) {
        add_reduce({static_cast<DataType>(type), op, 2, 1, store, kInCache, 0});
      }
    }
  }
  for (const std::size_t size : {std::size_t{8}, std::size_t{256}, std::size_t{4} << 10, kInCache, kBeyondCache}) {
    const std::string tail = name_of_size(size);
    benchmark::RegisterBenchmark(std::string("memcpy/").append(tail).c_str(),
                                 [size](benchmark::State& state) { memcpy_shape(state, size); });
    for (const std::uint32_t targets : {1u, 2u}) {
      for (const Store store : {Store::cached, Store::past_cache}) {
        std::ostringstream text;
        text << "copy/1_to_" << targets << '/' << name_of_store(store) << '/' << tail;
        const std::string name = text.str();
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { copy_shape(state, size, targets, store); });
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  add_all();
  benchmark::AddCustomContext("instruction set", seto::instruction_set());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
