// One pass over the data: reads all sources, folds them, and writes every target. Included once for each instruction set.
#if defined(SETO_DEVICE_PASS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SETO_DEVICE_PASS_INL_H
#undef SETO_DEVICE_PASS_INL_H
#else
#define SETO_DEVICE_PASS_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "src/device/element-inl.h"
#include "src/device/operation-inl.h"
#include "src/device/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace seto {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class E>
using Full = hn::ScalableTag<typename E::Lane>;

template <class E>
constexpr std::size_t lanes() {
  return hn::MaxLanes(Full<E>());
}

// Bytes in memory of one vector of lanes.
template <class E>
constexpr std::size_t raw_size() {
  return lanes<E>() * sizeof(typename E::Storage);
}

// Highway streams whole 128-bit registers; narrower vectors are written through the cache.
template <class E>
constexpr bool can_stream() {
  return raw_size<E>() >= 16;
}

template <class V>
struct Quad {
  V v0, v1, v2, v3;
};

// ---- Folds. at() returns lanes [i, i + lanes) rounded to the element type; quad() returns four vectors of them.

// For up to four plain sources: the pointers stay in registers. (Reloading them from the caller's array costs 2-9 %, because a
// vector store may alias it.)
template <class E, class Op, int kSources>
struct FixedFold {
  using Element = E;
  const typename E::Storage* a;
  const typename E::Storage* b;
  const typename E::Storage* c;
  const typename E::Storage* e;

  static HWY_INLINE FixedFold from(const ReduceCall& call) {
    using S = typename E::Storage;
    const auto source = [&call](int k) { return static_cast<const S*>(k < kSources ? call.sources[k] : nullptr); };
    return {source(0), source(1), source(2), source(3)};
  }

  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const typename E::Storage* p) {
    return E::widen(d, hn::LoadU(hn::Rebind<typename E::Storage, D>(), p));
  }

  template <class D>
  HWY_INLINE Raw<E, D> at(D d, std::size_t i) const {
    auto v = load(d, a + i);
    if constexpr (kSources > 1) v = Op::fold(d, v, load(d, b + i));
    if constexpr (kSources > 2) v = Op::fold(d, v, load(d, c + i));
    if constexpr (kSources > 3) v = Op::fold(d, v, load(d, e + i));
    return E::narrow(d, v);
  }

  template <class D>
  HWY_INLINE Quad<Raw<E, D>> quad(D d, std::size_t i) const {
    constexpr std::size_t kStep = lanes<E>();
    return {at(d, i), at(d, i + kStep), at(d, i + 2 * kStep), at(d, i + 3 * kStep)};
  }
};

// For any number of sources, with or without scaling and division. The loop over sources is inside the loop over quads.
template <class E, class Op>
struct AnyFold {
  using Element = E;
  using Lane = typename E::Lane;
  const void* const* sources;
  std::uint32_t source_count;
  std::uint32_t divisor;
  std::uint64_t scaled_sources;
  Lane scalar;

  static HWY_INLINE AnyFold from(const ReduceCall& call) {
    const Lane scalar = call.scaled_sources == 0 ? Lane{} : *static_cast<const Lane*>(call.scalar);
    return {call.sources, call.source_count, call.divisor, call.scaled_sources, scalar};
  }

  template <class D>
  HWY_INLINE hn::Vec<D> term(D d, std::uint32_t k, std::size_t i) const {
    const auto* p = static_cast<const typename E::Storage*>(sources[k]) + i;
    const auto v = E::widen(d, hn::LoadU(hn::Rebind<typename E::Storage, D>(), p));
    if (HWY_LIKELY(((scaled_sources >> k) & 1) == 0)) return v;
    return E::round(d, multiply(d, v, hn::Set(d, scalar)));
  }

  template <class D>
  HWY_INLINE Raw<E, D> finish(D d, hn::Vec<D> v) const {
    if constexpr (!hwy::IsFloat<Lane>()) {
      if (HWY_UNLIKELY(divisor > 1)) v = divided(d, v);
    }
    return E::narrow(d, v);
  }

