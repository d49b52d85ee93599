// Modules, kernels and launches.
#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/software_gpu/driver/driver_error.h"
#include "tests/software_gpu/driver/entry_table.h"
#include "tests/software_gpu/driver/fatbin.h"

namespace seto::software_gpu::driver {
namespace {

using cuda::KernelAttribute;

constexpr int kMostThreads = 1024;
constexpr int kRegisters = 32;  // the stand-in does not count them

Module& module_of(StandIn& s, cuda::Module handle) {
  const auto found = s.modules.find(handle);
  if (found == s.modules.end()) throw DriverError(DriverCode::invalid_handle, "there is no such module");
  return *found->second;
}

Kernel& kernel_of(StandIn& s, cuda::Kernel handle) {
  const auto found = s.kernels.find(handle);
  if (found == s.kernels.end()) throw DriverError(DriverCode::invalid_handle, "there is no such kernel");
  return *found->second;
}

// Loading may have to give memory to the module, for which the real driver stops the GPU.
void module_load_data(StandIn& s, cuda::Module* module, const void* image) {
  need(module);
  Context& context = s.current();
  s.wait_for_kernels("cuModuleLoadData", &context);
  auto made = std::make_unique<Module>();
  made->context = &context;
  made->program = &s.machine().load(context.gpu, ptx_of_image(image, s.settings().capability));
  *module = reinterpret_cast<cuda::Module>(made.get());
  s.modules[made.get()] = std::move(made);
}

void module_unload(StandIn& s, cuda::Module handle) {
  const Module& module = module_of(s, handle);
  s.wait_for_all("cuModuleUnload", module.context);
  std::erase_if(s.kernels, [&](const auto& each) { return each.second->module == &module; });
  s.modules.erase(handle);
}

void module_get_function(StandIn& s, cuda::Kernel* kernel, cuda::Module handle, const char* name) {
  need(kernel);
  need(name);
  Module& module = module_of(s, handle);
  const Function* const function = module.program->entry(name);
  if (function == nullptr) throw DriverError(DriverCode::not_found, std::string("the module has no kernel '") + name + "'");
  auto made = std::make_unique<Kernel>();
  made->module = &module;
  made->function = function;
  *kernel = reinterpret_cast<cuda::Kernel>(made.get());
  s.kernels[made.get()] = std::move(made);
}

void module_get_global(StandIn& s, cuda::DevicePointer* pointer, std::size_t* bytes, cuda::Module handle, const char* name) {
  const Program& program = *module_of(s, handle).program;
  const auto found = program.global_addresses.find(name);
  if (found == program.global_addresses.end()) throw DriverError(DriverCode::not_found);
  const Allocation* const allocation = s.machine().addresses().find(found->second);
  give(pointer, found->second);
  give(bytes, allocation == nullptr ? 0 : allocation->bytes);
}

void func_get_attribute(StandIn& s, int* value, KernelAttribute attribute, cuda::Kernel handle) {
  const Kernel& kernel = kernel_of(s, handle);
  switch (attribute) {
    case KernelAttribute::max_threads_per_block:
      return give(value, static_cast<int>(kernel.function->most_threads));
    case KernelAttribute::static_shared_bytes:
      return give(value, kernel.function->shared_bytes);
    case KernelAttribute::local_bytes:
      return give(value, kernel.function->local_bytes);
    case KernelAttribute::registers:
      return give(value, kRegisters);
    case KernelAttribute::max_dynamic_shared_bytes:
      return give(value, kernel.most_dynamic_shared);
  }
  throw DriverError(DriverCode::invalid_value, "the stand-in does not know this attribute");
}

void func_set_attribute(StandIn& s, cuda::Kernel handle, KernelAttribute attribute, int value) {
  Kernel& kernel = kernel_of(s, handle);
  if (attribute != KernelAttribute::max_dynamic_shared_bytes) throw DriverError(DriverCode::invalid_value);
  const std::uint64_t wanted = static_cast<std::uint64_t>(value) + kernel.function->shared_bytes;
  if (value < 0 || wanted > s.machine().settings().limits.shared_bytes - 1024)
    throw DriverError(DriverCode::invalid_value, "a multiprocessor has less shared memory");
  kernel.most_dynamic_shared = value;
}

int blocks_on_a_multiprocessor(StandIn& s, const Kernel& kernel, std::uint64_t threads, std::uint64_t dynamic_shared) {
  const MultiprocessorLimits& limits = s.machine().settings().limits;
  const std::uint64_t shared = kernel.function->shared_bytes + dynamic_shared;
  std::uint64_t blocks = std::min<std::uint64_t>(limits.blocks, threads == 0 ? 0 : limits.threads / threads);
  if (shared > 0) blocks = std::min<std::uint64_t>(blocks, limits.shared_bytes / shared);
  return static_cast<int>(blocks);
}

void occupancy_max_active_blocks(StandIn& s, int* blocks, cuda::Kernel kernel, int threads, std::size_t dynamic_shared) {
  if (threads <= 0 || threads > kMostThreads) throw DriverError(DriverCode::invalid_value);
  give(blocks, blocks_on_a_multiprocessor(s, kernel_of(s, kernel), static_cast<std::uint64_t>(threads), dynamic_shared));
}

struct Shape {
  Dim3 grid, block;
  unsigned shared = 0;
  bool cooperative = false;
};

void check_shape(StandIn& s, const Kernel& kernel, const Shape& shape) {
  if (shape.grid.count() == 0 || shape.block.count() == 0 || shape.block.count() > kMostThreads)
    throw DriverError(DriverCode::invalid_value, "a grid of 0 blocks, or a block of 0 or of more than 1024 threads");
  if (shape.block.count() > kernel.function->most_threads)
    throw DriverError(DriverCode::invalid_value, "a block of more threads than the launch bounds of the kernel allow");
  if (shape.shared > static_cast<unsigned>(kernel.most_dynamic_shared))
    throw DriverError(DriverCode::invalid_value, "more dynamic shared memory than the kernel's attribute permits");
  const int resident = blocks_on_a_multiprocessor(s, kernel, shape.block.count(), shape.shared);
  if (resident == 0) throw DriverError(DriverCode::launch_out_of_resources);
  const std::uint64_t most = static_cast<std::uint64_t>(resident) * s.settings().multiprocessors;
  if (shape.cooperative && shape.grid.count() > most)
    throw DriverError(DriverCode::cooperative_launch_too_large,
                      std::to_string(shape.grid.count()) + " blocks, of which " + std::to_string(most) + " fit at once");
}

// The values that the pointers lead to, in the parameter space of the kernel.
std::vector<std::byte> arguments_of(const Function& function, void** parameters) {
  std::size_t bytes = 0;
  for (const Parameter& each : function.parameters) bytes = std::max<std::size_t>(bytes, each.offset + each.bytes);
  std::vector<std::byte> values(bytes);
  if (!function.parameters.empty()) need(parameters);
  for (std::size_t i = 0; i < function.parameters.size(); ++i) {
    need(parameters[i]);
    std::memcpy(values.data() + function.parameters[i].offset, parameters[i], function.parameters[i].bytes);
  }
  return values;
}

// Recorded once all blocks of the kernel have begun.
void record_begun(StandIn& s, Event& event, Context& context, const Done& kernel, std::shared_ptr<std::uint32_t> number) {
  Machine& machine = s.machine();
  const auto ended = [number = std::move(number), &machine] {
    const auto& all = machine.launches();
    return std::none_of(all.begin(), all.end(),
                        [&](const Launch& one) { return one.number == *number && one.started < one.request.grid.count(); });
  };
  event.capture.reset();
  event.recorded = s.scheduler().enqueue_alone(context, Task{.make = [ended] { return Work{.ended = ended}; }}, {}, kernel);
}

void launch(StandIn& s, cuda::Kernel handle, const Shape& shape, cuda::Stream stream_handle, void** parameters,
            Event* begun = nullptr) {
  const Kernel& kernel = kernel_of(s, handle);
  Stream& stream = s.stream_of(stream_handle);
  Context& context = *stream.context;
  if (kernel.module->context != &context) throw DriverError(DriverCode::invalid_context, "the kernel is of another context");
  check_shape(s, kernel, shape);
  const LaunchRequest request{.program = kernel.module->program,
                              .kernel = kernel.function->name,
                              .gpu = context.gpu,
                              .grid = shape.grid,
                              .block = shape.block,
                              .dynamic_shared = shape.shared,
                              .arguments = arguments_of(*kernel.function, parameters)};
  if (begun != nullptr && stream.capture != nullptr)
    throw DriverError(DriverCode::not_supported, "the stand-in has no launch completion events in captures");
  Machine& machine = s.machine();
  const auto first_number = std::make_shared<std::uint32_t>();  // of a launch that is not of a graph
  const bool is_of_graph = stream.capture != nullptr;
  const auto make = [request, first_number, is_of_graph, &machine] {
    auto number = is_of_graph ? std::make_shared<std::uint32_t>() : first_number;
    return Work{.start =
                    [=, &machine] {
                      machine.launch(request);
                      *number = machine.launches().back().number;
                    },
                .ended =
                    [=, &machine] {
                      const auto& all = machine.launches();
                      return std::none_of(all.begin(), all.end(), [&](const Launch& one) { return one.number == *number; });
                    }};
  };
  const Done done = s.issue(stream, Task{.make = make, .is_kernel = true});
  if (begun != nullptr) record_begun(s, *begun, context, done, first_number);
  if (done == nullptr || !s.settings().launch_blocking) return;
  s.scheduler().wait_for("a launch with CUDA_LAUNCH_BLOCKING", {done});
  if (context.failed) throw DriverError(*context.failed);
}

void launch_kernel(StandIn& s, cuda::Kernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, cuda::Stream stream, void** parameters, void** extra) {
  if (extra != nullptr) throw DriverError(DriverCode::not_supported, "the stand-in takes arguments one by one");
  launch(s, kernel, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, false}, stream, parameters);
}

void launch_kernel_ex(StandIn& s, const cuda::LaunchConfiguration* wanted, cuda::Kernel kernel, void** parameters, void** extra) {
  need(wanted);
  if (extra != nullptr) throw DriverError(DriverCode::not_supported, "the stand-in takes arguments one by one");
  Event* begun = nullptr;
  for (unsigned i = 0; i < wanted->attribute_count; ++i) {
    const cuda::LaunchAttribute& attribute = wanted->attributes[i];
    if (attribute.number != cuda::LaunchAttributeNumber::launch_completion_event)
      throw DriverError(DriverCode::not_supported, "the stand-in does not know this attribute");
    begun = &s.event_of(attribute.event);
  }
  const Dim3 grid{wanted->grid_x, wanted->grid_y, wanted->grid_z}, block{wanted->block_x, wanted->block_y, wanted->block_z};
  launch(s, kernel, {grid, block, wanted->shared, false}, wanted->stream, parameters, begun);
}

void launch_cooperative_kernel(StandIn& s, cuda::Kernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, cuda::Stream stream,
                               void** parameters) {
  launch(s, kernel, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, true}, stream, parameters);
}

}  // namespace

void add_kernel_entries(EntryTable& table, const cuda::DriverFunctions& d) {
  table.add<module_load_data>(d.module_load_data, kUnsafeInCapture);
  table.add<module_unload>(d.module_unload, kUnsafeInCapture);
  table.add<module_get_function>(d.module_get_function);
  table.add<module_get_global>(d.module_get_global);
  table.add<func_get_attribute>(d.func_get_attribute);
  table.add<func_set_attribute>(d.func_set_attribute);
  table.add<occupancy_max_active_blocks>(d.occupancy_max_active_blocks);
  table.add<launch_kernel>(d.launch_kernel);
  table.add<launch_kernel_ex>(d.launch_kernel_ex);
  table.add<launch_cooperative_kernel>(d.launch_cooperative_kernel);
}

}  // namespace seto::software_gpu::driver
