// The Python module software_cuda.

#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/utils/pybind.h>

#include <cstdint>
#include <memory>

#include "tests/torch/software_gpu/devices.h"
#include "tests/torch/software_gpu/memory.h"

namespace seto::torch_tests {
namespace {

namespace py = pybind11;

cuda::Stream here() { return handle_of(current_stream(current_device())); }

// Keeps the current stream from going on until it is released, as a slow producer would.
class Hold final {
 public:
  Hold() {
    const cuda::Driver& on = driver_on(current_device());
    void* memory = nullptr;
    must(on.mem_host_alloc(&memory, sizeof *word_, cuda::kHostAllocPortable));
    word_ = static_cast<std::uint32_t*>(memory);
    *word_ = 0;
    cuda::DevicePointer seen = 0;
    must(on.mem_host_get_device_pointer(&seen, word_, 0));
    must(on.stream_wait_value32(here(), seen, 1, cuda::kWaitEqual));
  }
  void release() { __atomic_store_n(word_, 1U, __ATOMIC_RELEASE); }

 private:
  std::uint32_t* word_ = nullptr;  // lives as long as the process: the stream may still read it
};

// A graph of what the current stream gets until it is ended.
class Capture final {
 public:
  Capture() : stream_(here()) {
    must(driver_on(current_device()).stream_begin_capture(stream_, cuda::CaptureMode::global));
    captures() = true;
  }
  void end() {
    captures() = false;
    cuda::Graph graph = nullptr;
    must(driver().stream_end_capture(stream_, &graph));
    must(driver().graph_instantiate(&graph_, graph, 0));
    must(driver().graph_destroy(graph));
  }
  void replay() const { must(driver().graph_launch(graph_, here())); }

 private:
  cuda::Stream stream_;
  cuda::GraphExec graph_ = nullptr;
};

}  // namespace
}  // namespace seto::torch_tests

PYBIND11_MODULE(software_cuda, module) {
  using namespace seto::torch_tests;  // NOLINT: this file is the module of that namespace
  register_memory();
  module.doc() = "Torch's device cuda on the stand-in for the CUDA driver; README.md of tests/torch/software_gpu.";
  module.def("device_count", &device_count);
  module.def("set_device", [](int device) { current_device() = static_cast<c10::DeviceIndex>(device); });
  module.def("current_stream", [] { return current_stream(current_device()).id(); });
  module.def("new_stream", [] { return new_stream(current_device(), 0).id(); });
  module.def("set_stream", [](c10::StreamId number) { exchange_stream(stream_of(current_device(), number)); });
  module.def(
      "synchronize", [] { must(driver_on(current_device()).stream_synchronize(here())); },
      py::call_guard<py::gil_scoped_release>());
  py::class_<Hold>(module, "Hold").def(py::init<>()).def("release", &Hold::release);
  py::class_<Capture>(module, "Capture").def(py::init<>()).def("end", &Capture::end).def("replay", &Capture::replay);
}