  // No supported vector unit divides integers. avg over integers is rare, so it divides one lane at a time.
  template <class D>
  HWY_NOINLINE hn::Vec<D> divided(D d, hn::Vec<D> v) const {
    using Wide = std::conditional_t<hwy::IsSigned<Lane>(), std::int64_t, std::uint64_t>;
    HWY_ALIGN Lane lane[hn::MaxLanes(D())];
    hn::StoreU(v, d, lane);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i)
      lane[i] = static_cast<Lane>(static_cast<Wide>(lane[i]) / static_cast<Wide>(divisor));
    return hn::LoadU(d, lane);
  }

  template <class D>
  HWY_INLINE Raw<E, D> at(D d, std::size_t i) const {
    auto v = term(d, 0, i);
    for (std::uint32_t k = 1; k < source_count; ++k) v = Op::fold(d, v, term(d, k, i));
    return finish(d, v);
  }

  template <class D>
  HWY_INLINE Quad<Raw<E, D>> quad(D d, std::size_t i) const {
    constexpr std::size_t kStep = lanes<E>();
    auto v0 = term(d, 0, i);
    auto v1 = term(d, 0, i + kStep);
    auto v2 = term(d, 0, i + 2 * kStep);
    auto v3 = term(d, 0, i + 3 * kStep);
    for (std::uint32_t k = 1; k < source_count; ++k) {
      v0 = Op::fold(d, v0, term(d, k, i));
      v1 = Op::fold(d, v1, term(d, k, i + kStep));
      v2 = Op::fold(d, v2, term(d, k, i + 2 * kStep));
      v3 = Op::fold(d, v3, term(d, k, i + 3 * kStep));
    }
    return {finish(d, v0), finish(d, v1), finish(d, v2), finish(d, v3)};
  }
};

// ---- Sinks. put() stores whole vectors at the body's alignment in the way that each target asks for; put_cached() takes any tag
// and address.

template <class E, bool kStream>
HWY_INLINE void put_vector(Raw<E, Full<E>> v, typename E::Storage* p) {
  const hn::Rebind<typename E::Storage, Full<E>> d;
  if constexpr (kStream && can_stream<E>()) {
    hn::Stream(v, d, p);
  } else {
    hn::StoreU(v, d, p);
  }
}

template <class E, bool kStream>
HWY_INLINE void put_quad(const Quad<Raw<E, Full<E>>>& q, typename E::Storage* p) {
  constexpr std::size_t kStep = lanes<E>();
  put_vector<E, kStream>(q.v0, p);
  put_vector<E, kStream>(q.v1, p + kStep);
  put_vector<E, kStream>(q.v2, p + 2 * kStep);
  put_vector<E, kStream>(q.v3, p + 3 * kStep);
}

template <class E, bool kStream0>
struct OneSink {
  typename E::Storage* p;

  HWY_INLINE void put(const Quad<Raw<E, Full<E>>>& q, std::size_t i) const { put_quad<E, kStream0>(q, p + i); }
  HWY_INLINE void put(Raw<E, Full<E>> v, std::size_t i) const { put_vector<E, kStream0>(v, p + i); }
  template <class D>
  HWY_INLINE void put_cached(D, Raw<E, D> v, std::size_t i) const {
    hn::StoreU(v, hn::Rebind<typename E::Storage, D>(), p + i);
  }
};

template <class E, bool kStream0, bool kStream1>
struct TwoSink {
  typename E::Storage* p0;
  typename E::Storage* p1;

  HWY_INLINE void put(const Quad<Raw<E, Full<E>>>& q, std::size_t i) const {
    put_quad<E, kStream0>(q, p0 + i);
    put_quad<E, kStream1>(q, p1 + i);
  }
  HWY_INLINE void put(Raw<E, Full<E>> v, std::size_t i) const {
    put_vector<E, kStream0>(v, p0 + i);
    put_vector<E, kStream1>(v, p1 + i);
  }
  template <class D>
  HWY_INLINE void put_cached(D, Raw<E, D> v, std::size_t i) const {
    const hn::Rebind<typename E::Storage, D> d;
    hn::StoreU(v, d, p0 + i);
    hn::StoreU(v, d, p1 + i);
  }
};

template <class E>
struct AnySink {
  const ReduceTarget* targets;
  std::uint32_t target_count;
  std::uint64_t streamed;  // bit k: target k is streamed

