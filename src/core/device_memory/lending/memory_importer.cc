#include "src/core/device_memory/lending/memory_importer.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "src/base/thread.h"
#include "src/core/device_memory/launch_gate.h"
#include "src/core/device_memory/rank_statement.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

using cuda::DriverCode;

constexpr std::uint64_t kTakenMs = 10'000;  // for a client to take an answer: it waits for it

// Takes one request and its descriptor. False: the connection has ended, or the message is malformed. An empty socket is a
// request without a number.
bool receive(int socket, ImportRequest& request, Fd& file) {
  ReceivedPacket packet = receive_packet(socket, std::as_writable_bytes(std::span(&request, 1)));
  if (packet.size < 0 && (errno == EAGAIN || errno == EINTR)) {
    request.number = 0;
    return true;
  }
  if (!packet.descriptors.empty()) file = std::move(packet.descriptors.front());
  return packet.size == static_cast<ssize_t>(sizeof request) && request.layout == ImportRequest().layout && request.number != 0 &&
         !packet.is_cut && !packet.lacks_descriptors;
}

}  // namespace

// The driver may end with the process, so no thread of the library may call it then.
struct StopMemoryImporter {
  ~StopMemoryImporter() { MemoryImporter::of_process().stop(); }
  static void at_exit() { static const StopMemoryImporter only; }
};

MemoryImporter& MemoryImporter::of_process() {
  static auto* const only = new MemoryImporter;  // never destroyed: communicators may outlive static objects
  return *only;
}

std::string MemoryImporter::socket_of(std::uint64_t process) {
  std::array<char, 48> name{};
  std::snprintf(name.data(), name.size(), "seto-device-memory-%016llx", static_cast<unsigned long long>(process));
  return name.data();
}

Status MemoryImporter::start(std::function<void()> on_closed) {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return {};
  StopMemoryImporter::at_exit();
  SETO_ASSIGN(listener_, listen_local(socket_of(number_of_process()), SocketKind::packets));
  SETO_ASSIGN(wakeup_, Wakeup::create());
  on_closed_ = std::move(on_closed);
  if (!unmapping_thread_.joinable()) {
    SETO_ASSIGN(unmapping_thread_, start_thread("seto-gpu-unmap", [this] { run_unmapping(); }));
  }
  SETO_ASSIGN(thread_, start_thread("seto-gpu-map", [this] { run(); }));
  return {};
}

void MemoryImporter::stop() {
  const std::lock_guard lock(mutex_);
  {
    const std::lock_guard closed_lock(closed_mutex_);
    stops_.store(true);
    may_unmap_.notify_one();
  }
  if (wakeup_ != nullptr) wakeup_->ring();
  if (thread_.joinable()) thread_.join();
  if (unmapping_thread_.joinable()) unmapping_thread_.join();
}

void MemoryImporter::unmap_closed(std::uint64_t came) {
  const std::lock_guard lock(closed_mutex_);
  calm_ = closed_.size();
  calm_at_ = came;
  if (calm_ > 0) may_unmap_.notify_one();
}

// Between two mappings the gate is open. Once a launch came, the rest stays until the watcher finds no kernel again.
void MemoryImporter::run_unmapping() {
  std::unique_lock lock(closed_mutex_);
  while (true) {
    may_unmap_.wait(lock, [this] { return stops_.load() || calm_ > 0; });
    if (stops_.load()) return;
    const LaunchGate::Closed gate(calm_at_);
    if (!gate.holds()) {
      calm_ = 0;
      continue;
    }
    const Mapping mapping = std::move(closed_.front());
    closed_.pop_front();
    --calm_;
    lock.unlock();
    unmap(mapping);
    mapped_.fetch_sub(1);
    lock.lock();
  }
}

