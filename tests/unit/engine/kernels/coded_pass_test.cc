#include "src/engine/kernels/coded_pass.h"

#include <array>
#include <optional>

#include "src/codec/codec.h"
#include "src/engine/coding.h"
#include "tests/support/seed.h"
#include "tests/unit/engine/kernels/operands.h"

namespace seto {
namespace {

constexpr std::array<DataType, 3> kTypes = {DataType::float32, DataType::float64, DataType::bfloat16};

void coded_pass(DataType type, Codec codec, const kernels::Pass& pass) {
  if (type == DataType::float32) return kernels::coded_pass<kernels::Number<DataType::float32>>(codec, pass);
  if (type == DataType::float64) return kernels::coded_pass<kernels::Number<DataType::float64>>(codec, pass);
  kernels::coded_pass<kernels::Number<DataType::bfloat16>>(codec, pass);
}

// The numbers of a pass, by what kernels do with them.
enum class Values : std::uint8_t { ordinary, zeros, tiny, huge, special, any };
constexpr std::array kAllValues = {Values::ordinary, Values::zeros, Values::tiny, Values::huge, Values::special, Values::any};

// The bits of a number whose exponent is `exponent` + its bias.
std::uint64_t with_exponent(DataType type, std::uint64_t exponent, Random& random) {
  const std::size_t width = 8 * size_of(type);
  const std::size_t fraction_bits = type == DataType::float64 ? 52 : type == DataType::float32 ? 23 : 7;
  const std::uint64_t bits = random();
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << fraction_bits) - 1);
  return (bits >> 63) << (width - 1) | exponent << fraction_bits | fraction;
}

std::uint64_t value_of(DataType type, Values values, Random& random) {
  const std::uint64_t bias = type == DataType::float64 ? 1023 : 127;
  switch (values) {
    case Values::ordinary:
      return with_exponent(type, bias - below(random, 24), random);
    case Values::zeros:
      return (random() & 1) << (8 * size_of(type) - 1);
    case Values::tiny:
      return with_exponent(type, below(random, 30), random);
    case Values::huge:
      return with_exponent(type, 2 * bias - below(random, 40), random);
    case Values::special:
      return one_in(random, 100) ? random_number(type, random) : with_exponent(type, bias + below(random, 9), random);
    default:
      return random_number(type, random);
  }
}

// A pass with encoded operands, and the piece of src/engine that does the same.
struct Shape {
  DataType type = DataType::float32;
  Codec codec = Codec::e4m3;
  Values values = Values::ordinary;
  std::uint32_t sources = 1;
  std::uint32_t targets = 1;
  std::size_t count = 0;
  std::uint64_t coded_sources = 0;
  std::uint64_t coded_targets = 0;
  std::uint64_t scaled = 0;
  bool moves = false;
  bool rounds = false;
  bool compensates = false;
  bool any_bytes = false;  // encoded sources are not the output of an encoder
  std::optional<std::uint32_t> in_place;

  [[nodiscard]] std::string text() const {
    return std::string(name_of(type)) + " " + std::string(facts_of(codec).name) + ", values " +
           std::to_string(static_cast<int>(values)) + ", " + std::to_string(sources) + " -> " + std::to_string(targets) + ", " +
           std::to_string(count) + " elements, coded " + std::to_string(coded_sources) + " -> " + std::to_string(coded_targets) +
           ", scaled " + std::to_string(scaled) + (moves ? ", moves" : "") + (rounds ? ", rounds" : "") +
           (compensates ? ", compensates" : "") + (any_bytes ? ", any bytes" : "") +
           (in_place ? ", in place " + std::to_string(*in_place) : "");
  }
};

