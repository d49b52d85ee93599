#include "src/core/device_memory/lending/lent_windows.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>

#include "src/core/device_memory/workspaces.h"
#include "src/net/local_socket.h"

namespace seto {
namespace {

using cuda::DevicePointer;
using cuda::DriverCode;
using cuda::PointerAttribute;
using kernels::Address;

constexpr std::uint64_t kAnswerMs = 20'000;  // for all importers to map an allocation
constexpr std::uint64_t kTrialMs = 10'000;   // the same, of the trial: a driver that takes longer waits for its GPU
constexpr std::uint64_t kLookMs = 50;        // whether the communicator has failed meanwhile
constexpr std::uint64_t kEndMs = 1'000;      // for work that waits for nothing any more to end
constexpr std::uint64_t kCloseMs = 1'000;
constexpr std::size_t kSmallestCopy = std::size_t{2} << 20;
// Numbers of the driver and of this library count apart.
constexpr std::uint64_t kOfLibrary = std::uint64_t{1} << 63;

}  // namespace

Result<std::string> LentWindows::agree(const Setup& setup, std::unique_ptr<LentWindows>& made, Bootstrap& bootstrap,
                                       Deadline until) {
  Result<std::unique_ptr<LentWindows>> created = create(setup, until);
  Status begun = created.status();
  if (created.ok()) made = std::move(created).value();
  if (made != nullptr) begun = made->begin_trial();
  const std::unique_ptr<LentWindows, void (*)(LentWindows*)> trial(made.get(), [](LentWindows* one) { one->end_trial(); });
  SETO_ASSIGN(std::string obstacle, obstacle_of_any(begun, setup.statements.size(), bootstrap, until));
  if (obstacle.empty()) {
    SETO_ASSIGN(obstacle, obstacle_of_any(made->try_out(until), setup.statements.size(), bootstrap, until));
  }
  if (obstacle.empty())
    made->begin();
  else if (made != nullptr)
    made->readers_.clear();  // nothing is offered any more
  return obstacle;
}

Result<std::unique_ptr<LentWindows>> LentWindows::create(const Setup& setup, Deadline until) {
  std::unique_ptr<LentWindows> made(new LentWindows(setup));
  SETO_TRY(made->connect(until));
  made->setup_.statements = {};  // they belong to the caller
  return made;
}

Status LentWindows::connect(Deadline until) {
  const std::span<const RankStatement> statements = setup_.statements;
  const std::uint64_t own = statements[static_cast<std::size_t>(setup_.rank)].process;
  for (std::size_t rank = 0; rank < statements.size(); ++rank) {
    if (statements[rank].process == own) continue;
    Reader reader{static_cast<Rank>(rank), statements[rank].device, {}};
    SETO_ASSIGN(reader.socket, connect_local(MemoryImporter::socket_of(statements[rank].process), SocketKind::packets, until));
    SETO_TRY(check_same_user(reader.socket.get()));
    readers_.push_back(std::move(reader));
  }
  return {};
}

Status LentWindows::begin_trial() {
  const cuda::Driver& driver = setup_.gpu->driver();
  void* word = nullptr;
  SETO_TRY(driver.mem_host_alloc(&word, sizeof *word_, cuda::kHostAllocPortable | cuda::kHostAllocDeviceMap));
  word_ = static_cast<std::uint32_t*>(word);
  *word_ = 0;
  DevicePointer there = 0;
  SETO_TRY(driver.mem_host_get_device_pointer(&there, word, 0));
  SETO_TRY(driver.stream_create_with_priority(&waiting_, cuda::kStreamNonBlocking, 0));
  unwatched_ = std::make_unique<LaunchGate::Unwatched>();
  return driver.stream_wait_value32(waiting_, there, 1U, cuda::kWaitGreaterOrEqual);
}

// The driver does for all allocations of a kind what it does for one. A reader may have mapped the plain memory for another
// communicator, or a larger block of the driver of which it is a part: then the trial says less.
Status LentWindows::try_out(Deadline until) {
  const Deadline soon = until.sooner_ms(kTrialMs);
  SETO_ASSIGN(const DevicePointer plain, setup_.gpu->plain_memory());
  SETO_TRY(try_memory({.number = ~std::uint64_t{0}, .begin = plain, .size = GpuContext::kPlainMemory}, soon));
  Memory created{.number = ~std::uint64_t{1}, .size = 1};  // without an address here, because giving one back waits for kernels
  SETO_ASSIGN(created.handle, DeviceAllocations::create(*setup_.gpu, created.size));
  if (created.handle == 0) return {};
  const Status status = try_memory(created, soon);
  static_cast<void>(setup_.gpu->driver().mem_release.code(created.handle));
  return status;
}

Status LentWindows::try_memory(Memory memory, Deadline until) {
  const Status status = offer(memory, until).status();
  close_at_readers(memory.number);
  if (status.code() != Code::timeout) return status;
  return failure(Code::timeout, "%s: its driver seems to map memory only when nothing runs on its GPU",
                 std::string(status.text()).c_str());
}

void LentWindows::end_trial() {
  if (waiting_ == nullptr) return;
  const cuda::Driver& driver = setup_.gpu->driver();
  std::atomic_ref(*word_).store(1, std::memory_order_release);
  const Deadline until = Deadline::after_ms(kEndMs);
  while (driver.stream_query.code(waiting_) == DriverCode::not_ready && !until.passed()) std::this_thread::yield();
  static_cast<void>(driver.stream_destroy.code(std::exchange(waiting_, nullptr)));
  unwatched_.reset();
}

void LentWindows::begin() { DeviceAllocations::of_process().add(*this); }

LentWindows::~LentWindows() {
  end_trial();
  DeviceAllocations::of_process().remove(*this);
  readers_.clear();  // the importers of the others close what they have mapped
  for (const DevicePointer copy : copies_) static_cast<void>(DeviceAllocations::of_process().release(copy));
  if (word_ != nullptr) static_cast<void>(setup_.gpu->driver().mem_free_host.code(word_));
}

Result<LentWindows::Memory> LentWindows::memory_at(DevicePointer address) const {
  if (const auto ours = DeviceAllocations::of_process().find(address); ours && ours->handle != 0)
    return Memory{kOfLibrary | ours->number, ours->begin, ours->size, ours->handle, nullptr};
  const cuda::Driver& driver = setup_.gpu->driver();
  Memory memory;
  SETO_TRY(driver.mem_get_address_range(&memory.begin, &memory.size, address));
  std::uint32_t is_plain = 0;
  DevicePointer pool = 0;
  PointerAttribute attributes[] = {PointerAttribute::is_legacy_ipc_capable, PointerAttribute::memory_pool,
                                   PointerAttribute::buffer_id};
  void* into[] = {&is_plain, &pool, &memory.number};
  SETO_TRY(driver.pointer_get_attributes(static_cast<unsigned>(std::size(attributes)), attributes, into, address));
  memory.number &= ~kOfLibrary;
  if (pool != 0)
    memory.obstacle = "it is memory of a pool (cudaMallocAsync)";
  else if (is_plain == 0 || memory.number == 0)
    memory.obstacle = "it is memory at virtual addresses (cuMemMap, expandable segments)";
  return memory;
}

Result<const char*> LentWindows::obstacle_in(BufferRange range) {
  if (range.size == 0) return nullptr;
  SETO_ASSIGN(const Memory memory, memory_at(range.begin));
  if (memory.obstacle != nullptr) return memory.obstacle;
  if (range.end() > memory.begin + memory.size) return "it lies in several allocations";
  SETO_ASSIGN(const Window* const window, window_of(memory));
  return window->at_readers.empty() ? "the driver does not map it in other processes" : nullptr;
}

// Windows are removed by this thread, or where their memory is freed, which no call may use then. So the pointer stays valid.
Result<const LentWindows::Window*> LentWindows::window_of(const Memory& memory) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = windows_.find(memory.begin);
    if (found != windows_.end() && found->second.number == memory.number) return &found->second;
  }
  forget_overlapping(memory);
  Result<std::vector<Address>> offered = offer(memory, Deadline::after_ms(kAnswerMs));
  // A driver that refuses is `unavailable`; a process that is lost is not.
  if (!offered.ok() && offered.status().code() != Code::unavailable) return offered.status();
  Window window{.number = memory.number, .size = memory.size};
  if (offered.ok()) window.at_readers = std::move(offered).value();
  const std::lock_guard lock(mutex_);
  return &windows_.insert_or_assign(memory.begin, std::move(window)).first->second;
}