  HWY_INLINE typename E::Storage* pointer(std::uint32_t k) const { return static_cast<typename E::Storage*>(targets[k].data); }
  HWY_INLINE bool streams(std::uint32_t k) const { return ((streamed >> k) & 1) != 0; }

  HWY_INLINE void put(const Quad<Raw<E, Full<E>>>& q, std::size_t i) const {
    for (std::uint32_t k = 0; k < target_count; ++k) {
      if (streams(k)) {
        put_quad<E, true>(q, pointer(k) + i);
      } else {
        put_quad<E, false>(q, pointer(k) + i);
      }
    }
  }
  HWY_INLINE void put(Raw<E, Full<E>> v, std::size_t i) const {
    for (std::uint32_t k = 0; k < target_count; ++k) {
      if (streams(k)) {
        put_vector<E, true>(v, pointer(k) + i);
      } else {
        put_vector<E, false>(v, pointer(k) + i);
      }
    }
  }
  template <class D>
  HWY_INLINE void put_cached(D, Raw<E, D> v, std::size_t i) const {
    for (std::uint32_t k = 0; k < target_count; ++k) hn::StoreU(v, hn::Rebind<typename E::Storage, D>(), pointer(k) + i);
  }
};

// ---- The walk over a buffer.

constexpr std::size_t kSmallestStreamed = 512;

struct Layout {
  std::size_t head;        // elements before the body
  std::uint64_t streamed;  // bit k: target k is streamed in the body
};

// The body starts where the first past_cache target, else the first target, is aligned to a whole vector.
// Small calls do not stream: the fence costs 150 ns, more than streaming saves.
template <class E>
HWY_INLINE Layout layout(const ReduceTarget* targets, std::uint32_t target_count, std::size_t count) {
  constexpr std::size_t kSize = raw_size<E>();
  Layout result{0, 0};
  if (count * sizeof(typename E::Storage) < kSmallestStreamed) return result;
  std::uint32_t first = 0;
  while (first < target_count && targets[first].store != Store::past_cache) ++first;
  const bool any = can_stream<E>() && first < target_count;
  const auto base = reinterpret_cast<std::uintptr_t>(targets[any ? first : 0].data);
  result.head = ((0 - base) % kSize) / sizeof(typename E::Storage);
  if (!any) return result;
  for (std::uint32_t k = first; k < target_count; ++k) {
    const auto body = reinterpret_cast<std::uintptr_t>(targets[k].data) + result.head * sizeof(typename E::Storage);
    if (targets[k].store == Store::past_cache && body % kSize == 0) result.streamed |= std::uint64_t{1} << k;
  }
  return result;
}

// For at least one vector of elements. The elements before and after the body are covered by one whole vector each that overlaps
// the body. These are computed first, since a source may be a target, and stored last; where they overlap, the bits are the same.
template <class Fold, class Sink>
HWY_INLINE void walk(const Fold fold, const Sink sink, std::size_t count, std::size_t head) {
  using E = typename Fold::Element;
  const Full<E> d;
  constexpr std::size_t kStep = lanes<E>();
  const std::size_t end = count - (count - head) % kStep;
  auto first = hn::Undefined(hn::Rebind<typename E::Storage, Full<E>>());
  auto last = first;
  if (HWY_UNLIKELY(head != 0)) first = fold.at(d, 0);
  if (HWY_UNLIKELY(end != count)) last = fold.at(d, count - kStep);
  std::size_t i = head;
  for (; i + 4 * kStep <= end; i += 4 * kStep) sink.put(fold.quad(d, i), i);
  for (; i < end; i += kStep) sink.put(fold.at(d, i), i);
  if (HWY_UNLIKELY(head != 0)) sink.put_cached(d, first, 0);
  if (HWY_UNLIKELY(end != count)) sink.put_cached(d, last, count - kStep);
}

// For fewer elements than a vector: two overlapping vectors of the widest power of two that fits.
template <std::size_t kLanes, class Fold, class Sink>
HWY_INLINE void walk_small(const Fold& fold, const Sink& sink, std::size_t count) {
  if constexpr (kLanes > 0) {
    using E = typename Fold::Element;
    if (count < kLanes) return walk_small<kLanes / 2>(fold, sink, count);
    const hn::FixedTag<typename E::Lane, kLanes> d;
    const auto first = fold.at(d, 0);
    if (count != kLanes) {
      const auto last = fold.at(d, count - kLanes);
      sink.put_cached(d, first, 0);
      sink.put_cached(d, last, count - kLanes);
    } else {
      sink.put_cached(d, first, 0);
    }
  }
}

