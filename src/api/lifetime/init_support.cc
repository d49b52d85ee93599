#include "src/api/lifetime/init_support.h"

#include <thread>
#include <utility>

#include "src/api/support/thread_group.h"
#include "src/base/log.h"
#include "src/base/thread.h"
#include "src/bootstrap/providers/rendezvous_bootstrap.h"
#include "src/bootstrap/providers/single_rank.h"
#include "src/core/communicator/communicator.h"
#include "src/core/connect/early_port.h"
#include "src/core/device_memory/device_communicator.h"
#include "src/core/dump/dump_writer.h"
#include "src/core/dump/status_server.h"
#include "src/report/info.h"

namespace seto::api {
namespace {

Status guarded(const std::function<Status()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return failure(Code::internal, "unexpected: %s", error.what());
  }
}

}  // namespace

std::shared_ptr<setoComm> new_handle(Rank rank, int ranks, Settings settings) {
  return std::make_shared<setoComm>(rank, ranks, std::move(settings));
}

Status make_communicator(setoComm& comm, Bootstrap& bootstrap, const std::atomic<bool>& given_up,
                         const InheritedRates* inherited) {
  CommunicatorOptions options{comm.settings.config,      comm.settings.context,      comm.settings.name, &given_up,
                              &DumpWriter::of_process(), &StatusServer::of_process()};
  if (inherited != nullptr) options.inherited = *inherited;
  SETO_ASSIGN(std::unique_ptr<Communicator> made, Communicator::create(bootstrap, options));
  std::shared_ptr<Communicator> communicator = std::move(made);
  std::unique_ptr<DeviceCommunicator> device;
  if (comm.settings.gpu != nullptr) {
    const Deadline until = Deadline::after_ms(options.config.init_timeout_ms).unless(&given_up);
    SETO_ASSIGN(device, DeviceCommunicator::create(communicator, bootstrap, comm.settings.gpu, until));
  }
  comm.made(std::move(communicator), std::move(device));
  if (comm.rank == 0)
    SETO_LOG_AS(info, (LogOrigin{0, 0}), "Seto %s, %s", version_text().c_str(), makeup_of(*comm.communicator()).c_str());
  return {};
}

Status make(setoComm& comm, const Rendezvous& rendezvous) {
  const Deadline until = Deadline::after_ms(comm.settings.config.init_timeout_ms).unless(&comm.given_up);
  if (rendezvous.hub != nullptr) {
    InProcessBootstrap bootstrap(rendezvous.hub, comm.rank);
    return make_communicator(comm, bootstrap, comm.given_up);
  }
  if (comm.settings.bootstrap.function != nullptr) {
    SETO_ASSIGN(CallbackBootstrap bootstrap, CallbackBootstrap::create(comm.settings.bootstrap, comm.rank, comm.ranks));
    return make_communicator(comm, bootstrap, comm.given_up);
  }
  if (comm.ranks == 1) {
    SingleRankBootstrap bootstrap;
    return make_communicator(comm, bootstrap, comm.given_up);
  }
  SETO_TRY(take_port_early(comm.settings.config, {comm.ranks}));
  SETO_ASSIGN(const NetworkChoice network, NetworkChoice::parse(NetworkSettings::of(comm.settings.config)));
  SETO_ASSIGN(RendezvousBootstrap bootstrap, RendezvousBootstrap::join(rendezvous.id, comm.rank, comm.ranks, until, network));
  return make_communicator(comm, bootstrap, comm.given_up);
}

// A program that gives up an init does so by itself, and needs no line.
Status logged_init(Rank rank, int ranks, const Status& status) {
  if (status.ok() || status.code() == Code::aborted) return status;
  const std::string size = ranks > 0 ? " of " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") : "";
  SETO_LOG_AS(warn, (LogOrigin{rank, 0}), "no communicator%s was made: %s", size.c_str(), std::string(status.text()).c_str());
  return status;
}

void hand_over(const std::shared_ptr<setoComm>& comm, setoComm_t* where) {
  comm->handle = comm;
  *where = comm.get();
}

Status now_or_at_group_end(std::function<Status()> work) {
  if (group_depth() == 0) return work();
  thread_group().setup.push_back(std::move(work));
  return {};
}

Status run_together(std::vector<std::function<Status()>> work) {
  if (work.size() == 1) return work.front()();
  std::vector<Status> outcomes(work.size());
  std::vector<std::thread> threads;
  Status first;
  for (std::size_t i = 0; i < work.size(); ++i) {
    auto thread = start_thread("seto-setup", [&, i] { outcomes[i] = guarded(work[i]); });
    if (!thread.ok()) {
      first = thread.status();  // the threads that were started end at their own deadlines
      break;
    }
    threads.push_back(std::move(thread).value());
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& outcome : outcomes)
    if (first.ok()) first = outcome;
  return first;
}

Status run_collected() {
  std::vector<std::function<Status()>> work = std::exchange(thread_group().setup, {});
  return work.empty() ? Status() : run_together(std::move(work));
}

void drop_collected() { thread_group().setup.clear(); }

bool has_collected() { return !thread_group().setup.empty(); }

}  // namespace seto::api
