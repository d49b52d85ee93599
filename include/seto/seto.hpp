// RAII over seto.h for C++17 programs: classes own communicators, streams, contexts, groups and memory, and
// a result code other than setoSuccess throws seto::Error. The contracts (threads, blocking, lifetime, in place) are those of
// seto.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "seto/seto.h"

namespace seto {
// Inline, so that these names do not collide at link time with names inside the library.
inline namespace cxx {

class Error final : public std::runtime_error {
 public:
  Error(setoResult_t result, const std::string &text) : std::runtime_error(text), result_(result) {}
  setoResult_t result() const { return result_; }

 private:
  setoResult_t result_;
};

inline void check(setoResult_t result, setoComm_t comm = nullptr) {
  if (result == setoSuccess) return;
  throw Error(result, std::string(setoGetErrorString(result)) + ": " + setoGetLastError(comm));
}

// The data type of a C++ type. 16- and 8-bit floats have no standard C++ type: name them in the calls that take a setoDataType_t.
template <class T>
constexpr setoDataType_t type_of() {
  if constexpr (std::is_same_v<T, float>) return setoFloat32;
  if constexpr (std::is_same_v<T, double>) return setoFloat64;
  if constexpr (std::is_integral_v<T> && sizeof(T) == 1) return std::is_signed_v<T> ? setoInt8 : setoUint8;
  if constexpr (std::is_integral_v<T> && sizeof(T) == 4) return std::is_signed_v<T> ? setoInt32 : setoUint32;
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) return std::is_signed_v<T> ? setoInt64 : setoUint64;
  static_assert(std::is_floating_point_v<T> || (std::is_integral_v<T> && sizeof(T) != 2), "seto has no such data type");
}

class Group final {
 public:
  Group() { check(setoGroupStart()); }
  // Ends an open group and drops its result: call end() to see it.
  ~Group() {
    if (open_) (void)setoGroupEnd();
  }
  Group(const Group &) = delete;
  Group &operator=(const Group &) = delete;

  void end() {
    open_ = false;
    check(setoGroupEnd());
  }

 private:
  bool open_ = true;
};

template <class Handle, setoResult_t (*destroy)(Handle *)>
struct Destroy {
  using pointer = Handle *;
  void operator()(Handle *handle) const { (void)destroy(handle); }
};
using OwnedComm = std::unique_ptr<setoComm, Destroy<setoComm, setoCommDestroy>>;
using OwnedContext = std::unique_ptr<setoContext, Destroy<setoContext, setoContextDestroy>>;

struct FreeMemory {
  void operator()(void *memory) const { (void)setoMemFree(memory); }
};
// Memory from setoMemAlloc; its elements are not initialized.
template <class T>
std::unique_ptr<T[], FreeMemory> allocate(std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  void *memory = nullptr;
  check(setoMemAlloc(&memory, count * sizeof(T)));
  return std::unique_ptr<T[], FreeMemory>(static_cast<T *>(memory));
}

class Stream final {
 public:
  Stream() { check(setoStreamCreate(&stream_)); }
  ~Stream() {
    if (stream_ != nullptr) (void)setoStreamDestroy(stream_);
  }
  Stream(Stream &&other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream &operator=(Stream &&other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }

  setoStream_t get() const { return stream_; }
  std::uint64_t position() const {
    std::uint64_t position = 0;
    check(setoStreamPosition(stream_, &position));
    return position;
  }
  // Blocks until everything queued so far has ended.
  void wait(std::uint32_t timeout_ms = 0) const { check(setoStreamWait(stream_, position(), timeout_ms)); }

 private:
  setoStream_t stream_ = nullptr;
};

// One rank's handle of a communicator. On host communicators a null stream makes a blocking call.
class Communicator final {
 public:
  explicit Communicator(setoComm_t comm) : comm_(comm) {}
  Communicator(int ranks, const setoUniqueId &id, int rank, setoConfig_t config = SETO_CONFIG_INITIALIZER) {
    setoComm_t comm = nullptr;
    check(setoCommInitRankConfig(&comm, ranks, id, rank, &config));
    comm_.reset(comm);
  }

  // All ranks in this process; drive each from a thread of its own.
  static std::vector<Communicator> all(int ranks) {
    std::vector<setoComm_t> comms(static_cast<std::size_t>(ranks));
    check(setoCommInitAll(comms.data(), ranks, nullptr));
    std::vector<Communicator> result;
    result.reserve(comms.size());
    for (setoComm_t comm : comms) result.emplace_back(comm);
    return result;
  }

  setoComm_t get() const { return comm_.get(); }
  int rank() const {
    int rank = 0;
    check(setoCommUserRank(get(), &rank));
    return rank;
  }
  int size() const {
    int count = 0;
    check(setoCommCount(get(), &count));
    return count;
  }
  // Returns an empty communicator with SETO_SPLIT_NOCOLOR.
  Communicator split(int color, int key) const {
    setoComm_t comm = nullptr;
    check(setoCommSplit(get(), color, key, &comm, nullptr), get());
    return Communicator(comm);
  }
  void barrier(setoStream_t stream = nullptr) const { check(setoBarrier(get(), stream), get()); }

  template <class T>
  void all_reduce(const T *send, T *receive, std::size_t count, setoRedOp_t op = setoSum, setoStream_t stream = nullptr) const {
    check(setoAllReduce(send, receive, count, type_of<T>(), op, get(), stream), get());
  }
  template <class T>
  void all_gather(const T *send, T *receive, std::size_t count_per_rank, setoStream_t stream = nullptr) const {
    check(setoAllGather(send, receive, count_per_rank, type_of<T>(), get(), stream), get());
  }
  template <class T>
  void reduce_scatter(const T *send, T *receive, std::size_t count_per_rank, setoRedOp_t op = setoSum,
                      setoStream_t stream = nullptr) const {
    check(setoReduceScatter(send, receive, count_per_rank, type_of<T>(), op, get(), stream), get());
  }
  template <class T>
  void broadcast(T *data, std::size_t count, int root = 0, setoStream_t stream = nullptr) const {
    check(setoBroadcast(data, data, count, type_of<T>(), root, get(), stream), get());
  }
  template <class T>
  void all_to_all(const T *send, T *receive, std::size_t count_per_rank, setoStream_t stream = nullptr) const {
    check(setoAlltoAll(send, receive, count_per_rank, type_of<T>(), get(), stream), get());
  }
  template <class T>
  void send(const T *data, std::size_t count, int peer, setoStream_t stream = nullptr) const {
    check(setoSend(data, count, type_of<T>(), peer, get(), stream), get());
  }
  template <class T>
  void receive(T *data, std::size_t count, int peer, setoStream_t stream = nullptr) const {
    check(setoRecv(data, count, type_of<T>(), peer, get(), stream), get());
  }

 private:
  OwnedComm comm_;
};

inline setoUniqueId make_unique_id() {
  setoUniqueId id;
  check(setoGetUniqueId(&id));
  return id;
}

// An id for any number of communicators, made one after another.
inline setoUniqueId make_job_id() {
  setoUniqueId id;
  check(setoGetJobId(&id));
  return id;
}

}  // namespace cxx
}  // namespace seto
