// Times the init of a communicator and single blocking calls, one process for each rank; the environment says which.
//
//   link_calls [WORK:BYTES:WARM_UPS:CALLS]...
//
// WORK: all_reduce (fp32, sum), fp16 (the same, which may travel in that codec), send_receive (to the next rank and from the one
// before, both at once). Every rank prints a line of JSON: init_ms, and for each work in turn its name, size and the milliseconds
// of each call. A wrong result is an error.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

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

struct Work {
  std::string_view name;
  std::size_t size = 0, warm_ups = 0, calls = 0;
};

bool parse(std::string_view text, Work& work) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  work.name = text.substr(0, colon);
  const char* at = text.data() + colon;
  const char* const end = text.data() + text.size();
  for (std::size_t* const number : {&work.size, &work.warm_ups, &work.calls}) {
    if (at == end || *at != ':') return false;
    const auto [rest, error] = std::from_chars(at + 1, end, *number);
    if (error != std::errc()) return false;
    at = rest;
  }
  const bool known = work.name == "all_reduce" || work.name == "fp16" || work.name == "send_receive";
  return known && at == end && work.size >= sizeof(float) && work.calls > 0;
}

class Rank final {
 public:
  bool connect() {
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.memory = setoMemoryHost;
    config.codec = "none";  // between far sites the library would choose fp16
    const auto start = Clock::now();
    if (!succeeded(setoCommInitEnvironment(&comm_, &config), "init")) return false;
    init_ms_ = milliseconds_since(start);
    return succeeded(setoCommUserRank(comm_, &rank_), "rank") && succeeded(setoCommCount(comm_, &ranks_), "count") &&
           succeeded(setoCodecId("fp16", &config_.codec), "codec");
  }

  bool measure(const Work& work) {
    const std::size_t count = work.size / sizeof(float);
    send_.assign(count, static_cast<float>(rank_ + 1));
    receive_.assign(count, 0.0F);
    std::string times;
    for (std::size_t call = 0; call < work.warm_ups + work.calls; ++call) {
      if (call == work.warm_ups && !succeeded(setoBarrier(comm_, nullptr), "barrier")) return false;
      const auto start = Clock::now();
      if (!run(work.name, count)) return false;
      if (call < work.warm_ups) continue;
      if (!times.empty()) times += ", ";
      times += std::to_string(milliseconds_since(start));
    }
    if (!is_right(work.name)) return false;
    if (!works_.empty()) works_ += ", ";
    works_.append(R"({"work": ")").append(work.name).append(R"(", "size": )").append(std::to_string(work.size));
    works_.append(R"(, "ms": [)").append(times).append("]}");
    return true;
  }

  bool close() {
    if (!succeeded(setoCommDestroy(comm_), "destroy")) return false;
    std::printf("{\"rank\": %d, \"init_ms\": %.3f, \"works\": [%s]}\n", rank_, init_ms_, works_.c_str());
    return true;
  }

 private:
  bool run(std::string_view name, std::size_t count) {
    if (name == "send_receive") return send_and_receive(count);
    const bool coded = name == "fp16";
    return succeeded(
        coded ? setoAllReduceConfig(send_.data(), receive_.data(), count, setoFloat32, setoSum, comm_, nullptr, &config_)
              : setoAllReduce(send_.data(), receive_.data(), count, setoFloat32, setoSum, comm_, nullptr),
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
  setoCallConfig_t config_ = SETO_CALL_CONFIG_INITIALIZER;
  int rank_ = 0, ranks_ = 0;
  double init_ms_ = 0;
  std::vector<float> send_, receive_;
  std::string works_;
};

}  // namespace

int main(int count, char** words) {
  std::vector<Work> works(static_cast<std::size_t>(std::max(count - 1, 0)));
  for (std::size_t index = 0; index < works.size(); ++index) {
    if (parse(words[index + 1], works[index])) continue;
    std::fprintf(stderr, "usage: %s [all_reduce|fp16|send_receive:BYTES:WARM_UPS:CALLS]...\n", words[0]);
    return 2;
  }
  Rank rank;
  const auto measured = [&](const Work& work) { return rank.measure(work); };
  return rank.connect() && std::all_of(works.begin(), works.end(), measured) && rank.close() ? 0 : 1;
}