void MemoryImporter::run() {
  while (!stops_.load()) {
    std::vector<pollfd> entries = {{wakeup_->descriptor(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Client& client : clients_) entries.push_back({client.socket.get(), POLLIN, 0});
    if (poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) return;
    wakeup_->drain();
    if (stops_.load()) return;
    for (std::size_t i = clients_.size(); i > 0; --i) {
      if (entries[i + 1].revents == 0 || serve(clients_[i - 1])) continue;
      for (const auto& [key, mapping] : clients_[i - 1].mappings) close(mapping);
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    }
    if (entries[1].revents != 0) accept_clients();
  }
}

void MemoryImporter::accept_clients() {
  for (PrivateFd socket = accept_local(listener_); socket.valid(); socket = accept_local(listener_))
    if (check_same_user(socket.get()).ok()) clients_.push_back({std::move(socket), {}});
}

bool MemoryImporter::serve(Client& client) {
  ImportRequest request;
  Fd file;
  if (!receive(client.socket.get(), request, file)) return false;
  if (request.number == 0) return true;
  if (request.kind == ImportRequest::Kind::close) {
    const auto found = client.mappings.find({request.number, request.device});
    if (found == client.mappings.end()) return true;
    close(std::move(found->second));
    client.mappings.erase(found);
    return true;
  }
  const ImportAnswer answer = map(client, request, file);
  if (!wait_for(client.socket.get(), POLLOUT, Deadline::after_ms(kTakenMs)).ok()) return false;
  return send(client.socket.get(), &answer, sizeof answer, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof answer);
}

ImportAnswer MemoryImporter::map(Client& client, const ImportRequest& request, const Fd& file) {
  ImportAnswer answer{.number = request.number};
  Mapping mapping{.size = request.size};
  const auto make = [&]() -> Status {
    if (client.mappings.contains({request.number, request.device}))
      return failure(Code::internal, "memory %llu is mapped already", static_cast<unsigned long long>(request.number));
    SETO_ASSIGN(mapping.gpu, GpuContext::of_device(request.device));
    const ContextScope scope(*mapping.gpu);
    SETO_TRY(scope.status());
    return request.kind == ImportRequest::Kind::map_file ? map_file(mapping, file) : open_handle(mapping, request);
  };
  const Status status = make();
  if (!status.ok()) {
    answer.code = static_cast<std::uint32_t>(status.code());
    std::memcpy(answer.text, status.text().data(), std::min(status.text().size(), sizeof answer.text - 1));
    return answer;
  }
  answer.address = mapping.address;
  mapped_.fetch_add(1);
  client.mappings.emplace(std::pair{request.number, request.device}, std::move(mapping));
  return answer;
}

Status MemoryImporter::map_file(Mapping& mapping, const Fd& file) {
  const cuda::Driver& driver = mapping.gpu->driver();
  if (!file.valid()) return failure(Code::remote_error, "a request to map memory came without a descriptor");
  void* const source = reinterpret_cast<void*>(static_cast<std::intptr_t>(file.get()));
  SETO_TRY(driver.mem_import(&mapping.handle, source, cuda::HandleType::posix_file_descriptor));
  Status status = driver.mem_address_reserve(&mapping.address, mapping.size, 0, 0, 0);
  const bool is_reserved = status.ok();
  if (is_reserved) status = driver.mem_map(mapping.address, mapping.size, 0, mapping.handle, 0);
  const bool is_mapped = status.ok();
  const cuda::MemoryAccess access{.location = {.id = mapping.gpu->device()}};
  if (is_mapped) status = driver.mem_set_access(mapping.address, mapping.size, &access, 1);
  if (status.ok()) return status;
  if (is_mapped) static_cast<void>(driver.mem_unmap.code(mapping.address, mapping.size));
  if (is_reserved) static_cast<void>(driver.mem_address_free.code(mapping.address, mapping.size));
  static_cast<void>(driver.mem_release.code(mapping.handle));
  return status;
}

Status MemoryImporter::open_handle(Mapping& mapping, const ImportRequest& request) {
  return mapping.gpu->driver().ipc_open_mem_handle(&mapping.address, request.handle, cuda::kIpcLazyPeerAccess);
}

void MemoryImporter::close(Mapping mapping) {
  {
    const std::lock_guard lock(closed_mutex_);
    closed_.push_back(std::move(mapping));
  }
  on_closed_();
}

void MemoryImporter::unmap(const Mapping& mapping) {
  const ContextScope scope(*mapping.gpu);
  if (!scope.status().ok()) return;
  const cuda::Driver& driver = mapping.gpu->driver();
  if (mapping.handle == 0) {
    static_cast<void>(driver.ipc_close_mem_handle.code(mapping.address));
    return;
  }
  static_cast<void>(driver.mem_unmap.code(mapping.address, mapping.size));
  static_cast<void>(driver.mem_address_free.code(mapping.address, mapping.size));
  static_cast<void>(driver.mem_release.code(mapping.handle));
}

Status send_import_request(int socket, const ImportRequest& request, int file, Deadline until) {
  const std::span<const int> files(&file, file >= 0 ? 1 : 0);
  while (send_packet(socket, std::as_bytes(std::span(&request, 1)), files) < 0) {
    if (errno == EAGAIN)
      SETO_TRY(wait_for(socket, POLLOUT, until));
    else if (errno != EINTR)
      return socket_failure("its process does not take requests to map memory");
  }
  return {};
}

}  // namespace seto
