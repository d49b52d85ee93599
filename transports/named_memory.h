#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace seto {

struct GpuMemory;

// The memory whose users have named it to the library (setoMemAlloc, setoCommRegister): they take the name back before the memory
// goes. So a medium may keep what it has prepared of such memory, a registration with a device for example, and of no other.
//
// Of the whole process, because memory of setoMemAlloc belongs to no communicator. A forked child begins without names: what its
// parent had prepared belongs to the parent, and a child that takes a name back must not undo it. Any thread.
class NamedMemory final {
 public:
  using Name = std::uint64_t;  // never used again, not even in a child

  // A part of a medium that wants to know. Called with the lock of the names held: it calls no function of NamedMemory.
  class User {
   public:
    virtual ~User() = default;
    virtual void named(Name name, std::byte* memory, std::size_t size) = 0;
    virtual void named_gpu(Name name, const GpuMemory& memory) { static_cast<void>(name), static_cast<void>(memory); }
    // No operation begins to use the memory any more. Returns when nothing uses it, unless an operation has not ended.
    virtual void unnamed(Name name) = 0;
  };

  static NamedMemory& of_process();
  NamedMemory() = default;
  NamedMemory(const NamedMemory&) = delete;
  NamedMemory& operator=(const NamedMemory&) = delete;

  // It may overlap with other memory that has a name, and have a name already.
  [[nodiscard]] Name add(std::byte* memory, std::size_t size);
  // Memory of a GPU, which no other memory overlaps.
  [[nodiscard]] Name add_gpu(const GpuMemory& memory);
  // A name that is not known is ignored. Returns when the memory may be freed.
  void remove(Name name);

  // The user is told of all names, now and later, until it leaves.
  void enter(User& user);
  void leave(User& user);

 private:
  struct Memory {
    std::byte* data = nullptr;
    std::size_t size = 0;
    std::shared_ptr<const GpuMemory> gpu{};  // null: memory of the host
  };
  static void tell(User& user, Name name, const Memory& memory);

  std::mutex mutex_;
  std::map<Name, Memory> names_;
  std::vector<User*> users_;
};

// Memory of the library that has a name as long as this object exists.
class OwnName final {
 public:
  OwnName(std::byte* memory, std::size_t size) : name_(NamedMemory::of_process().add(memory, size)) {}
  OwnName(const OwnName&) = delete;
  OwnName& operator=(const OwnName&) = delete;
  ~OwnName() { NamedMemory::of_process().remove(name_); }

 private:
  const NamedMemory::Name name_;
};

}  // namespace seto