class CodedPass : public ::testing::Test {
 protected:
  // An encoded source: of numbers, or any bytes below headers whose exponents are at the limits of the decoder.
  void put_encoded(const Shape& shape, std::byte* at) {
    const std::size_t size = encoded_size(shape.codec, shape.count);
    if (size == 0) return;
    if (shape.any_bytes) {
      for (std::size_t i = 0; i < size; ++i) at[i] = static_cast<std::byte>(random_());
      const CodecFacts& facts = facts_of(shape.codec);
      const std::size_t block = facts.header_size + std::size_t{facts.block} * facts.bits / 8;
      constexpr std::array<int, 9> kExponents = {-2000, -960, -230, -100, 100, 230, 960, 2000, kNotFinite};
      for (std::size_t begin = 0; facts.header_size != 0 && begin < size; begin += block) {
        if (one_in(random_, 4)) continue;
        const int chosen = kExponents[below(random_, kExponents.size())];
        const int distance = chosen == kNotFinite ? 0 : static_cast<int>(below(random_, 41)) - 20;
        const auto exponent = static_cast<std::int16_t>(chosen + distance);
        std::memcpy(at + begin, &exponent, sizeof exponent);
      }
      return;
    }
    std::vector<std::uint64_t> numbers(shape.count);
    put_numbers(shape, reinterpret_cast<std::byte*>(numbers.data()));
    std::vector<std::byte> encoded(size);
    encode_function(shape.codec, shape.type,
                    Rounding::nearest)({numbers.data(), encoded.data(), shape.count, Store::cached, 0, 0});
    std::memcpy(at, encoded.data(), size);
  }

  void put_numbers(const Shape& shape, std::byte* at) {
    const std::size_t size = size_of(shape.type);
    for (std::size_t i = 0; i < shape.count; ++i) put_number(at + i * size, value_of(shape.type, shape.values, random_), size);
  }

  // Fails unless pass and reference leave the same bytes.
  void compare(const Shape& shape) {
    const DataType wide = residual_type(shape.type);
    const std::uint32_t operands = shape.sources + shape.targets;
    Operands ours(operands + 1, (shape.count + 16) * sizeof(double), random_);
    Operands theirs(operands + 1, (shape.count + 16) * sizeof(double), random_);
    std::vector<const std::byte*> sources;
    std::vector<std::byte*> targets;
    std::vector<const void*> from;
    std::vector<ReduceTarget> to;
    for (std::uint32_t k = 0; k < operands; ++k) {
      const bool is_source = k < shape.sources;
      const std::uint32_t index = is_source ? k : k - shape.sources;
      const bool is_coded = ((is_source ? shape.coded_sources : shape.coded_targets) >> index & 1) != 0;
      const std::size_t offset = is_coded ? below(random_, 16) : below(random_, 16 / size_of(shape.type)) * size_of(shape.type);
      std::byte* mine = ours.at(k, offset);
      std::byte* reference = theirs.at(k, offset);
      if (is_source) {
        is_coded ? put_encoded(shape, mine) : put_numbers(shape, mine);
        sources.push_back(mine);
        from.push_back(reference);
      } else {
        if (index == 0 && shape.in_place) {
          mine = const_cast<std::byte*>(sources[*shape.in_place]);
          reference = static_cast<std::byte*>(const_cast<void*>(from[*shape.in_place]));
        }
        targets.push_back(mine);
        to.push_back({reference, Store::cached});
      }
    }
    std::byte* const residual = ours.at(operands, 0);
    for (std::size_t i = 0; i < shape.count; ++i)
      put_number(residual + i * size_of(wide),
                 one_in(random_, 20) ? random_number(wide, random_) : value_of(wide, shape.values, random_), size_of(wide));
    theirs.copy_from(ours);
    alignas(8) std::byte scalar[8];
    put_number(scalar, random_number(wide, random_), sizeof scalar);

    kernels::Pass pass;
    pass.sources = sources.data();
    pass.targets = targets.data();
    pass.source_count = shape.sources;
    pass.target_count = shape.targets;
    pass.count = shape.count;
    pass.scaled = shape.scaled;
    pass.scalar = scalar;
    pass.coded_sources = shape.coded_sources;
    pass.coded_targets = shape.coded_targets;
    pass.residual = shape.compensates ? residual : nullptr;
    pass.moves = shape.moves;
    pass.rounds = shape.rounds;
    coded_pass(shape.type, shape.codec, pass);

    std::unique_ptr<Coding>& coding = codings_[static_cast<std::size_t>(shape.type)][static_cast<std::size_t>(shape.codec)];
    if (coding == nullptr)
      coding = Coding::create({plan_number(shape.codec), shape.type, ReduceOp::sum, kMaxReduceSources}).value();
    Coding::Piece piece;
    piece.plain = {from.data(), shape.sources, to.data(), shape.targets, shape.count, shape.scaled, scalar, 1};
    piece.coded_sources = shape.coded_sources;
    piece.coded_targets = shape.coded_targets;
    piece.moves = shape.moves;
    piece.rounds = shape.rounds;
    piece.residual = shape.compensates ? theirs.at(operands, 0) : nullptr;
    coding->perform(piece);
    ASSERT_TRUE(ours.equals(theirs)) << shape.text();
  }

