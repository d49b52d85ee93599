#include "src/engine/kernels/plain_pass.h"

#include <array>

#include "tests/support/seed.h"
#include "tests/unit/engine/kernels/operands.h"

namespace seto {
namespace {

using ReducePass = void (*)(ReduceOp, const kernels::Pass&);

template <DataType kType>
void reduce_as(ReduceOp op, const kernels::Pass& pass) {
  kernels::reduce_pass<kernels::Number<kType>>(op, pass);
}

constexpr std::array<ReducePass, kDataTypeCount> kReduce = {
    reduce_as<DataType::int8>,    reduce_as<DataType::uint8>,    reduce_as<DataType::int32>,      reduce_as<DataType::uint32>,
    reduce_as<DataType::int64>,   reduce_as<DataType::uint64>,   reduce_as<DataType::float16>,    reduce_as<DataType::float32>,
    reduce_as<DataType::float64>, reduce_as<DataType::bfloat16>, reduce_as<DataType::float8e4m3>, reduce_as<DataType::float8e5m2>,
};

// A pass, and the call of src/device that does the same.
struct Shape {
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint32_t sources = 1;
  std::uint32_t targets = 1;
  std::size_t count = 0;
  std::uint64_t scaled = 0;
  std::uint32_t divisor = 1;
  std::vector<std::size_t> offsets;                // of sources and targets, in elements
  std::uint32_t in_place = kMaxReduceSources + 1;  // the first target is this source

  [[nodiscard]] std::string text() const {
    return std::string(name_of(type)) + " " + std::string(name_of(op)) + ", " + std::to_string(sources) + " -> " +
           std::to_string(targets) + ", " + std::to_string(count) + " elements, scaled " + std::to_string(scaled) + ", divisor " +
           std::to_string(divisor) + ", in place " + std::to_string(in_place);
  }
};

struct Addresses {
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> targets;

  Addresses(const Shape& shape, Operands& operands) {
    const std::size_t size = size_of(shape.type);
    for (std::uint32_t k = 0; k < shape.sources; ++k) sources.push_back(operands.at(k, shape.offsets[k] * size));
    for (std::uint32_t k = 0; k < shape.targets; ++k) {
      const std::uint32_t operand = k == 0 && shape.in_place < shape.sources ? shape.in_place : shape.sources + k;
      targets.push_back(operands.at(operand, shape.offsets[operand] * size));
    }
  }
};

class PlainPass : public ::testing::Test {
 protected:
  // Fails unless pass and reference leave the same bytes.
  void compare(const Shape& shape) {
    const std::size_t size = size_of(shape.type);
    Operands ours(shape.sources + shape.targets, (shape.count + 16) * size, random_);
    Operands theirs(shape.sources + shape.targets, (shape.count + 16) * size, random_);
    const Addresses mine(shape, ours);
    const Addresses reference(shape, theirs);
    for (std::uint32_t k = 0; k < shape.sources; ++k)
      for (std::size_t i = 0; i < shape.count; ++i)
        put_number(const_cast<std::byte*>(mine.sources[k]) + i * size, random_number(shape.type, random_), size);
    theirs.copy_from(ours);
    alignas(8) std::byte scalar[8];
    const bool is_narrow = !is_integer(shape.type) && !accumulates_in_itself(shape.type);
    put_number(scalar, random_number(is_narrow ? DataType::float32 : shape.type, random_), sizeof scalar);

    kernels::Pass pass;
    pass.sources = mine.sources.data();
    pass.targets = mine.targets.data();
    pass.source_count = shape.sources;
    pass.target_count = shape.targets;
    pass.count = shape.count;
    pass.scaled = shape.scaled;
    pass.scalar = scalar;
    pass.divisor = shape.divisor;
    kReduce[static_cast<std::size_t>(shape.type)](shape.op, pass);

    std::vector<const void*> sources(reference.sources.begin(), reference.sources.end());
    std::vector<ReduceTarget> targets;
    for (std::byte* const target : reference.targets) targets.push_back({target, Store::cached});
    reduce_function(shape.type, shape.op)(
        {sources.data(), shape.sources, targets.data(), shape.targets, shape.count, shape.scaled, scalar, shape.divisor});
    ASSERT_TRUE(ours.equals(theirs)) << shape.text();
  }

  Shape random_shape(DataType type, ReduceOp op, std::size_t count) {
    Shape shape;
    shape.type = type;
    shape.op = op;
    shape.count = count;
    shape.sources = static_cast<std::uint32_t>(one_in(random_, 50) ? 64 : 1 + below(random_, 5));
    shape.targets = static_cast<std::uint32_t>(1 + below(random_, 3));
    if (one_in(random_, 4)) shape.scaled = random_();
    if (one_in(random_, 4) && is_integer(type) && !is_bitwise(op))
      shape.divisor =
          one_in(random_, 2) ? static_cast<std::uint32_t>(random_()) | 1 : static_cast<std::uint32_t>(1 + below(random_, 9));
    const std::size_t aligned = 16 / size_of(type);
    const std::size_t common = below(random_, aligned);
    const bool differ = one_in(random_, 3);
    for (std::uint32_t k = 0; k < shape.sources + shape.targets; ++k)
      shape.offsets.push_back(differ ? below(random_, aligned) : common);
    if (one_in(random_, 3)) shape.in_place = static_cast<std::uint32_t>(below(random_, shape.sources));
    return shape;
  }

