#include "src/core/launch/launch_cache.h"

#include <algorithm>
#include <bit>

#include "algorithms/algorithm.h"
#include "src/base/log.h"
#include "src/core/choice/codec_setting.h"
#include "src/core/call/ids.h"
#include "src/engine/lowering.h"
#include "src/plan/chunk_map.h"

namespace seto {
namespace {

constexpr std::size_t kMostShapes = 256;
constexpr std::size_t kCacheLine = 64;

std::uint32_t folded(std::uint32_t digest, std::uint64_t word) {
  for (int byte = 0; byte < 8; ++byte) {
    digest = (digest ^ static_cast<std::uint32_t>(word & 0xff)) * 16777619U;
    word >>= 8;
  }
  return digest;
}

// What both ends of every stream must agree on, and leave to encode, though no rank may have used it.
std::uint32_t digest_of(const Call& call, const Question& question, const Choice& choice, Finish finish,
                        const LaunchTuning& tuning) {
  std::uint32_t digest = 2166136261U;
  for (const std::uint64_t word :
       {static_cast<std::uint64_t>(call.collective), static_cast<std::uint64_t>(call.type), static_cast<std::uint64_t>(call.op),
        static_cast<std::uint64_t>(call.root), call.count, static_cast<std::uint64_t>(finish), tuning.slice_elements,
        std::uint64_t{tuning.depth}, std::uint64_t{choice.codec}, std::uint64_t{choice.coded_tiers},
        std::uint64_t{question.codec}, std::uint64_t{question.codec_tiers}})
    digest = folded(digest, word);
  for (const char letter : choice.algorithm->name) digest = folded(digest, static_cast<std::uint64_t>(letter));
  for (const std::uint64_t count : call.counts) digest = folded(digest, count);
  return digest;
}

}  // namespace

Finish LaunchCache::finish_of(const Call& call) const {
  if (!reduces(call.collective)) return Finish::none;
  if (call.op == ReduceOp::premul_sum) return Finish::scale_contributions;
  if (call.op != ReduceOp::avg) return Finish::none;
  return is_integer(call.type) ? Finish::divide_result : Finish::scale_contributions;
}

bool LaunchCache::same(const Key& key, const Call& call, InPlace in_place) {
  return key.collective == call.collective && key.count == call.count && key.type == call.type && key.op == call.op &&
         key.root == call.root && key.in_place == in_place && key.algorithm == call.algorithm && key.codec == call.codec &&
         key.deterministic == call.deterministic &&
         std::equal(key.counts.begin(), key.counts.end(), call.counts.begin(), call.counts.end()) &&
         std::equal(key.displacements.begin(), key.displacements.end(), call.displacements.begin(), call.displacements.end());
}

Result<BoundShape*> LaunchCache::find(const Call& call, bool busy) {
  const InPlace placed = in_place(call, setup_.rank, setup_.ranks);
  if (last_ != nullptr && same(*last_key_, call, placed)) return last_;
  const Key key{call.collective,
                call.type,
                call.op,
                placed,
                call.root,
                call.count,
                call.algorithm,
                call.codec,
                call.deterministic,
                {call.counts.begin(), call.counts.end()},
                {call.displacements.begin(), call.displacements.end()}};
  auto found = shapes_.find(key);
  if (found == shapes_.end()) {
    if (shapes_.size() >= kMostShapes && !busy) {
      last_ = nullptr;
      last_key_ = nullptr;
      shapes_.clear();
    }
    SETO_ASSIGN(std::unique_ptr<BoundShape> shape, bind(call, placed));
    found = shapes_.emplace(key, std::move(shape)).first;
  }
  last_key_ = &found->first;
  last_ = found->second.get();
  return last_;
}

StoreChoice& LaunchCache::stores_for(Collective collective, std::uint64_t bytes) {
  const auto width = static_cast<int>(std::bit_width(bytes));
  const auto half = stores_.find({collective, width - 1});
  return stores_
      .try_emplace({collective, width}, bytes, setup_.config->slot_store, half == stores_.end() ? nullptr : &half->second)
      .first->second;
}

// Whoever set a codec for all may believe that all travels in it. That it would lose is no reason to speak: it is leave.
void LaunchCache::tell_of_exact(const Call& call, const Question& question, const Choice& choice) {
  if (told_of_exact_ || setup_.rank != 0 || setup_.ranks == 1 || call.codec != 0) return;
  if (!reduces(call.collective) || call.collective == Collective::barrier) return;
  const Result<CodecSetting> setting = CodecSetting::parse(setup_.config->codec);
  if (!setting.ok() || setting.value().number == 0) return;
  const LogOrigin origin{setup_.rank, 0};
  const std::string what = describe(call.collective, call.count, call.type, call.op, call.root);
  if (setting.value().on(*setup_.tiers) == 0) {
    SETO_LOG_AS(info, origin,
                "codec '%s' names no tier that these ranks have (node: on one host; site: hosts; world: hosts with other values "
                "of SETO_SITE_ID), so everything travels exactly",
                setup_.config->codec.c_str());
  } else if (question.codec == 0) {
    SETO_LOG_AS(info, origin, "%s travels exactly: codec %s takes sums of wider floats alone (said once)", what.c_str(),
                codec_name(setting.value().number).data());
  } else if (std::none_of(choice.candidates.begin(), choice.candidates.end(),
                          [](const Candidate& one) { return one.coded_tiers != 0 && one.refused.empty(); })) {
    const auto refused = std::find_if(choice.candidates.begin(), choice.candidates.end(),
                                      [](const Candidate& one) { return one.coded_tiers != 0; });
    SETO_LOG_AS(info, origin, "%s travels exactly: no algorithm encodes as '%s' says, on all tiers or the widest (%s; said once)",
                what.c_str(), setup_.config->codec.c_str(),
                refused == choice.candidates.end() ? "none can" : (refused->name(question) + ": " + refused->refused).c_str());
  } else {
    return;
  }
  told_of_exact_ = true;
}

Result<std::unique_ptr<BoundShape>> LaunchCache::bind(const Call& call, InPlace in_place) {
  const Question question = question_of(call, {setup_.ranks, setup_.config, setup_.crowding, setup_.tiers});
  SETO_ASSIGN(const Choice choice, choose(question, *setup_.tiers, *setup_.costs));
  tell_of_exact(call, question, choice);
  Shape shape{call.collective, setup_.ranks, call.root, 1, finish_of(call)};
  shape.pieces = choice.algorithm->pieces(shape);
  shape.codec = choice.codec;
  shape.coded_tiers = choice.coded_tiers;

  auto bound = std::make_unique<BoundShape>();
  bound->algorithm = choice.algorithm;
  bound->bytes = question.bytes;
  bound->scalar = call.type == DataType::float64 ? static_cast<const void*>(&scalar_.wide) : &scalar_.narrow;
  bound->stores = &stores_for(call.collective, question.bytes);
  bound->note.words[0] = static_cast<std::uint64_t>(call.collective) | static_cast<std::uint64_t>(call.type) << 8 |
                         static_cast<std::uint64_t>(call.op) << 16 | std::uint64_t{question.codec} << 24;
  bound->note.words[1] = call.count;
  bound->note.words[2] = is_rooted(call.collective) ? static_cast<std::uint64_t>(call.root) : 0;

  const std::size_t element = size_of(call.type);
  const std::uint32_t grain =
      choice.codec != 0 ? facts_of(codec_of(choice.codec)).block : static_cast<std::uint32_t>(kCacheLine / element);
  const Layout layout = call.counts.empty() ? Layout::uniform(shape, setup_.rank, call.count, grain)
                                            : Layout::table(shape, setup_.rank, call.counts, call.displacements, grain);
  const Program plain = build_program(*choice.algorithm, shape, *setup_.tiers, setup_.rank, in_place);
  const Program lowered = lower(plain, shape, in_place, rules_for(call.type));
  BindRequest request{&lowered, shape, in_place, &layout, call.type, call.op, 0, {}, StepOrder::skewed};
  const std::uint64_t slice_bytes =
      setup_.config->slice_bytes == kAutomatic ? choice.cut.slice_bytes : setup_.config->slice_bytes;
  request.tuning.slice_elements = std::max<std::uint64_t>(grain, slice_bytes / element);
  request.tuning.depth =
      setup_.config->slot_depth == kAutomatic ? choice.cut.depth : static_cast<std::uint32_t>(setup_.config->slot_depth);
  request.digest = bound->note.digest = digest_of(call, question, choice, shape.finish, request.tuning);
  bound->recorded = recorded(call, {bound->bytes, algorithm_id(choice.algorithm->name), choice.codec, request.digest});
  SETO_ASSIGN(bound->launch, HostLaunch::bind(request, *setup_.circle));
  SETO_LOG_AS(debug, (LogOrigin{setup_.rank, 0}), "%s runs as %s%s%s, in slices of %llu elements, %u in flight",
              describe(call.collective, call.count, call.type, call.op, call.root).c_str(), choice.algorithm->name.data(),
              choice.codec == 0 ? "" : " in ", choice.codec == 0 ? "" : codec_name(choice.codec).data(),
              static_cast<unsigned long long>(request.tuning.slice_elements), request.tuning.depth);
  return bound;
}

}  // namespace seto
