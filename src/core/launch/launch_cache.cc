#include "src/core/launch/launch_cache.h"

#include <algorithm>
#include <bit>

#include "algorithms/algorithm.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/core/call/call_shape.h"
#include "src/core/call/ids.h"
#include "src/core/choice/boundaries.h"
#include "src/core/choice/codec_setting.h"
#include "src/core/choice/link_codec.h"
#include "src/engine/coding.h"
#include "src/engine/host_executor.h"
#include "src/engine/lowering.h"
#include "src/plan/chunk_map.h"

namespace seto {
namespace {

constexpr std::size_t kCacheLine = 64;

// A checksum of everything that both ends of every stream must agree on, and of the codec that the call allows, even if the
// choice did not use it.
std::uint32_t digest_of(const Call& call, const Question& question, const Choice& choice, Finish finish,
                        const LaunchTuning& tuning) {
  std::uint32_t digest = kNoDigest;
  for (const std::uint64_t word :
       {static_cast<std::uint64_t>(call.collective), static_cast<std::uint64_t>(call.type), static_cast<std::uint64_t>(call.op),
        static_cast<std::uint64_t>(call.root), call.count, static_cast<std::uint64_t>(finish), tuning.slice_elements,
        std::uint64_t{tuning.depth}, std::uint64_t{choice.codec}, std::uint64_t{choice.coded_tiers},
        std::uint64_t{question.codec}, std::uint64_t{question.codec_tiers}})
    digest = folded(digest, word);
  for (const char character : choice.algorithm->name) digest = folded(digest, static_cast<std::uint64_t>(character));
  for (const std::uint64_t count : call.counts) digest = folded(digest, count);
  return digest;
}

}  // namespace

Finish LaunchCache::finish_of(const Call& call) const { return seto::finish_of(call); }

bool LaunchCache::same(const Key& key, const Call& call, InPlace in_place) {
  return key.collective == call.collective && key.count == call.count && key.type == call.type && key.op == call.op &&
         key.root == call.root && key.in_place == in_place && key.algorithm == call.algorithm && key.codec == call.codec &&
         key.deterministic == call.deterministic &&
         std::equal(key.counts.begin(), key.counts.end(), call.counts.begin(), call.counts.end()) &&
         std::equal(key.displacements.begin(), key.displacements.end(), call.displacements.begin(), call.displacements.end());
}

Result<BoundShape*> LaunchCache::find(const Call& call) {
  const InPlace placed = in_place(call, setup_.rank, setup_.here.ranks);
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
                version_,
                {call.counts.begin(), call.counts.end()},
                {call.displacements.begin(), call.displacements.end()}};
  auto found = shapes_.find(key);
  if (found == shapes_.end()) {
    SETO_ASSIGN(std::unique_ptr<BoundShape> shape, bind(call, placed));
    ++bound_;
    if (has_other_versions_) drop_other_versions();
    make_room();
    found = shapes_.emplace(key, std::move(shape)).first;
  }
  last_key_ = &found->first;
  last_ = found->second.get();
  last_->last_found_ = ++finds_;
  return last_;
}

// Plans that go round the sites follow the order of the version: all ranks that run an operation use the same one.
void LaunchCache::take(const CostModel& costs) {
  if (costs.ring.order != costs_.ring.order && setup_.here.tiers != nullptr) {
    tiers_ = *setup_.here.tiers;
    tiers_.take_ring(costs.ring.order);
    setup_.here.tiers = &tiers_;
  }
  costs_ = costs;
}

void LaunchCache::use(const CostModel& costs, std::uint64_t version) {
  take(costs);
  if (version == version_) return;
  version_ = version;
  last_ = nullptr;
  last_key_ = nullptr;
  drop_other_versions();
}

void LaunchCache::drop_other_versions() {
  std::erase_if(shapes_, [this](const auto& one) { return one.first.version != version_ && !one.second->under_way(); });
  has_other_versions_ =
      std::any_of(shapes_.begin(), shapes_.end(), [this](const auto& one) { return one.first.version != version_; });
}

