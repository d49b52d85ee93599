// One rank of a job over the lab's hosts. It executes the commands on standard input and reports each result as a line on
// standard output.
//
//   run BYTES CALLS   all_reduces, each result compared               done | failed after N ms: WHY
//   queue BYTES CALLS all_reduces, queued in turn on this communicator, one of the same ranks and one of every second rank;
//                     each result compared                             done | failed after N ms: WHY
//   loop BYTES        until one fails; `working` once one went well    working ... failed after N ms: WHY
//   again             gives the communicator up and makes another      ready | failed after N ms: WHY
//   broadcast BYTES   from rank 0                                      done | failed after N ms: WHY
//   send BYTES TO     and receive BYTES FROM, whose bytes are compared done | failed after N ms: WHY
//   rate              the link between sites that choice follows       rate N MB/s (SOURCE, version V), round trip T ms
//   leave             destroys the communicator                        left
//
// The environment states the number of this rank. N counts from the start of the call that failed. The program ends without error
// at the end of its input.
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "seto/seto.h"

namespace {

using Clock = std::chrono::steady_clock;

void say(const std::string& line) { std::cout << line << std::endl; }

// A communicator and the stream of its calls.
struct Queue {
  setoComm_t comm = nullptr;
  setoStream_t stream = nullptr;

  [[nodiscard]] setoResult_t wait() const {
    std::uint64_t position = 0;
    const setoResult_t known = setoStreamPosition(stream, &position);
    return known == setoSuccess ? setoStreamWait(stream, position, 0) : known;
  }
};

// One all_reduce, whose memory lives until all have ended.
class Queued final {
 public:
  setoResult_t issue(const Queue& queue, std::size_t count, std::int32_t turn) {
    int rank = 0;
    int ranks = 0;
    if (setoCommUserRank(queue.comm, &rank) != setoSuccess || setoCommCount(queue.comm, &ranks) != setoSuccess)
      return setoInternalError;
    input_.assign(count, rank + turn);
    output_.assign(count, -1);
    wanted_ = ranks * (ranks - 1) / 2 + ranks * turn;
    return setoAllReduce(input_.data(), output_.data(), count, setoInt32, setoSum, queue.comm, queue.stream);
  }
  [[nodiscard]] bool is_right() const {
    return std::all_of(output_.begin(), output_.end(), [this](std::int32_t value) { return value == wanted_; });
  }

 private:
  std::vector<std::int32_t> input_;
  std::vector<std::int32_t> output_;
  std::int32_t wanted_ = 0;
};

class Rank final {
 public:
  bool connect() {
    start_ = Clock::now();
    setoConfig_t config = SETO_CONFIG_INITIALIZER;
    config.memory = setoMemoryHost;
    if (!succeeded(setoCommInitEnvironment(&comm_, &config))) return false;
    if (!succeeded(setoCommUserRank(comm_, &rank_)) || !succeeded(setoCommCount(comm_, &ranks_))) return false;
    say("ready");
    return true;
  }

  void run(std::size_t size, std::uint64_t calls) {
    for (std::uint64_t call = 0; call < calls; ++call) {
      if (!call_once(size, call)) return;
    }
    say("done");
  }

  void queue(std::size_t size, std::uint64_t calls) {
    start_ = Clock::now();
    Queue queues[3] = {{comm_}, {}, {}};
    bool fine = succeeded(setoCommSplit(comm_, 0, rank_, &queues[1].comm, nullptr)) &&
                succeeded(setoCommSplit(comm_, rank_ % 2, rank_, &queues[2].comm, nullptr));
    for (Queue& each : queues) fine = fine && succeeded(setoStreamCreate(&each.stream));
    std::vector<Queued> queued(calls);
    for (std::uint64_t call = 0; fine && call < calls; ++call) {
      fine = succeeded(queued[call].issue(queues[call % std::size(queues)], std::max(size / sizeof(std::int32_t), std::size_t{1}),
                                          static_cast<std::int32_t>(call % 1000)));
    }
    for (Queue& each : queues) fine = fine && succeeded(each.wait());
    std::uint64_t wrong = 0;
    for (const Queued& each : queued) wrong += fine && !each.is_right() ? 1 : 0;
    for (Queue& each : queues) {
      if (each.stream != nullptr) fine = succeeded(setoStreamDestroy(each.stream)) && fine;
      if (each.comm != nullptr && each.comm != comm_) fine = succeeded(setoCommDestroy(each.comm)) && fine;
    }
    if (fine) say(wrong == 0 ? "done" : "wrong: " + std::to_string(wrong) + " calls");
  }