// All importers map it at the same time. An answer of a reader that refuses does not keep the others' from being read.
Result<std::vector<Address>> LentWindows::offer(const Memory& memory, Deadline until) {
  const cuda::Driver& driver = setup_.gpu->driver();
  ImportRequest request{.number = memory.number, .size = memory.size};
  PrivateFd file;
  if (memory.handle == 0) {
    request.kind = ImportRequest::Kind::map_handle;
    const DriverCode code = driver.ipc_get_mem_handle.code(&request.handle, memory.begin);
    if (code != DriverCode::success)
      return failure(Code::unavailable, "%s", std::string(driver.ipc_get_mem_handle.failed(code).text()).c_str());
  } else {
    request.kind = ImportRequest::Kind::map_file;
    Result<PrivateFd> exported = DeviceAllocations::descriptor_of(*setup_.gpu, memory.handle);
    if (!exported.ok()) return failure(Code::unavailable, "%s", std::string(exported.status().text()).c_str());
    file = std::move(exported).value();
  }
  for (const Reader& reader : readers_) {
    request.device = reader.device;
    const Status sent = send_import_request(reader.socket.get(), request, file.get(), until);
    if (!sent.ok())
      return failure(Code::remote_error, "the process of rank %d: %s", reader.rank, std::string(sent.text()).c_str());
  }
  std::vector<Address> at_readers(ranks_, memory.begin);
  Status refused;
  for (const Reader& reader : readers_) {
    SETO_ASSIGN(const ImportAnswer answer, answer_of(reader, until));
    at_readers[static_cast<std::size_t>(reader.rank)] = answer.address;
    if (answer.address == 0 && refused.ok())
      refused = failure(Code::unavailable, "rank %d cannot map memory of rank %d: %s", reader.rank, setup_.rank, answer.text);
  }
  if (refused.ok()) return at_readers;
  close_at_readers(memory.number);
  return refused;
}