void LaunchCache::make_room() {
  while (shapes_.size() >= kMostShapes) {
    auto oldest = shapes_.end();
    for (auto each = shapes_.begin(); each != shapes_.end(); ++each) {
      if (each->second->under_way()) continue;
      if (oldest == shapes_.end() || each->second->last_found_ < oldest->second->last_found_) oldest = each;
    }
    if (oldest == shapes_.end()) return;
    if (oldest->second.get() == last_) {
      last_ = nullptr;
      last_key_ = nullptr;
    }
    shapes_.erase(oldest);
  }
}

StoreTuner& LaunchCache::stores_for(Collective collective, std::uint64_t bytes) {
  const auto width = static_cast<int>(std::bit_width(bytes));
  const auto half = stores_.find({collective, width - 1});
  return stores_
      .try_emplace({collective, width}, bytes, setup_.here.config->slot_store, half == stores_.end() ? nullptr : &half->second,
                   store_sizes(costs_.node))
      .first->second;
}

// Numbers that travel in fewer bits than they have are announced if no call and no setting asked for that.
void LaunchCache::tell_of_link_codec(const Question& question, const Choice& choice) {
  if (told_of_link_codec_ || setup_.rank != 0 || !uses_link_codec(question, choice)) return;
  SETO_LOG_AS(warn, (LogOrigin{setup_.rank, 0}), "%s", link_codec_text(*setup_.here.costs).c_str());
  told_of_link_codec_ = true;
}

// Each collective has its own algorithms, so each tells once that it ignores the pin, or what the pin costs it.
void LaunchCache::tell_of_pin(const Question& question, const Choice& choice) {
  if (setup_.rank != 0 || setup_.here.ranks == 1) return;
  if (question.pin.empty() || !told_of_pin_.insert(question.collective).second) return;
  if (const std::string followed = pin_followed(question, choice); !followed.empty()) {
    SETO_LOG_AS(info, (LogOrigin{setup_.rank, 0}), "%s, %s: %s (logged once)", name_of(question.collective).data(),
                size_text(question.bytes).c_str(), followed.c_str());
    return;
  }
  const std::string ignored = pin_ignored(question, choice);
  if (ignored.empty()) return;
  SETO_LOG_AS(warn, (LogOrigin{setup_.rank, 0}), "%s: %s; it runs as %s (logged once)", name_of(question.collective).data(),
              ignored.c_str(), choice.algorithm->name.data());
}

// A user who set a codec for all calls may believe that every call uses it, so the first call that does not is logged, with
// the reason. A codec that could be used but would be slower is not a reason: the setting is a permission.
void LaunchCache::tell_of_exact(const Call& call, const Question& question, const Choice& choice) {
  if (told_of_exact_ || setup_.rank != 0 || setup_.here.ranks == 1 || call.codec != 0) return;
  if (!reduces(call.collective) || call.collective == Collective::barrier) return;
  const Result<CodecSetting> setting = CodecSetting::parse(setup_.here.config->codec);
  if (!setting.ok() || setting.value().number == 0) return;
  const LogOrigin origin{setup_.rank, 0};
  const std::string what = describe(call.collective, call.count, call.type, call.op, call.root);
  if (setting.value().on(*setup_.here.tiers) == 0) {
    SETO_LOG_AS(info, origin,
                "codec '%s' names no tier that these ranks have (node: on one host; site: hosts; world: hosts with other values "
                "of SETO_SITE_ID), so nothing is encoded",
                setup_.here.config->codec.c_str());
  } else if (question.codec == 0) {
    SETO_LOG_AS(info, origin, "%s is not encoded: codec %s accepts only sums of wider floats (logged once)", what.c_str(),
                codec_name(setting.value().number).data());
  } else if (std::none_of(choice.candidates.begin(), choice.candidates.end(),
                          [](const Candidate& one) { return one.coded_tiers != 0 && one.refused.empty(); })) {
    const auto refused = std::find_if(choice.candidates.begin(), choice.candidates.end(),
                                      [](const Candidate& one) { return one.coded_tiers != 0; });
    SETO_LOG_AS(
        info, origin,
        "%s is not encoded: no algorithm encodes on the tiers of '%s', which must be all tiers or the widest (%s; logged once)",
        what.c_str(), setup_.here.config->codec.c_str(),
        refused == choice.candidates.end() ? "none can" : (refused->name(question) + ": " + refused->refused).c_str());
  } else {
    return;
  }
  told_of_exact_ = true;
}

