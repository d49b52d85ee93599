// The module seto.torch._backend.

#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>
#include <unistd.h>

#include <memory>

#include "src/torch/arguments.h"
#include "src/torch/backend.h"
#include "src/torch/completion_threads.h"
#include "src/torch/device/native_stream.h"
#include "src/torch/errors.h"
#include "src/torch/interrupts.h"
#include "src/torch/types.h"

namespace seto::torch_backend {
namespace {

namespace py = pybind11;
using BackendPtr = c10::intrusive_ptr<c10d::Backend>;

// The time for users' callbacks that still run when the interpreter ends.
constexpr std::chrono::milliseconds kPatienceAtExit{2000};

BackendPtr make_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks, std::chrono::milliseconds timeout,
                        const std::string& name, const std::vector<std::int64_t>& global_ranks, const std::string& codec,
                        const std::string& algorithm) {
  auto options = c10::make_intrusive<GroupOptions>(timeout);
  options->codec = codec;
  options->algorithm = algorithm;
  options->group_name = name;
  return c10::make_intrusive<Backend>(Backend::Group{store, rank, ranks, global_ranks, name}, std::move(options));
}

Backend& own(const BackendPtr& backend) {
  auto* const found = dynamic_cast<Backend*>(backend.get());
  if (found == nullptr) Arguments("group").refuse("its backend is " + backend->getBackendName());
  return *found;
}

c10::intrusive_ptr<c10d::Work> all_reduce_coded(const BackendPtr& backend, const at::Tensor& tensor, const c10d::ReduceOp& op,
                                                const std::string& codec, const std::shared_ptr<ErrorFeedback>& feedback) {
  int id = 0;
  check(setoCodecId(codec.c_str(), &id), "codec");
  return own(backend).all_reduce_coded(tensor, op, id, feedback.get());
}

// The state of the communicator for tensors of this device.
std::string dump(const BackendPtr& backend, at::Device device, bool json) {
  const setoFormat_t format = json ? setoFormatJson : setoFormatText;
  if (device.is_cpu()) return own(backend).communicator()->dump(format);
  const auto found = own(backend).on_devices().find(device);
  Arguments("dump").check(found != nullptr, "this group has made no call on ", device);
  return found->dump(format);
}

// Raises for an unknown codec.
bool takes(const std::string& codec, at::ScalarType type) {
  int id = 0;
  check(setoCodecId(codec.c_str(), &id), "codec");
  std::size_t size = 0;
  return setoCodecSize(id, moved_as(type).type, 1, &size) == setoSuccess;
}

std::shared_ptr<ErrorFeedback> make_error_feedback(const BackendPtr& backend, const at::Tensor& like) {
  Arguments("error feedback").check(like.is_cpu(), "it exists for tensors in host memory, but this one is on ", like.device());
  return std::make_shared<ErrorFeedback>(*own(backend).communicator(), static_cast<std::size_t>(like.numel()),
                                         like.scalar_type());
}

// Python runs signal handlers on the main thread only, also in a forked child. Ctrl-C raises KeyboardInterrupt.
void run_signal_handlers() {
  if (gettid() != getpid() || Py_IsInitialized() == 0) return;
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// Versions of torch whose C++ does not tell the CUDA stream tell it here.
void* native_handle_by_python(const c10::Stream& stream) {
  const py::gil_scoped_acquire gil;
  const py::object found =
      py::module_::import("torch.cuda")
          .attr("Stream")(py::arg("stream_id") = stream.id(), py::arg("device_index") = int{stream.device_index()},
                          py::arg("device_type") = static_cast<int>(stream.device_type()));
  return reinterpret_cast<void*>(found.attr("cuda_stream").cast<std::uintptr_t>());
}

// The class object lives as long as the process.
void translate_argument_errors() {
  static PyObject* const kind = py::object(py::module_::import("seto.torch").attr("ArgumentError")).release().ptr();
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(std::move(thrown));
    } catch (const ArgumentError& error) {
      PyErr_SetString(kind, error.what_without_backtrace());
    }
  });
}

}  // namespace
}  // namespace seto::torch_backend

PYBIND11_MODULE(_backend, module) {
  namespace py = pybind11;
  using namespace seto::torch_backend;  // NOLINT: this file is the module of that namespace
  const auto release = py::call_guard<py::gil_scoped_release>();
  translate_argument_errors();
  look_for_interrupts_by(&run_signal_handlers);
  ask_for_native_handles_by(&native_handle_by_python);
  module.doc() = "The backend of torch.distributed. Use it through seto.torch.";
  module.def("make_backend", &make_backend, py::arg("store"), py::arg("rank"), py::arg("ranks"), py::arg("timeout"),
             py::arg("name"), py::arg("global_ranks"), py::arg("codec"), py::arg("algorithm"), release);
  module.def("all_reduce_coded", &all_reduce_coded, py::arg("backend"), py::arg("tensor"), py::arg("op"), py::arg("codec"),
             py::arg("error_feedback"), release);
  module.def("dump", &dump, py::arg("backend"), py::arg("device"), py::arg("json"), release);
  module.def(
      "before_exit", [] { CompletionThreads::of_process().stop(kPatienceAtExit); }, release);
  module.def("takes", &takes, py::arg("codec"), py::arg("type"));
  module.def(
      "timeout_of", [](const BackendPtr& backend) { return own(backend).getBackendOptions()->timeout; }, py::arg("backend"));
  module.def("make_error_feedback", &make_error_feedback, py::arg("backend"), py::arg("like"), release);
  py::class_<ErrorFeedback, std::shared_ptr<ErrorFeedback>>(module, "ErrorFeedback")
      .def("reset", &ErrorFeedback::reset, release)
      .def("save", [](const ErrorFeedback& state) { return py::bytes(state.save()); })
      .def("load", [](ErrorFeedback& state, const py::bytes& saved) { state.load(saved); });
}
