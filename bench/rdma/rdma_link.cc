// rdma_link bandwidth|latency [OPTION=VALUE...]: two processes over a channel of the RDMA transport, each on a device of its own.
//
//   path=ring       bandwidth: messages are copied into the ring in records, and out of it into memory of the receiver
//   path=place      bandwidth: messages are written into the place that the receiver has told, without a copy
//   bytes=1048576   of a message       messages=200
//   piece=65536     longest record, with path=ring
//   ring=262144     bytes of each ring        records=128
//   wait=sleep      sleep when nothing has come for poll_us; wait=poll: never
//   poll_us=200
//   devices=A,B     names; default: the first two of RDMA_LAB_DEVICES
//
// Prints one line: {"mib_per_s": N} or {"us": median, "us_p99": N} of half a round trip.

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "bench/rdma/link_ends.h"

namespace seto::bench_rdma {
namespace {

constexpr std::size_t kPlaces = 4;
constexpr std::uint64_t kPattern = 0x9e37'79b9'7f4a'7c15;

struct Work {
  std::string what;
  std::string path = "ring";
  std::uint64_t bytes = std::uint64_t{1} << 20;
  std::uint64_t messages = 200;
  std::uint64_t piece = std::uint64_t{64} << 10;
};

// Before each record of a message.
struct Header {
  std::uint64_t message = 0;
  std::uint64_t offset = 0;
};

// A place of the receiver.
struct Told {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t number = 0;
};

template <class Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

void send(LinkEnd& end, std::span<const std::byte> head, std::span<const std::byte> body) {
  while (!end.channel().send(head, body)) end.advance();
}

std::span<const std::byte> receive(LinkEnd& end) {
  while (end.channel().front().empty()) end.advance();
  return end.channel().front();
}

template <class Value>
Value receive_value(LinkEnd& end) {
  const auto record = receive(end);
  if (record.size() != sizeof(Value)) give_up("a record of " + std::to_string(record.size()) + " bytes");
  Value value;
  std::memcpy(&value, record.data(), sizeof value);
  end.channel().release();
  return value;
}

// Each message begins with its number, so that a message that is lost or early is noticed.
void check(const std::vector<std::byte>& target, std::uint64_t message) {
  std::uint64_t first = 0, last = 0;
  std::memcpy(&first, target.data(), sizeof first);
  std::memcpy(&last, target.data() + target.size() - sizeof last, sizeof last);
  if (first != message || last != (message ^ kPattern)) give_up("message " + std::to_string(message) + " is wrong");
}

void mark(std::vector<std::byte>& source, std::uint64_t message) {
  const std::uint64_t last = message ^ kPattern;
  std::memcpy(source.data(), &message, sizeof message);
  std::memcpy(source.data() + source.size() - sizeof last, &last, sizeof last);
}

double mib_per_s(const Work& work, std::uint64_t begin_ns) {
  const double seconds = static_cast<double>(monotonic_ns() - begin_ns) / 1e9;
  return static_cast<double>(work.bytes * work.messages) / seconds / double{1 << 20};
}

// ---- through the ring ----

double send_through_ring(LinkEnd& end, const Work& work) {
  std::vector<std::byte> source(work.bytes);
  const std::uint64_t longest = std::min<std::uint64_t>(work.piece, end.channel().most_bytes() - sizeof(Header));
  const std::uint64_t begin_ns = monotonic_ns();
  for (std::uint64_t message = 0; message < work.messages; ++message) {
    mark(source, message);
    for (std::uint64_t offset = 0; offset < work.bytes; offset += longest) {
      const Header header{message, offset};
      send(end, bytes_of(header), std::span(source).subspan(offset, std::min(longest, work.bytes - offset)));
      end.channel().flush();
    }
  }
  (void)receive_value<std::uint64_t>(end);  // everything has been read
  return mib_per_s(work, begin_ns);
}

void receive_through_ring(LinkEnd& end, const Work& work) {
  std::vector<std::byte> target(work.bytes);
  std::uint64_t left = work.bytes * work.messages;
  while (left > 0) {
    const auto record = receive(end);
    Header header;
    std::memcpy(&header, record.data(), sizeof header);
    const auto body = record.subspan(sizeof header);
    if (header.offset > target.size() || body.size() > target.size() - header.offset) give_up("a record outside its message");
    std::memcpy(target.data() + header.offset, body.data(), body.size());
    end.channel().release();
    end.channel().flush();
    left -= body.size();
    if (header.offset + body.size() == target.size()) check(target, header.message);
  }
  send(end, bytes_of(left), {});
  end.channel().settle();
  while (!end.channel().delivered()) end.advance();
}

// ---- into the place of the receiver ----

using Region = std::unique_ptr<rdma::MemoryRegion>;

double send_into_places(LinkEnd& end, const Work& work) {
  struct Source {
    std::vector<std::byte> memory;
    Region region;
    std::optional<std::uint64_t> ticket;
  };
  std::array<Source, kPlaces> sources;
  for (Source& each : sources) {
    each.memory.resize(work.bytes);
    each.region = need(end.device().register_memory(each.memory.data(), each.memory.size()));
  }
  (void)receive_value<std::uint64_t>(end);  // the receiver is ready
  const std::uint64_t begin_ns = monotonic_ns();
  for (std::uint64_t message = 0; message < work.messages; ++message) {
    Source& source = sources[message % kPlaces];
    while (source.ticket.has_value() && !end.channel().written(*source.ticket)) end.advance();
    mark(source.memory, message);
    const Told told = receive_value<Told>(end);
    do {
      source.ticket = end.channel().write(source.memory, source.region->local_key(), {told.address, told.key});
      if (!source.ticket.has_value()) end.advance();
    } while (!source.ticket.has_value());
    const Header header{message, told.number};
    send(end, bytes_of(header), {});
    end.channel().flush();
  }
  (void)receive_value<std::uint64_t>(end);
  return mib_per_s(work, begin_ns);
}

void receive_in_places(LinkEnd& end, const Work& work) {
  std::array<std::vector<std::byte>, kPlaces> targets;
  std::array<Region, kPlaces> regions;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    targets[i].resize(work.bytes);
    regions[i] = need(end.device().register_memory(targets[i].data(), targets[i].size()));
  }
  const auto tell = [&](std::size_t number) {
    const Told told{reinterpret_cast<std::uint64_t>(targets[number].data()), regions[number]->remote_key(),
                    static_cast<std::uint32_t>(number)};
    send(end, bytes_of(told), {});
    end.channel().flush();
  };
  std::uint64_t none = 0;
  send(end, bytes_of(none), {});
  for (std::size_t i = 0; i < kPlaces; ++i) tell(i);
  for (std::uint64_t message = 0; message < work.messages; ++message) {
    const Header header = receive_value<Header>(end);
    if (header.message != message || header.offset >= kPlaces) give_up("a message is missing");
    check(targets[header.offset], message);
    if (message + kPlaces < work.messages) tell(header.offset);
  }
  send(end, bytes_of(none), {});
  end.channel().settle();
  while (!end.channel().delivered()) end.advance();
}

// ---- latency ----

void ping(LinkEnd& end, const Work& work) {
  std::vector<double> times;
  std::vector<std::byte> source(work.bytes);
  for (std::uint64_t message = 0; message < work.messages; ++message) {
    const std::uint64_t begin_ns = monotonic_ns();
    send(end, source, {});
    end.channel().flush();
    (void)receive(end);
    end.channel().release();
    times.push_back(static_cast<double>(monotonic_ns() - begin_ns) / 2e3);
  }
  std::sort(times.begin(), times.end());
  std::printf("{\"us\": %.2f, \"us_p99\": %.2f}\n", times[times.size() / 2], times[times.size() * 99 / 100]);
}

void answer(LinkEnd& end, const Work& work) {
  std::vector<std::byte> source(work.bytes);
  for (std::uint64_t message = 0; message < work.messages; ++message) {
    (void)receive(end);
    end.channel().release();
    send(end, source, {});
    end.channel().flush();
  }
  end.channel().settle();
  while (!end.channel().delivered()) end.advance();
}

// ---- the two processes ----

void be_first(LinkEnd& end, const Work& work) {
  if (work.what == "latency") return ping(end, work);
  const bool in_place = work.path == "place";
  std::printf("{\"mib_per_s\": %.1f}\n", in_place ? send_into_places(end, work) : send_through_ring(end, work));
}

void be_second(LinkEnd& end, const Work& work) {
  if (work.what == "latency") return answer(end, work);
  if (work.path == "place") return receive_in_places(end, work);
  receive_through_ring(end, work);
}

struct Options {
  Work work;
  Shape shape;
  std::string devices[2];
};

void take_lab_devices(std::string (&devices)[2]) {
  const char* const lab = std::getenv("RDMA_LAB_DEVICES");
  if (lab == nullptr) give_up("wanted devices=A,B, or RDMA_LAB_DEVICES (./dev bench rdma sets it)");
  const std::string text = lab;
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) give_up("RDMA_LAB_DEVICES names one device, and two are needed");
  devices[0] = text.substr(0, text.find(':'));
  devices[1] = text.substr(space + 1, text.find(':', space) - space - 1);
}