void LaunchCache::set_lending(BoundProgram& program, const Question& question) const {
  const CostModel model = question.deterministic ? CostModel() : costs_;
  for (BoundStream& stream : program.streams)
    if (stream.address.sender == static_cast<std::uint32_t>(setup_.rank))
      stream.lends_from = lends_from(setup_.rank, stream.receivers, setup_.here.tiers_of(question), question.crowding, model);
}

Result<std::unique_ptr<BoundShape>> LaunchCache::bind(const Call& call, InPlace in_place) {
  const Question question = question_of(call, setup_.here);
  const Tiers& tiers = setup_.here.tiers_of(question);
  SETO_ASSIGN(const Choice choice, choose(question, tiers, *setup_.here.costs));
  tell_of_link_codec(question, choice);
  tell_of_exact(call, question, choice);
  tell_of_pin(question, choice);
  Shape shape{call.collective, setup_.here.ranks, call.root, 1, finish_of(call)};
  shape.pieces = choice.algorithm->pieces(shape, tiers);
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
  const Program plain = build_program(*choice.algorithm, shape, tiers, setup_.rank, in_place);
  const Program lowered = lower(plain, shape, in_place, rules_for(call.type));
  BindRequest request{&lowered, shape, in_place, &layout, call.type, call.op, 0, {}};
  const std::uint64_t slice_bytes =
      setup_.here.config->slice_bytes == kAutomatic ? choice.cut.slice_bytes : setup_.here.config->slice_bytes;
  request.tuning.slice_elements = std::max<std::uint64_t>(grain, slice_bytes / element);
  request.tuning.depth = setup_.here.config->slot_depth == kAutomatic
                             ? choice.cut.depth
                             : static_cast<std::uint32_t>(setup_.here.config->slot_depth);
  request.tuning.window_bytes = choice.cut.window_bytes;
  request.digest = bound->note.digest = folded(
      folded(digest_of(call, question, choice, shape.finish, request.tuning), setup_.here.costs->links_digest), tiers.digest());
  // Ranks that use different versions in one operation find out, even if both choose the same.
  if (version_ != 0) request.digest = bound->note.digest = folded(request.digest, version_);
  bound->recorded = recorded(call, {bound->bytes, algorithm_id(choice.algorithm->name), choice.codec, request.digest});
  SETO_ASSIGN(BoundProgram program, bind_program(request));
  bound->receives = program.receives();
  set_lending(program, question);
  SETO_ASSIGN(bound->executor, HostExecutor::open(std::move(program), choice.cut.order, *setup_.peer_group));
  bound->first_sends = bound->executor->first_sends();
  SETO_LOG_AS(debug, (LogOrigin{setup_.rank, 0}), "%s runs as %s%s%s, in slices of %llu elements, %u in flight",
              describe(call.collective, call.count, call.type, call.op, call.root).c_str(), choice.algorithm->name.data(),
              choice.codec == 0 ? "" : " in ", choice.codec == 0 ? "" : codec_name(choice.codec).data(),
              static_cast<unsigned long long>(request.tuning.slice_elements), request.tuning.depth);
  return bound;
}

}  // namespace seto