template <class Fold>
HWY_INLINE void walk_to_few(const Fold fold, const ReduceTarget* targets, std::uint32_t target_count, std::size_t count) {
  using E = typename Fold::Element;
  using S = typename E::Storage;
  const Layout plan = layout<E>(targets, target_count, count);
  auto* const p0 = static_cast<S*>(targets[0].data);
  if (target_count == 1) {
    if (plan.streamed != 0) {
      walk(fold, OneSink<E, true>{p0}, count, plan.head);
    } else {
      walk(fold, OneSink<E, false>{p0}, count, plan.head);
    }
  } else {
    auto* const p1 = static_cast<S*>(targets[1].data);
    if (plan.streamed == 0) {
      walk(fold, TwoSink<E, false, false>{p0, p1}, count, plan.head);
    } else if (plan.streamed == 3) {
      walk(fold, TwoSink<E, true, true>{p0, p1}, count, plan.head);
    } else if (plan.streamed == 1) {
      walk(fold, TwoSink<E, true, false>{p0, p1}, count, plan.head);
    } else {
      walk(fold, TwoSink<E, true, false>{p1, p0}, count, plan.head);
    }
  }
  if (plan.streamed != 0) hwy::FlushStream();
}

template <class Fold>
HWY_INLINE void walk_to_any(const Fold fold, const ReduceTarget* targets, std::uint32_t target_count, std::size_t count) {
  using E = typename Fold::Element;
  const Layout plan = layout<E>(targets, target_count, count);
  walk(fold, AnySink<E>{targets, target_count, plan.streamed}, count, plan.head);
  if (plan.streamed != 0) hwy::FlushStream();
}

// Separate from reduce(), so that a call of a few elements does not save registers that only this function needs.
template <class E, class Op, bool kHot>
HWY_NOINLINE void reduce_vectors(const ReduceCall& call) {
  if constexpr (kHot) {
    if (call.scaled_sources == 0 && call.divisor <= 1 && call.target_count <= 2) {
      if (call.source_count == 2)
        return walk_to_few(FixedFold<E, Op, 2>::from(call), call.targets, call.target_count, call.count);
      if (call.source_count == 3)
        return walk_to_few(FixedFold<E, Op, 3>::from(call), call.targets, call.target_count, call.count);
      if (call.source_count == 4)
        return walk_to_few(FixedFold<E, Op, 4>::from(call), call.targets, call.target_count, call.count);
    }
  }
  walk_to_any(AnyFold<E, Op>::from(call), call.targets, call.target_count, call.count);
}

// kHot: two to four plain sources and one or two targets have code of their own; all other cases share one loop. This pays for
// float32 and float64, in which gradients are summed; it gains 3 % for int32 and nothing for float16, at twice the code.
template <class E, class Op, bool kHot>
void reduce(const ReduceCall& call) {
  const bool plain = call.scaled_sources == 0 && call.divisor <= 1;
  if (HWY_UNLIKELY(plain && call.source_count == 1)) {
    return copy_bytes(call.sources[0], call.targets, call.target_count, call.count * sizeof(typename E::Storage));
  }
  if (call.count < lanes<E>()) {
    const AnySink<E> sink{call.targets, call.target_count, 0};
    return walk_small<lanes<E>() / 2>(AnyFold<E, Op>::from(call), sink, call.count);
  }
  reduce_vectors<E, Op, kHot>(call);
}

template <class E, bool kHot>
HWY_INLINE ReduceFunction function_for(ReduceOp op) {
  switch (op) {
    case ReduceOp::prod:
      return reduce<E, Product, false>;
    case ReduceOp::max:
      return reduce<E, Maximum, false>;
    case ReduceOp::min:
      return reduce<E, Minimum, false>;
    default:
      return reduce<E, Sum, kHot>;
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace seto
HWY_AFTER_NAMESPACE();

#endif