  void loop(std::size_t size) {
    for (std::uint64_t call = 0; call_once(size, call); ++call) {
      if (call == 0) say("working");
    }
  }

  void broadcast(std::size_t size) {
    bytes_.assign(size, rank_ == 0 ? 7 : 0);
    start_ = Clock::now();
    tell(setoBroadcast(bytes_.data(), bytes_.data(), size, setoUint8, 0, comm_, nullptr));
  }

  void send(std::size_t size, int to) {
    bytes_.assign(size, 7);
    start_ = Clock::now();
    tell(setoSend(bytes_.data(), size, setoUint8, to, comm_, nullptr));
  }

  void receive(std::size_t size, int from) {
    bytes_.assign(size, 0);
    start_ = Clock::now();
    tell(setoRecv(bytes_.data(), size, setoUint8, from, comm_, nullptr));
  }

  void rate() {
    start_ = Clock::now();
    setoQuestion_t question = SETO_QUESTION_INITIALIZER;
    question.collective = "all_reduce";
    question.bytes = 1 << 20;
    question.comm = comm_;
    std::string text(1 << 16, '\0');
    std::size_t size = 0;
    if (!succeeded(setoExplain(&question, setoFormatText, text.data(), text.size(), &size))) return;
    const std::string rate = part(text, "the slowest rate is ", '\n');
    if (rate.empty()) return say("no rate");
    say("rate " + rate + ", round trip " + part(text, "0>1 round trip ", '('));
  }

  // The part of the text that follows these words, up to this character.
  static std::string part(const std::string& text, const std::string& words, char end) {
    const std::size_t at = text.find(words);
    if (at == std::string::npos) return {};
    const std::size_t begin = at + words.size();
    return text.substr(begin, text.find(end, begin) - begin);
  }

  void give_up() {
    if (comm_ != nullptr) static_cast<void>(setoCommAbort(comm_));
    comm_ = nullptr;
  }

  bool leave() {
    const bool left = comm_ == nullptr || succeeded(setoCommDestroy(comm_));
    comm_ = nullptr;
    return left;
  }

 private:
  bool succeeded(setoResult_t result) {
    if (result == setoSuccess) return true;
    const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start_);
    std::string why = setoGetLastError(comm_);
    std::replace(why.begin(), why.end(), '\n', ' ');
    say("failed after " + std::to_string(elapsed.count()) + " ms: " + why);
    return false;
  }

  void tell(setoResult_t result) {
    if (!succeeded(result)) return;
    const auto wrong = std::count_if(bytes_.begin(), bytes_.end(), [](std::uint8_t value) { return value != 7; });
    say(wrong == 0 ? "done" : "wrong: " + std::to_string(wrong) + " bytes");
  }

  bool call_once(std::size_t size, std::uint64_t call) {
    const std::size_t count = std::max(size / sizeof(std::int32_t), std::size_t{1});
    const auto turn = static_cast<std::int32_t>(call % 1000);
    input_.assign(count, rank_ + turn);
    output_.assign(count, -1);
    start_ = Clock::now();
    if (!succeeded(setoAllReduce(input_.data(), output_.data(), count, setoInt32, setoSum, comm_, nullptr))) return false;
    const std::int32_t wanted = ranks_ * (ranks_ - 1) / 2 + ranks_ * turn;
    const auto wrong = std::count_if(output_.begin(), output_.end(), [wanted](std::int32_t value) { return value != wanted; });
    if (wrong != 0) say("wrong: " + std::to_string(wrong) + " elements in call " + std::to_string(call));
    return wrong == 0;
  }

  setoComm_t comm_ = nullptr;
  int rank_ = 0;
  int ranks_ = 0;
  Clock::time_point start_;
  std::vector<std::int32_t> input_;
  std::vector<std::int32_t> output_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Rank rank;
  if (!rank.connect()) return 1;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    std::size_t size = 0;
    std::uint64_t calls = 1;
    words >> verb >> size >> calls;
    if (verb == "run") {
      rank.run(size, calls);
    } else if (verb == "queue") {
      rank.queue(size, calls);
    } else if (verb == "loop") {
      rank.loop(size);
    } else if (verb == "again") {
      rank.give_up();
      static_cast<void>(rank.connect());
    } else if (verb == "broadcast") {
      rank.broadcast(size);
    } else if (verb == "send") {
      rank.send(size, static_cast<int>(calls));
    } else if (verb == "receive") {
      rank.receive(size, static_cast<int>(calls));
    } else if (verb == "rate") {
      rank.rate();
    } else if (verb == "leave") {
      if (rank.leave()) say("left");
    } else {
      say("what is '" + line + "'?");
    }
  }
  return rank.leave() ? 0 : 1;
}