Result<ImportAnswer> LentWindows::answer_of(const Reader& reader, Deadline until) const {
  const int socket = reader.socket.get();
  while (!wait_for(socket, POLLIN, until.sooner_ms(kLookMs)).ok()) {
    if (setup_.is_hopeless()) return failure(Code::remote_error, "the communicator has failed");
    if (until.passed())
      return failure(Code::timeout, "the process of rank %d did not map memory of rank %d in time", reader.rank, setup_.rank);
  }
  ImportAnswer answer;
  const ssize_t size = recv(socket, &answer, sizeof answer, MSG_DONTWAIT);
  if (size != static_cast<ssize_t>(sizeof answer))
    return failure(Code::remote_error, "the process of rank %d has ended, or does not map memory of others any more",
                   reader.rank);
  answer.text[sizeof answer.text - 1] = '\0';
  return answer;
}

Result<std::vector<LentDistance>> LentWindows::distances(BufferRange input, BufferRange output, const Use& use) {
  std::vector<Address> of_input(ranks_), of_output(ranks_);
  SETO_TRY(note_use(input, use, of_input));
  SETO_TRY(note_use(output, use, of_output));
  make_room(use.ended);
  std::vector<LentDistance> distances(ranks_);
  for (std::size_t rank = 0; rank < ranks_; ++rank) distances[rank] = {of_input[rank], of_output[rank]};
  return distances;
}

Status LentWindows::note_use(BufferRange range, const Use& use, std::vector<Address>& distances) {
  if (range.size == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto after = windows_.upper_bound(range.begin);
  const auto found = after == windows_.begin() ? windows_.end() : std::prev(after);
  if (found == windows_.end() || range.end() > found->first + found->second.size || found->second.at_readers.empty())
    return failure(Code::internal, "a buffer was not offered to its readers");
  found->second.last_launch = use.launch;
  found->second.is_captured = found->second.is_captured || use.is_captured;
  for (std::size_t rank = 0; rank < ranks_; ++rank) distances[rank] = found->second.at_readers[rank] - found->first;
  return {};
}

Result<Address> LentWindows::copy_memory(std::size_t size) {
  if (size > copy_size_) {
    // Graphs and launches under way use what was given before, so it is not freed. Doubling bounds the loss.
    const std::size_t whole = std::max(std::bit_ceil(size), kSmallestCopy);
    SETO_ASSIGN(const DevicePointer made, DeviceAllocations::of_process().allocate(setup_.gpu, whole));
    copies_.push_back(made);
    copy_size_ = whole;
  }
  const Address copy = copies_.back();
  SETO_ASSIGN(const char* const obstacle, obstacle_in({copy, copy_size_}));
  if (obstacle != nullptr) return failure(Code::unavailable, "memory for copies of buffers cannot be shared: %s", obstacle);
  return copy;
}

// The user has freed memory without this library's knowledge, and other memory has its addresses now.
void LentWindows::forget_overlapping(const Memory& memory) {
  std::vector<std::uint64_t> numbers;
  {
    const std::lock_guard lock(mutex_);
    for (auto each = windows_.begin(); each != windows_.end();) {
      if (each->first < memory.begin + memory.size && memory.begin < each->first + each->second.size) {
        numbers.push_back(each->second.number);
        each = windows_.erase(each);
      } else {
        ++each;
      }
    }
  }
  for (const std::uint64_t number : numbers) close_at_readers(number);
}

// More windows are kept only if graphs or launches under way use them.
void LentWindows::make_room(std::uint64_t ended) {
  std::vector<std::uint64_t> numbers;
  {
    const std::lock_guard lock(mutex_);
    while (windows_.size() > kMostWindows) {
      auto oldest = windows_.end();
      for (auto each = windows_.begin(); each != windows_.end(); ++each) {
        if (each->second.is_captured || each->second.last_launch > ended) continue;
        if (oldest == windows_.end() || each->second.last_launch < oldest->second.last_launch) oldest = each;
      }
      if (oldest == windows_.end()) break;
      numbers.push_back(oldest->second.number);
      windows_.erase(oldest);
    }
  }
  for (const std::uint64_t number : numbers) close_at_readers(number);
}

// A process that does not take it has ended, or closes all at the end of this communicator.
void LentWindows::close_at_readers(std::uint64_t number) {
  for (const Reader& reader : readers_)
    static_cast<void>(send_import_request(reader.socket.get(),
                                          {.kind = ImportRequest::Kind::close, .device = reader.device, .number = number}, -1,
                                          Deadline::after_ms(kCloseMs)));
}

void LentWindows::released(std::uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(windows_.begin(), windows_.end(),
                                    [&](const auto& one) { return one.second.number == (kOfLibrary | number); });
    if (found == windows_.end()) return;
    windows_.erase(found);
  }
  close_at_readers(kOfLibrary | number);
}

}  // namespace seto