  Random random_{seto::testing::chosen_seed()};
};

std::vector<ReduceOp> operations_of(DataType type) {
  std::vector<ReduceOp> ops;
  for (int op = 0; op < kReduceOpCount; ++op)
    if (is_integer(type) || !is_bitwise(static_cast<ReduceOp>(op))) ops.push_back(static_cast<ReduceOp>(op));
  return ops;
}

TEST_F(PlainPass, GivesTheBitsOfTheHost) {
  for (int type = 0; type < kDataTypeCount; ++type)
    for (const ReduceOp op : operations_of(static_cast<DataType>(type))) {
      for (std::size_t count = 0; count <= 70; ++count)
        for (int again = 0; again < 3; ++again)
          ASSERT_NO_FATAL_FAILURE(compare(random_shape(static_cast<DataType>(type), op, count)));
      for (int again = 0; again < 6; ++again)
        ASSERT_NO_FATAL_FAILURE(compare(random_shape(static_cast<DataType>(type), op, 500 + below(random_, 4000))));
    }
}

// Every number of operands that has code of its own, for every alignment.
TEST_F(PlainPass, TakesEveryAlignment) {
  for (int type = 0; type < kDataTypeCount; ++type) {
    Shape shape;
    shape.type = static_cast<DataType>(type);
    shape.count = 100;
    for (shape.sources = 1; shape.sources <= 5; ++shape.sources)
      for (shape.targets = 1; shape.targets <= 3; ++shape.targets)
        for (std::size_t offset = 0; offset < 16 / size_of(shape.type); ++offset) {
          shape.offsets.assign(shape.sources + shape.targets, offset);
          ASSERT_NO_FATAL_FAILURE(compare(shape));
          shape.offsets.back() = 0;  // the others differ from it
          ASSERT_NO_FATAL_FAILURE(compare(shape));
        }
  }
}

// All codes of the narrow floats: folded with zeros, ones, themselves and others, and scaled.
TEST_F(PlainPass, TakesEveryCode) {
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float8e4m3, DataType::float8e5m2}) {
    const std::size_t size = size_of(type);
    constexpr std::size_t kCount = 65536;
    std::vector<std::uint16_t> codes(kCount), others(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      codes[i] = static_cast<std::uint16_t>(i);  // of 8 bits: all pairs
      others[i] = static_cast<std::uint16_t>(random_());
    }
    std::vector<std::uint16_t> mine(kCount), reference(kCount);
    const std::size_t count = kCount * 2 / size;
    const float scalar = 0.7F;
    for (const ReduceOp op : operations_of(type))
      for (std::uint64_t scaled = 0; scaled < 4; ++scaled) {
        std::array<const std::byte*, 2> sources = {reinterpret_cast<const std::byte*>(codes.data()),
                                                   reinterpret_cast<const std::byte*>(others.data())};
        std::array<std::byte*, 1> targets = {reinterpret_cast<std::byte*>(mine.data())};
        kernels::Pass pass;
        pass.sources = sources.data();
        pass.targets = targets.data();
        pass.source_count = scaled == 1 ? 1 : 2;
        pass.count = count;
        pass.scaled = scaled;
        pass.scalar = &scalar;
        kReduce[static_cast<std::size_t>(type)](op, pass);
        const std::array<const void*, 2> from = {codes.data(), others.data()};
        const ReduceTarget to{reference.data(), Store::cached};
        reduce_function(type, op)({from.data(), pass.source_count, &to, 1, count, scaled, &scalar, 1});
        ASSERT_EQ(mine, reference) << name_of(type) << " " << name_of(op) << ", scaled " << scaled;
      }
  }
}

TEST_F(PlainPass, MovesAnyBytes) {
  for (const std::size_t size : {1U, 2U, 4U, 8U})
    for (std::uint32_t targets = 1; targets <= 3; ++targets)
      for (std::size_t from = 0; from < 16; from += size)
        for (std::size_t to = 0; to < 16; to += size) {
          const bool in_place = from == to && one_in(random_, 2);
          const std::size_t count = one_in(random_, 8) ? 300 + below(random_, 3000) : below(random_, 71);
          Operands ours(1 + targets, (count + 16) * size, random_);
          Operands theirs(1 + targets, (count + 16) * size, random_);
          theirs.copy_from(ours);
          const std::byte* const source = ours.at(0, from);
          std::vector<std::byte*> places;
          std::vector<ReduceTarget> expected;
          for (std::uint32_t k = 0; k < targets; ++k) {
            const std::size_t operand = k == 0 && in_place ? 0 : k + 1;
            places.push_back(ours.at(operand, to));
            expected.push_back({theirs.at(operand, to), Store::cached});
          }
          kernels::Pass pass;
          pass.sources = &source;
          pass.targets = places.data();
          pass.target_count = targets;
          pass.count = count;
          pass.moves = true;
          kernels::move_pass(pass, static_cast<std::uint32_t>(size));
          copy_bytes(theirs.at(0, from), expected.data(), targets, count * size);
          ASSERT_TRUE(ours.equals(theirs)) << size << " " << targets << " " << from << " " << to << " " << count;
        }
}

}  // namespace
}  // namespace seto