Options options_of(int count, char** words) {
  Options options;
  if (count < 2 || (std::strcmp(words[1], "bandwidth") != 0 && std::strcmp(words[1], "latency") != 0))
    give_up("wanted: rdma_link bandwidth|latency [OPTION=VALUE...]");
  options.work.what = words[1];
  std::string devices;
  for (int i = 2; i < count; ++i) {
    const std::string word = words[i];
    const std::size_t equal = word.find('=');
    const std::string name = word.substr(0, equal), value = equal == std::string::npos ? "" : word.substr(equal + 1);
    const std::uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
    const std::map<std::string, std::uint64_t*> numbers = {{"bytes", &options.work.bytes},
                                                           {"messages", &options.work.messages},
                                                           {"piece", &options.work.piece},
                                                           {"ring", &options.shape.ring_size},
                                                           {"poll_us", &options.shape.poll_us}};
    if (const auto found = numbers.find(name); found != numbers.end())
      *found->second = number;
    else if (name == "records")
      options.shape.records = static_cast<std::uint32_t>(number);
    else if (name == "path" && (value == "ring" || value == "place"))
      options.work.path = value;
    else if (name == "wait" && (value == "poll" || value == "sleep"))
      options.shape.wait = value == "poll" ? Wait::poll : Wait::poll_then_sleep;
    else if (name == "devices")
      devices = value;
    else
      give_up("no such option: " + word);
  }
  if (const std::size_t comma = devices.find(','); comma != std::string::npos) {
    options.devices[0] = devices.substr(0, comma);
    options.devices[1] = devices.substr(comma + 1);
  } else {
    take_lab_devices(options.devices);
  }
  if (options.work.bytes < 8 || options.work.messages == 0) give_up("wanted at least one message of 8 bytes");
  return options;
}

}  // namespace

int run(int count, char** words) {
  const Options options = options_of(count, words);
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) give_up("socketpair failed");
  const pid_t child = fork();
  if (child < 0) give_up("fork failed");
  const std::size_t own = child == 0 ? 1 : 0;
  close(sockets[1 - own]);
  const std::string devices[2] = {options.devices[own], options.devices[1 - own]};
  LinkEnd end(options.shape, sockets[own], devices);
  if (child == 0) {
    be_second(end, options.work);
    return 0;
  }
  be_first(end, options.work);
  std::fflush(stdout);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

}  // namespace seto::bench_rdma

int main(int count, char** words) { return seto::bench_rdma::run(count, words); }
