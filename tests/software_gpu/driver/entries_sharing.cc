// Memory that several processes share, by file descriptor and by legacy IPC, and that other devices share, by dma-buf.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/entry_table.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::DevicePointer;
using cuda::HandleType;
using cuda::MemoryHandle;

constexpr std::uint64_t kHostPage = 4'096;
constexpr std::uint32_t kIpcMagic = 0x50A1C0DE;

// The content of a handle of legacy IPC: a memory file that the exporting process has open.
struct IpcContent {
  std::uint32_t magic = kIpcMagic;
  std::int32_t process = 0;
  std::int32_t file = 0;
  std::uint32_t gpu = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(IpcContent) <= sizeof(cuda::IpcMemoryHandle));

void check_type(HandleType type) {
  if (type != HandleType::posix_file_descriptor)
    throw DriverError(DriverCode::not_supported, "the stand-in exports memory by file descriptor only");
}

void mem_export(StandIn& s, void* target, MemoryHandle handle, HandleType type, unsigned long long) {
  need(target);
  check_type(type);
  const auto found = s.handles.find(handle);
  if (found == s.handles.end() || !found->second.first->exportable)
    throw DriverError(DriverCode::invalid_value, "the memory was not created for this type of handle");
  const int file = fcntl(found->second.first->file, F_DUPFD, 0);  // whether programs that are executed keep it, no manual says
  if (file < 0) throw DriverError(DriverCode::operating_system, std::strerror(errno));
  *static_cast<int*>(target) = file;
}

void mem_import(StandIn& s, MemoryHandle* handle, void* source, HandleType type) {
  need(handle);
  check_type(type);
  s.handles[s.next_handle] = {s.memory().import_file(static_cast<int>(reinterpret_cast<std::intptr_t>(source)), 0), 1};
  *handle = s.next_handle++;
}

void ipc_get_mem_handle(StandIn& s, cuda::IpcMemoryHandle* handle, DevicePointer pointer) {
  need(handle);
  const Range* const range = s.memory().find(pointer);
  if (range == nullptr || range->kind != Range::Kind::device)
    throw DriverError(DriverCode::invalid_value, "only memory of cuMemAlloc has a handle of IPC");
  const IpcContent content{.process = getpid(), .file = range->memory->file, .gpu = range->gpu, .bytes = range->memory->bytes};
  *handle = {};
  std::memcpy(handle->bytes, &content, sizeof(content));
}

void ipc_open_mem_handle(StandIn& s, DevicePointer* pointer, cuda::IpcMemoryHandle handle, unsigned flags) {
  need(pointer);
  s.wait_before_mapping("cuIpcOpenMemHandle");
  if (flags != cuda::kIpcLazyPeerAccess) throw DriverError(DriverCode::invalid_value, "the flag for peer access is needed");
  IpcContent content;
  std::memcpy(&content, handle.bytes, sizeof(content));
  if (content.magic != kIpcMagic) throw DriverError(DriverCode::invalid_value, "this is no handle of IPC");
  if (content.process == getpid()) throw DriverError(DriverCode::invalid_context, "the handle is of this process");
  const Context& current = s.current();
  const std::string path = "/proc/" + std::to_string(content.process) + "/fd/" + std::to_string(content.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) throw DriverError(DriverCode::map_failed, path + ": " + std::strerror(errno));
  std::shared_ptr<PhysicalMemory> memory;
  try {
    memory = s.memory().import_file(file, content.bytes);
  } catch (...) {
    ::close(file);
    throw;
  }
  ::close(file);
  const bool reached = ((s.settings().peers[current.gpu] >> memory->gpu) & 1) != 0;
  if (!reached) throw DriverError(DriverCode::peer_access_unsupported);
  *pointer = s.memory().map_imported(memory, content.process, s.peers_into(memory->gpu) | std::uint64_t{1} << current.gpu);
}

void ipc_close_mem_handle(StandIn& s, DevicePointer pointer) {
  s.wait_for_all("cuIpcCloseMemHandle", nullptr);
  s.memory().release(pointer, Range::Kind::imported, DriverCode::invalid_value);
}

// A dma-buf begins with the range. The file that stands for it holds the whole allocation, so the position of the descriptor says
// where it begins: its own position, which a duplicate would share.
void mem_get_range_handle(StandIn& s, void* target, DevicePointer pointer, std::size_t bytes, cuda::RangeHandleType type,
                          unsigned long long) {
  need(target);
  if (type != cuda::RangeHandleType::dma_buf || !s.settings().dma_buf)
    throw DriverError(DriverCode::not_supported, "no dma-buf is offered");
  const Range* const range = s.memory().find(pointer);
  const bool is_for_devices = range != nullptr && (range->kind == Range::Kind::device ||
                                                   (range->kind == Range::Kind::mapped && range->memory->for_devices));
  if (!is_for_devices || pointer + bytes > range->address + range->memory->bytes)
    throw DriverError(DriverCode::invalid_value, "the range is not within one allocation that other devices may use");
  if (pointer % kHostPage != 0 || bytes % kHostPage != 0 || bytes == 0)
    throw DriverError(DriverCode::invalid_value, "the range does not consist of whole pages of the host");
  const std::string path = "/proc/self/fd/" + std::to_string(range->memory->file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) throw DriverError(DriverCode::operating_system, path + ": " + std::strerror(errno));
  ::lseek(file, static_cast<off_t>(pointer - range->address + range->offset), SEEK_SET);
  *static_cast<int*>(target) = file;
}

void flush_direct_writes(StandIn& s, cuda::DirectFlushTarget target, cuda::DirectFlushScope scope) {
  (void)s.current();
  if (target != cuda::DirectFlushTarget::current_context ||
      (scope != cuda::DirectFlushScope::owner && scope != cuda::DirectFlushScope::all_gpus))
    throw DriverError(DriverCode::invalid_value);
  if ((s.settings().flush_options & cuda::kDirectFlushByHost) == 0)
    throw DriverError(DriverCode::not_supported, "this GPU has no flush that the host could call");
  if (s.on_flush) s.on_flush();
}

}  // namespace

void add_sharing_entries(EntryTable& table, const cuda::DriverFunctions& d) {
  table.add<mem_export>(d.mem_export);
  table.add<mem_import>(d.mem_import);
  table.add<ipc_get_mem_handle>(d.ipc_get_mem_handle);
  table.add<ipc_open_mem_handle>(d.ipc_open_mem_handle, kUnsafeInCapture);
  table.add<ipc_close_mem_handle>(d.ipc_close_mem_handle, kUnsafeInCapture);
  table.add<mem_get_range_handle>(d.mem_get_range_handle);
  table.add<flush_direct_writes>(d.flush_direct_writes);
}

}  // namespace seto::software_gpu::driver
