#include "tests/soak/making.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace seto::soak {
namespace {

constexpr std::uint64_t kWaitMs = kInitMs;

// ---- distributing the id, as a program would ----

std::string id_file(const Job& job) { return job.directory + "/id-" + std::to_string(job.generation); }

bool write_id(const Job& job, const setoUniqueId& id) {
  const std::string name = id_file(job);
  std::ofstream(name + ".new", std::ios::binary).write(id.internal, sizeof id.internal);
  return std::rename((name + ".new").c_str(), name.c_str()) == 0;
}

bool read_id(const Job& job, setoUniqueId& id) {
  std::ifstream file;
  const bool there = eventually(
      [&] {
        file.open(id_file(job), std::ios::binary);
        return file.is_open() || job.board.given_up;
      },
      kWaitMs);
  return there && file.read(id.internal, sizeof id.internal).gcount() == sizeof id.internal;
}

// The rank that makes the n-th id.
int maker_of(const Job& job, std::size_t number) { return number == 0 ? 0 : job.shape.ranks / 2; }

CallResult exchange_ids(const Job& job, int rank, std::vector<setoUniqueId>& ids) {
  for (std::size_t number = 0; number < ids.size(); ++number) {
    if (rank != maker_of(job, number)) continue;
    const CallResult made = call_result_of(setoGetUniqueId(&ids[number]));
    if (!made.ok()) return made;
    job.board.ids[number] = ids[number];
    if (job.plan.way == Way::file && !write_id(job, ids[number])) return {setoSystemError, "the id's file cannot be written"};
    job.board.id_ready[number] = true;
  }
  if (job.plan.way == Way::file)
    return read_id(job, ids[0]) ? CallResult{} : CallResult{setoSystemError, "the id's file never appeared"};
  for (std::size_t number = 0; number < ids.size(); ++number) {
    if (!eventually([&] { return job.board.id_ready[number] || job.board.given_up; }, kWaitMs))
      return {setoSystemError, "the id never arrived"};
    ids[number] = job.board.ids[number];
  }
  return {};
}

// ---- the callback ----

struct Caller {
  const Job& job;
  int rank;
  std::uint64_t rounds = 0;
};

// Two sets of messages are used in turn, because no rank is more than one round ahead.
int all_gather(const void* mine, void* all, std::size_t size, void* argument) {
  Caller& caller = *static_cast<Caller*>(argument);
  Board& board = caller.job.board;
  if (size > Board::kGatherBytes) return 1;
  auto& messages = board.gathered[++caller.rounds % 2];
  std::memcpy(messages[static_cast<std::size_t>(caller.rank)].data(), mine, size);
  board.arrived[static_cast<std::size_t>(caller.rank)] = caller.rounds;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(caller.job.shape.ranks); ++rank) {
    if (!eventually([&] { return board.arrived[rank] >= caller.rounds || board.given_up; }, kWaitMs) || board.given_up) return 1;
    std::memcpy(static_cast<std::byte*>(all) + rank * size, messages[rank].data(), size);
  }
  return 0;
}

// ---- the config ----

// The caller keeps `host` alive.
setoConfig_t config_of(const Job& job, const std::string& host, setoContext_t context) {
  setoConfig_t config = SETO_CONFIG_INITIALIZER;
  config.commName = "soak";
  config.memory = setoMemoryHost;
  config.context = context;
  config.blocking = job.plan.blocking ? setoOn : setoOff;
  config.initTimeoutMs = job.plan.ending == Ending::kill_while_making ? kShortInitMs : kInitMs;
  config.operationTimeoutMs = kOperationMs;
  if (context == nullptr && job.plan.medium != Medium::automatic) config.hostId = host.c_str();
  if (job.shape.cuts == 0) return config;
  config.hostId = config.siteId = host.c_str();
  config.codec = job.plan.in_fp16 ? "fp16" : "none";
  return config;
}

CallResult check_seat(const Job& job, int rank, Seat& seat) {
  seat.rank = rank;
  seat.ranks = job.shape.ranks;
  int said_rank = -1, said_ranks = -1;
  setoCommUserRank(seat.comm, &said_rank);
  setoCommCount(seat.comm, &said_ranks);
  ++job.board.tally.communicators;
  if (said_rank == rank && said_ranks == job.shape.ranks) return {};
  return {setoInternalError,
          "the new communicator reports rank " + std::to_string(said_rank) + " of " + std::to_string(said_ranks)};
}

}  // namespace

std::string host_of(const Job& job, int rank) {
  if (job.plan.medium == Medium::all_apart) return "soak-" + std::to_string(rank);
  return "soak-" + std::to_string(job.shape.process_of(rank) % 2);
}

CallResult settled(setoComm_t comm, setoResult_t result) {
  if (result != setoInProgress) return call_result_of(result);
  const bool ended = eventually(
      [&] {
        const setoResult_t asked = setoCommGetAsyncError(comm, &result);
        if (asked != setoSuccess) result = asked;
        return result != setoInProgress;
      },
      kWaitMs * 2);
  if (!ended) return {setoTimeout, "it is still in progress long after its deadline"};
  return {result, result == setoSuccess ? std::string() : std::string(setoGetLastError(comm))};
}

CallResult make(const Job& job, int rank, setoContext_t context, Seat& seat) {
  const std::string host = host_of(job, rank);
  setoConfig_t config = config_of(job, host, context);
  std::vector<setoUniqueId> ids(job.plan.way == Way::several_ids ? 2 : job.plan.way == Way::callback ? 0 : 1);
  if (const CallResult handed = exchange_ids(job, rank, ids); !handed.ok()) return handed;
  Caller caller{job, rank};
  setoResult_t result = setoSuccess;
  if (job.plan.way == Way::several_ids) {
    result = setoCommInitRankScalable(&seat.comm, job.shape.ranks, rank, 2, ids.data(), &config);
  } else if (job.plan.way == Way::callback) {
    config.bootstrap = {all_gather, &caller};
    result = setoCommInitRankConfig(&seat.comm, job.shape.ranks, setoUniqueId{}, rank, &config);
  } else {
    result = setoCommInitRankConfig(&seat.comm, job.shape.ranks, ids[0], rank, &config);
  }
  const CallResult made = settled(seat.comm, result);
  return made.ok() ? check_seat(job, rank, seat) : made;
}

CallResult make_together(const Job& job, const std::vector<int>& ranks, const std::vector<setoContext_t>& contexts,
                         std::vector<Seat>& seats) {
  std::vector<setoUniqueId> ids(1);
  if (const CallResult handed = exchange_ids(job, ranks.front(), ids); !handed.ok())
    return handed;  // rank 0 is the first of its process
  std::vector<std::string> hosts;
  for (const int rank : ranks) hosts.push_back(host_of(job, rank));
  CallResult made = call_result_of(setoGroupStart());
  for (std::size_t i = 0; i < ranks.size() && made.ok(); ++i) {
    setoConfig_t config = config_of(job, hosts[i], contexts[i]);
    made = call_result_of(setoCommInitRankConfig(&seats[i].comm, job.shape.ranks, ids[0], ranks[i], &config));
    if (made.code == setoInProgress) made = {};
  }
  const setoResult_t ended = setoGroupEnd();
  if (ended != setoInProgress && ended != setoSuccess) return call_result_of(ended);
  for (std::size_t i = 0; i < ranks.size() && made.ok(); ++i) {
    made = settled(seats[i].comm, ended);
    if (made.ok()) made = check_seat(job, ranks[i], seats[i]);
  }
  return made;
}

}  // namespace seto::soak
