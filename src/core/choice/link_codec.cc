#include "src/core/choice/link_codec.h"

#include <cstdio>

#include "src/base/far_link.h"
#include "src/codec/codec.h"
#include "src/engine/coding.h"

namespace seto {
namespace {

// Two runs of one job may measure round trips on both sides of the limit, and so differ in the last bits of their sums.
const char* near_the_limit(const CostModel& costs) {
  const double round_trip_seconds = 2 * costs.world.latency_seconds;
  const bool near = !costs.sites_are_stated && round_trip_seconds < kNearTheLimit * kCodedRoundTripSeconds;
  return near ? "; it is near the limit of 5 ms, so another run may send exact numbers: state the sites (SETO_SITE_ID) or a codec"
              : "";
}

}  // namespace

void allow_link_codec(Question& question, ReduceOp op, const Tiers& tiers, const CostModel& costs) {
  if (question.deterministic || question.type != DataType::float32 || (op != ReduceOp::sum && op != ReduceOp::avg)) return;
  const std::uint64_t parts = has_parts(question.collective) ? static_cast<std::uint64_t>(question.ranks) : 1;
  if (question.bytes * parts < kLeastCodedBytes) return;
  if (tiers.widest() != TierKind::world || costs.source == CostSource::shipped) return;
  // A tuning file that says nothing of this tier leaves the shipped constants, which are those of no link of the job.
  if (costs.source == CostSource::file && costs.has_shipped(TierKind::world)) return;
  const double round_trip_seconds = 2 * costs.world.latency_seconds;
  if (!is_far_seconds(round_trip_seconds)) return;
  if (!costs.sites_are_stated && round_trip_seconds < kCodedRoundTripSeconds) return;
  const std::uint8_t fp16 = plan_number(Codec::fp16);
  if (!takes_codec(fp16, question.collective, question.type, op)) return;
  question.codec = fp16;
  question.codec_tiers = static_cast<std::uint8_t>(1U << (tiers.count() - 1));
  question.codec_by_link = true;
}

bool uses_link_codec(const Question& question, const Choice& choice) { return question.codec_by_link && choice.codec != 0; }

std::string link_codec_text(const CostModel& costs) {
  char text[480];
  std::snprintf(text, sizeof text,
                "sums and averages of float32 of 64 KiB or more travel in fp16 between sites (round trip %.3g ms%s; sites %s): "
                "setoCodecErrorBound bounds the error, SETO_CODEC=none sends exact numbers (logged once)",
                2e3 * costs.world.latency_seconds, near_the_limit(costs), costs.sites_are_stated ? "stated" : "found");
  return text;
}

}  // namespace seto
