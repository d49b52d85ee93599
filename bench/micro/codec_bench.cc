// Codecs alone, on one core. bytes_per_second counts the bytes of the numbers, so that a row compares with memcpy of them.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "src/codec/codec.h"

namespace {

using seto::Codec;
using seto::DataType;
using seto::Rounding;
using seto::Store;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<char, Free>;

// Adds an odd number of lines to a multiple of the page size, so that the buffers of a call do not use the same cache sets.
Buffer make_buffer(std::size_t size) {
  const std::size_t padded = (size + 4095) / 4096 * 4096 + 8192;
  Buffer buffer(static_cast<char*>(std::aligned_alloc(4096, padded)));
  std::memset(buffer.get(), 0, padded);
  return buffer;
}

enum class Work { encode, stochastic, decode, accumulate };

constexpr const char* kNames[] = {"encode", "encode_stochastic", "decode", "accumulate"};

struct Shape {
  Work work;
  Codec codec;
  DataType type;
  std::size_t size;  // bytes of the numbers
  Store store;
};

Buffer gradient(const Shape& shape) {
  Buffer numbers = make_buffer(shape.size);
  std::minstd_rand random(1);
  std::normal_distribution<float> normal(0, 1e-3F);
  float drawn[4096];
  for (float& value : drawn) value = normal(random);
  const std::size_t element = seto::size_of(shape.type);
  for (std::size_t i = 0; i < shape.size / element; ++i) {
    const float value = drawn[i % 4093];
    const double wide = value;
    if (element == 8) std::memcpy(numbers.get() + i * 8, &wide, 8);
    if (element == 4) std::memcpy(numbers.get() + i * 4, &value, 4);
    if (element == 2) std::memcpy(numbers.get() + i * 2, reinterpret_cast<const char*>(&value) + 2, 2);
  }
  return numbers;
}

void run(benchmark::State& state, const Shape& shape) {
  const std::size_t count = shape.size / seto::size_of(shape.type);
  const Buffer numbers = gradient(shape);
  const Buffer target = make_buffer(shape.size);
  const Buffer encoded = make_buffer(seto::encoded_size(shape.codec, count));
  const auto rounding = shape.work == Work::stochastic ? Rounding::stochastic : Rounding::nearest;
  const auto encode = seto::encode_function(shape.codec, shape.type, rounding);
  const auto decode = shape.work == Work::accumulate ? seto::accumulate_function(shape.codec, shape.type)
                                                     : seto::decode_function(shape.codec, shape.type);
  const seto::EncodeCall encoding{numbers.get(), encoded.get() + 64, count, shape.store, 1, 0};
  const seto::DecodeCall decoding{encoded.get() + 64, target.get(), target.get(), count, shape.store};
  encode(encoding);
  for (auto _ : state) {
    if (shape.work == Work::encode || shape.work == Work::stochastic) {
      encode(encoding);
    } else {
      decode(decoding);
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(shape.size) * state.iterations());
}

void copy(benchmark::State& state, std::size_t size) {
  const Buffer source = make_buffer(size);
  const Buffer target = make_buffer(size);
  for (auto _ : state) {
    std::memcpy(target.get() + 64, source.get(), size);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(size) * state.iterations());
}

constexpr std::size_t kInCache = std::size_t{256} << 10;
constexpr std::size_t kBeyondCache = std::size_t{64} << 20;

void add_codec(Codec codec, DataType type) {
  for (const std::size_t size : {kInCache, kBeyondCache}) {
    for (const Work work : {Work::encode, Work::stochastic, Work::decode, Work::accumulate}) {
      for (const Store store : {Store::cached, Store::past_cache}) {
        if (store == Store::past_cache && (size == kInCache || work == Work::accumulate)) continue;
        const std::string name = std::string(kNames[static_cast<int>(work)]) + "/" + std::string(seto::facts_of(codec).name) +
                                 "/" + std::string(seto::name_of(type)) + (size == kInCache ? "/256KiB" : "/64MiB") +
                                 (store == Store::past_cache ? "/past_cache" : "/cached");
        const Shape shape{work, codec, type, size, store};
        benchmark::RegisterBenchmark(name.c_str(), [shape](benchmark::State& state) { run(state, shape); });
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const std::size_t size : {kInCache, kBeyondCache}) {
    const char* name = size == kInCache ? "memcpy/256KiB" : "memcpy/64MiB";
    benchmark::RegisterBenchmark(name, [size](benchmark::State& state) { copy(state, size); });
  }
  for (const DataType type : {DataType::float32, DataType::float64, DataType::bfloat16}) {
    for (int codec = 0; codec < seto::kCodecCount; ++codec) {
      if (seto::encodes(static_cast<Codec>(codec), type)) add_codec(static_cast<Codec>(codec), type);
    }
  }
  benchmark::AddCustomContext("instruction set", seto::instruction_set());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
