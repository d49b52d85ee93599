#include "src/core/call/error_feedback.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "src/core/call/collective_call.h"
#include "src/engine/coding.h"
#include "src/plan/chunk_map.h"

namespace seto {
namespace {

static_assert(std::endian::native == std::endian::little, "a saved state is written as it lies in memory");

constexpr char kMagic[8] = {'s', 'e', 't', 'o', 'E', 'F', '0', '1'};

// The header of a saved state; the residuals follow.
struct Heading {
  char magic[sizeof kMagic];
  std::uint64_t type;
  std::uint64_t count;
  std::uint64_t checksum;
};

// Detects damage in storage or transfer, not deliberate changes.
std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0xcbf29ce484222325U;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, &bytes[i], sizeof word);
    sum = (sum ^ word) * 0x100000001b3U;
  }
  return sum;
}

template <class Number>
bool all_finite(std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(Number)) {
    Number number = 0;
    std::memcpy(&number, &bytes[i], sizeof number);
    if (!std::isfinite(number)) return false;
  }
  return true;
}

std::string shape_text(std::uint64_t type, std::uint64_t count) {
  std::string text = std::to_string(count);
  text.append(" ");
  text.append(type < kDataTypeCount ? name_of(static_cast<DataType>(type)) : "of an unknown type");
  return text;
}

}  // namespace

void ErrorFeedback::Free::operator()(std::byte* memory) const { std::free(memory); }

Status ErrorFeedback::check_shape(DataType type, std::uint64_t count) {
  if (type != DataType::float32 && type != DataType::float64 && type != DataType::bfloat16)
    return failure(Code::invalid_argument, "datatype: no codec accepts %s (float32, float64 and bfloat16 have error feedback)",
                   name_of(type).data());
  if (count > std::numeric_limits<std::size_t>::max() / 2 / size_of(residual_type(type)))
    return failure(Code::invalid_argument, "count: %llu is too large", static_cast<unsigned long long>(count));
  return {};
}

Result<std::shared_ptr<ErrorFeedback>> ErrorFeedback::create_in(const MakeMemory& make, DataType type, std::uint64_t count,
                                                                std::uint64_t communicator) {
  SETO_TRY(check_shape(type, count));
  std::shared_ptr<ErrorFeedback> state(new ErrorFeedback(type, count, communicator));
  SETO_ASSIGN(state->memory_, make(state->bytes()));
  return state;
}

Result<std::shared_ptr<ErrorFeedback>> ErrorFeedback::create(DataType type, std::uint64_t count, std::uint64_t communicator) {
  SETO_TRY(check_shape(type, count));
  const std::size_t element = size_of(residual_type(type));
  std::shared_ptr<ErrorFeedback> state(new ErrorFeedback(type, count, communicator));
  // calloc: untouched zero pages cost no memory.
  state->residual_.reset(static_cast<std::byte*>(std::calloc(count > 0 ? count : 1, element)));
  if (state->residual_ == nullptr)
    return failure(Code::unavailable, "out of memory: %llu bytes of error feedback",
                   static_cast<unsigned long long>(count * element));
  return state;
}

Status ErrorFeedback::check_communicator(std::uint64_t communicator) const {
  if (communicator == communicator_) return {};
  return failure(Code::invalid_argument,
                 "errorFeedback: it was made for another communicator (setoErrorFeedbackSave and Load bring it to this one)");
}

// The thread that uses the state and the thread that saves it are the same, or are ordered by the caller: no call begins
// meanwhile.
Status ErrorFeedback::check_unused() const {
  if (expected_.load(std::memory_order_acquire) == 0 && (memory_ == nullptr || !memory_->is_used())) return {};
  return failure(Code::invalid_usage, "errorFeedback: a call that was queued or is under way uses it; wait for its end");
}

Status ErrorFeedback::check(const Call& call, std::uint64_t elements) const {
  if (!reduces(call.collective) || !sums(call.op))
    return failure(Code::invalid_argument, "errorFeedback: only sums are encoded, and this is %s",
                   describe(call.collective, call.count, call.type, call.op, call.root).c_str());
  if (call.type != type_ || elements != count_)
    return failure(Code::invalid_argument, "errorFeedback: the state has %s, but the call's input has %s",
                   shape_text(static_cast<std::uint64_t>(type_), count_).c_str(),
                   shape_text(static_cast<std::uint64_t>(call.type), elements).c_str());
  return {};
}

std::size_t ErrorFeedback::bytes() const { return count_ * size_of(residual_type(type_)); }

std::size_t ErrorFeedback::saved_size() const { return sizeof(Heading) + bytes(); }

Status ErrorFeedback::reset() {
  SETO_TRY(check_unused());
  if (memory_ != nullptr) return memory_->clear();
  std::memset(residual_.get(), 0, bytes());
  return {};
}

Status ErrorFeedback::save(std::span<std::byte> into) {
  if (into.size() < saved_size())
    return failure(Code::invalid_argument, "size: %zu bytes, but the state takes %zu (setoErrorFeedbackSize)", into.size(),
                   saved_size());
  SETO_TRY(check_unused());
  const std::span<std::byte> residuals = into.subspan(sizeof(Heading), bytes());
  if (memory_ != nullptr)
    SETO_TRY(memory_->read(residuals));
  else
    std::memcpy(into.data() + sizeof(Heading), residual_.get(), bytes());
  Heading heading{{}, static_cast<std::uint64_t>(type_), count_, checksum_of(residuals)};
  std::memcpy(heading.magic, kMagic, sizeof kMagic);
  std::memcpy(into.data(), &heading, sizeof heading);
  return {};
}

Status ErrorFeedback::load(std::span<const std::byte> from) {
  Heading heading{};
  if (from.size() >= sizeof heading) std::memcpy(&heading, from.data(), sizeof heading);
  if (std::memcmp(heading.magic, kMagic, sizeof kMagic) != 0)
    return failure(Code::invalid_argument, "saved: these %zu bytes were not written by setoErrorFeedbackSave", from.size());
  if (heading.type != static_cast<std::uint64_t>(type_) || heading.count != count_)
    return failure(Code::invalid_argument, "saved: it has %s, but this state has %s",
                   shape_text(heading.type, heading.count).c_str(),
                   shape_text(static_cast<std::uint64_t>(type_), count_).c_str());
  if (from.size() < saved_size())
    return failure(Code::invalid_argument, "saved: it is cut off after %zu of %zu bytes", from.size(), saved_size());
  const std::span<const std::byte> residuals = from.subspan(sizeof heading, bytes());
  const bool finite = type_ == DataType::float64 ? all_finite<double>(residuals) : all_finite<float>(residuals);
  if (!finite || checksum_of(residuals) != heading.checksum)
    return failure(Code::invalid_argument, "saved: its bytes were altered since setoErrorFeedbackSave wrote them");
  SETO_TRY(check_unused());
  if (memory_ != nullptr) return memory_->write(residuals);
  std::memcpy(residual_.get(), residuals.data(), residuals.size());
  return {};
}

}  // namespace seto
