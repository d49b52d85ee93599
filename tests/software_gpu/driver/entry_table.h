#pragma once

#include <map>
#include <string>

#include "src/device/cuda/driver_functions.h"
#include "tests/software_gpu/driver/stand_in.h"

namespace seto::software_gpu::driver {

// A function of the driver as other programs call it, around one that takes the state and throws.
template <auto Body, class... Arguments>
struct Entry {
  static inline std::string name{};
  static inline unsigned rules = 0;

  static cuda::DriverCode call(Arguments... arguments) {
    return enter(name, rules, [&](StandIn& stand_in) { Body(stand_in, arguments...); });
  }
};

// The functions that cuGetProcAddress finds. Names, versions and arguments come from the declarations of the library, which a
// test compares with CUDA's header.
class EntryTable final {
 public:
  struct Row {
    void* address = nullptr;
    int version = 0;
  };

  // Adds the function that the library declares as `call`.
  template <auto Body, class... Arguments>
  void add(const cuda::Call<Arguments...>& call, unsigned rules = 0) {
    using Made = Entry<Body, Arguments...>;
    Made::name = call.name();
    Made::rules = rules;
    rows_[call.name()] = {reinterpret_cast<void*>(&Made::call), call.version()};
  }
  void add_plain(const std::string& name, void* address, int version) { rows_[name] = {address, version}; }
  [[nodiscard]] const Row* find(const std::string& name) const {
    const auto found = rows_.find(name);
    return found == rows_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Row> rows_;
};

void add_device_entries(EntryTable& table, const cuda::DriverFunctions& d);
void add_memory_entries(EntryTable& table, const cuda::DriverFunctions& d);
void add_multicast_entries(EntryTable& table, const cuda::DriverFunctions& d);
void add_sharing_entries(EntryTable& table, const cuda::DriverFunctions& d);
void add_pointer_entries(EntryTable& table, const cuda::DriverFunctions& d);
void add_copy_entries(EntryTable& table, const cuda::DriverFunctions& d);
void add_stream_entries(EntryTable& table, const cuda::DriverFunctions& d);
void add_kernel_entries(EntryTable& table, const cuda::DriverFunctions& d);
void add_graph_entries(EntryTable& table, const cuda::DriverFunctions& d);

// For the results of calls: a result that the caller does not ask for is none.
template <class T, class Value>
void give(T* into, const Value& value) {
  if (into != nullptr) *into = static_cast<T>(value);
}
template <class T>
void need(const T* pointer) {
  if (pointer == nullptr) throw DriverError(cuda::DriverCode::invalid_value, "a pointer is NULL");
}

}  // namespace seto::software_gpu::driver
