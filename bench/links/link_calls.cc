// Times the init of a communicator and single calls, one process for each rank; the environment says which.
//
//   link_calls [WORK:BYTES:WARM_UPS:CALLS[:idle=MS][:at-once=N][:checked=1]]...
//
// WORK: all_reduce (fp32, sum, without a codec), default (the same with the codec that the library chooses), fp16 (the same,
// which may travel in that codec), send_receive (to the next rank and from the one before, both at once). idle: nothing is sent
// for so long before each call. at-once: a call is so many of that size in flight, each on a stream; otherwise it blocks.
// checked: the result of every call is compared, else that of the last one. Every rank prints a line of JSON: init_ms, and for
// each work in turn its name, size and the milliseconds of each call. A wrong result is an error.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "bench/links/link_work.h"
#include "seto/seto.h"

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

bool succeeded(setoResult_t result, const char* what) {
  if (result == setoSuccess) return true;
  std::fprintf(stderr, "link_calls: %s: %s\n", what, setoGetLastError(nullptr));
  return false;
}

using seto::bench::LinkWork;

class Rank final {
 public:
  bool connect() {
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.memory = setoMemoryHost;
    const auto start = Clock::now();
    if (!succeeded(setoCommInitEnvironment(&comm_, &config), "init")) return false;
    init_ms_ = milliseconds_since(start);
    return succeeded(setoCommUserRank(comm_, &rank_), "rank") && succeeded(setoCommCount(comm_, &ranks_), "count") &&
           succeeded(setoCodecId("fp16", &halved_.codec), "codec") && succeeded(setoCodecId("none", &exact_.codec), "codec");
  }

  bool measure(const LinkWork& work) {
    const std::size_t count = work.size / sizeof(float);
    send_.assign(count * work.at_once, static_cast<float>(rank_ + 1));
    receive_.assign(count * work.at_once, 0.0F);
    if (!open_streams(work.at_once)) return false;
    std::string times;
    for (std::size_t call = 0; call < work.warm_ups + work.calls; ++call) {
      if (call == work.warm_ups && !succeeded(setoBarrier(comm_, nullptr), "barrier")) return false;
      poll(nullptr, 0, static_cast<int>(work.idle_ms));
      if (work.checked != 0) std::fill(receive_.begin(), receive_.end(), 0.0F);
      const auto start = Clock::now();
      if (!run(work, count)) return false;
      const double took_ms = milliseconds_since(start);
      if (work.checked != 0 && !is_right(work.name)) return false;
      if (call < work.warm_ups) continue;
      if (!times.empty()) times += ", ";
      times += std::to_string(took_ms);
    }
    if (!is_right(work.name)) return false;
    if (!works_.empty()) works_ += ", ";
    works_.append(R"({"work": ")").append(work.name).append(R"(", "size": )").append(std::to_string(work.size));
    works_.append(R"(, "ms": [)").append(times).append("]}");
    return true;
  }

  bool close() {
    const auto ended = [](setoStream_t stream) { return succeeded(setoStreamDestroy(stream), "stream"); };
    if (!std::all_of(streams_.begin(), streams_.end(), ended)) return false;
    if (!succeeded(setoCommDestroy(comm_), "destroy")) return false;
    std::printf("{\"rank\": %d, \"init_ms\": %.3f, \"works\": [%s]}\n", rank_, init_ms_, works_.c_str());
    return true;
  }

 private:
  bool open_streams(std::size_t count) {
    while (streams_.size() < count) {
      streams_.push_back(nullptr);
      if (!succeeded(setoStreamCreate(&streams_.back()), "stream")) return false;
    }
    return true;
  }

  bool run(const LinkWork& work, std::size_t count) {
    if (work.name == "send_receive") return send_and_receive(count);
    if (work.at_once == 1) return all_reduce(work.name, count, 0, nullptr);
    for (std::size_t place = 0; place < work.at_once; ++place) {
      if (!all_reduce(work.name, count, place, streams_[place])) return false;
    }
    return std::all_of(streams_.begin(), streams_.begin() + static_cast<std::ptrdiff_t>(work.at_once), [](setoStream_t stream) {
      std::uint64_t position = 0;
      return succeeded(setoStreamPosition(stream, &position), "stream") &&
             succeeded(setoStreamWait(stream, position, 0), "stream");
    });
  }

  // Sums the part of the buffers that has this place.
  bool all_reduce(std::string_view name, std::size_t count, std::size_t place, setoStream_t stream) {
    const setoCallConfig_t* const config = name == "all_reduce" ? &exact_ : name == "fp16" ? &halved_ : &chosen_;
    const std::size_t from = place * count;
    return succeeded(
        setoAllReduceConfig(send_.data() + from, receive_.data() + from, count, setoFloat32, setoSum, comm_, stream, config),
        "all_reduce");
  }

  bool send_and_receive(std::size_t count) {
    return succeeded(setoGroupStart(), "group") &&
           succeeded(setoSend(send_.data(), count, setoFloat32, (rank_ + 1) % ranks_, comm_, nullptr), "send") &&
           succeeded(setoRecv(receive_.data(), count, setoFloat32, before(), comm_, nullptr), "receive") &&
           succeeded(setoGroupEnd(), "group");
  }

  // Small whole numbers, which fp16 holds exactly.
  bool is_right(std::string_view name) const {
    const int expected = name == "send_receive" ? before() + 1 : ranks_ * (ranks_ + 1) / 2;
    const auto is_wrong = [&](float value) { return value != static_cast<float>(expected); };
    const auto wrong = std::count_if(receive_.begin(), receive_.end(), is_wrong);
    if (wrong > 0) std::fprintf(stderr, "link_calls: %lld wrong elements\n", static_cast<long long>(wrong));
    return wrong == 0;
  }

  [[nodiscard]] int before() const { return (rank_ + ranks_ - 1) % ranks_; }

  setoComm_t comm_ = nullptr;
  setoCallConfig_t exact_ = SETO_CALL_CONFIG_INITIALIZER, halved_ = SETO_CALL_CONFIG_INITIALIZER;
  setoCallConfig_t chosen_ = SETO_CALL_CONFIG_INITIALIZER;  // names no codec: the library chooses
  int rank_ = 0, ranks_ = 0;
  double init_ms_ = 0;
  std::vector<float> send_, receive_;
  std::vector<setoStream_t> streams_;
  std::string works_;
};

}  // namespace

int main(int count, char** words) {
  std::vector<LinkWork> works;
  for (int index = 1; index < count; ++index) {
    const auto work = seto::bench::parse_link_work(words[index]);
    if (!work) {
      std::fprintf(stderr,
                   "usage: %s [all_reduce|default|fp16|send_receive:BYTES:WARM_UPS:CALLS[:idle=MS][:at-once=N][:checked=1]]...\n",
                   words[0]);
      return 2;
    }
    works.push_back(*work);
  }
  Rank rank;
  const auto measured = [&](const LinkWork& work) { return rank.measure(work); };
  return rank.connect() && std::all_of(works.begin(), works.end(), measured) && rank.close() ? 0 : 1;
}