  Shape random_shape(Codec codec, DataType type, Values values) {
    Shape shape;
    shape.type = type;
    shape.codec = codec;
    shape.values = values;
    constexpr std::array<std::size_t, 8> kCounts = {1, 63, 64, 65, 255, 256, 257, 512};
    shape.count = one_in(random_, 2) ? below(random_, 700) : kCounts[below(random_, kCounts.size())];
    shape.sources = static_cast<std::uint32_t>(one_in(random_, 50) ? 64 : one_in(random_, 3) ? 1 : 1 + below(random_, 5));
    shape.targets = static_cast<std::uint32_t>(1 + below(random_, 3));
    shape.coded_sources = random_() & ((std::uint64_t{2} << (shape.sources - 1)) - 1);
    shape.coded_targets = random_() & ((std::uint64_t{2} << (shape.targets - 1)) - 1);
    shape.moves = shape.sources == 1 && one_in(random_, 2);
    shape.rounds = one_in(random_, 3);
    if (!shape.moves && one_in(random_, 4)) shape.scaled = random_();
    shape.compensates = one_in(random_, 3);
    shape.any_bytes = one_in(random_, 3);
    if (one_in(random_, 4)) {
      const auto source = static_cast<std::uint32_t>(below(random_, shape.sources));
      if ((shape.coded_sources >> source & 1) == (shape.coded_targets & 1)) shape.in_place = source;
    }
    return shape;
  }

  Random random_{seto::testing::chosen_seed()};
  std::array<std::array<std::unique_ptr<Coding>, kCodecCount>, kDataTypeCount> codings_;
};

TEST_F(CodedPass, GivesTheBitsOfTheHost) {
  for (int codec = 0; codec < kCodecCount; ++codec)
    for (const DataType type : kTypes) {
      if (!encodes(static_cast<Codec>(codec), type)) continue;
      for (const Values values : kAllValues)
        for (int again = 0; again < 40; ++again)
          ASSERT_NO_FATAL_FAILURE(compare(random_shape(static_cast<Codec>(codec), type, values)));
    }
}

// Every exponent of the largest number, alone and with smaller ones: blocks on both sides of each limit.
TEST_F(CodedPass, TakesEveryMagnitude) {
  for (int codec = 0; codec < kCodecCount; ++codec)
    for (const DataType type : kTypes) {
      if (!encodes(static_cast<Codec>(codec), type)) continue;
      const CodecFacts& facts = facts_of(static_cast<Codec>(codec));
      const std::uint64_t exponents = type == DataType::float64 ? 2047 : 255;
      const std::size_t size = size_of(type);
      const std::size_t count = exponents * facts.block;
      std::vector<std::byte> numbers(count * size), mine(count * size), reference(count * size);
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t exponent = i / facts.block;
        const std::uint64_t lower = i % facts.block == 0 || one_in(random_, 3)
                                        ? exponent
                                        : exponent - std::min<std::uint64_t>(exponent, below(random_, 40));
        put_number(&numbers[i * size], with_exponent(type, lower, random_), size);
      }
      const std::byte* source = numbers.data();
      const std::size_t encoded_bytes = encoded_size(static_cast<Codec>(codec), count);
      std::vector<std::byte> coded(encoded_bytes), expected(encoded_bytes);
      const std::array<std::byte*, 2> targets = {coded.data(), mine.data()};
      kernels::Pass pass;
      pass.sources = &source;
      pass.targets = targets.data();
      pass.target_count = 2;
      pass.coded_targets = 1;
      pass.count = count;
      pass.moves = pass.rounds = true;
      coded_pass(type, static_cast<Codec>(codec), pass);
      encode_function(static_cast<Codec>(codec), type,
                      Rounding::nearest)({numbers.data(), expected.data(), count, Store::cached, 0, 0});
      decode_function(static_cast<Codec>(codec), type)({expected.data(), nullptr, reference.data(), count, Store::cached});
      ASSERT_EQ(coded, expected) << facts.name << " " << name_of(type);
      ASSERT_EQ(mine, reference) << facts.name << " " << name_of(type);
    }
}

}  // namespace
}  // namespace seto
