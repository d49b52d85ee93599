// torch's other calls, as calls of the library: gather, scatter, all-to-all, messages, barriers.

#include <c10/util/Exception.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "src/torch/arguments.h"
#include "src/torch/backend.h"
#include "src/torch/parts.h"
#include "src/torch/types.h"

namespace seto::torch_backend {

namespace {

using c10d::OpType;
using IssueTarget = Communicator::IssueTarget;

void check_tag(const Arguments& arguments, int tag) { arguments.check(tag >= 0, "tag ", tag, ": tags are not negative"); }

// A call of a batch uses the batch's configuration except for the tag.
setoCallConfig_t with_tag(const IssueTarget& target, int tag) {
  setoCallConfig_t config = *target.config;
  config.messageTag = static_cast<std::uint32_t>(tag);
  return config;
}

}  // namespace

// ---- gather, scatter ----

Backend::WorkPtr Backend::gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  const Arguments arguments("gather");
  arguments.root(options.rootRank, peers());
  const at::Tensor& input = arguments.only(inputs, "input ");
  const int root = static_cast<int>(options.rootRank);
  const Asked asked = collective(OpType::GATHER, "seto:gather", options);
  Tensors parts;
  if (root == getRank())
    parts = arguments.list_for_ranks(outputs, peers(), "output", "Output");
  else
    arguments.check(outputs.empty(), "requires empty output on non-root");
  arguments.same_type(input, parts);
  arguments.same_size(input, parts);
  auto work = begin(asked, parts, inputs);
  const at::Tensor from = work->operands().in(input, input.scalar_type());
  at::Tensor to;
  if (root == getRank()) to = work->operands().joined_out(parts, input.scalar_type());
  const Moved as = moved_as(input.scalar_type());
  return launch(asked, work, {[=](const IssueTarget& target) {
                  return setoGatherConfig(from.data_ptr(), to.defined() ? to.data_ptr() : nullptr, elements_of(from, as.elements),
                                          as.type, root, target.comm, target.stream, target.config);
                }});
}

Backend::WorkPtr Backend::scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) {
  const Arguments arguments("scatter");
  arguments.root(options.rootRank, peers());
  const at::Tensor& output = arguments.only(outputs, "output ");
  const int root = static_cast<int>(options.rootRank);
  const Asked asked = collective(OpType::SCATTER, "seto:scatter", options);
  Tensors parts;
  if (root == getRank())
    parts = arguments.list_for_ranks(inputs, peers(), "input", "Input");
  else
    arguments.check(inputs.empty(), "requires empty input on non-root");
  arguments.same_type(output, parts);
  arguments.same_size(output, parts);
  auto work = begin(asked, outputs, parts);
  at::Tensor from;
  if (root == getRank()) from = work->operands().joined_in(parts, output.scalar_type());
  const at::Tensor to = work->operands().out(output, output.scalar_type());
  const Moved as = moved_as(output.scalar_type());
  return launch(asked, work, {[=](const IssueTarget& target) {
                  return setoScatterConfig(from.defined() ? from.data_ptr() : nullptr, to.data_ptr(),
                                           elements_of(to, as.elements), as.type, root, target.comm, target.stream,
                                           target.config);
                }});
}

// ---- all to all ----

Backend::WorkPtr Backend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) {
  const Arguments arguments("all_to_all_single");
  arguments.usable({output, input});
  arguments.same_type(input, {output});
  const Asked asked = collective(OpType::ALLTOALL_BASE, "seto:all_to_all", options);
  const Moved as = moved_as(input.scalar_type());
  const auto sent = split_counts(arguments, input, input_splits, peers(), as.elements);
  const auto received = split_counts(arguments, output, output_splits, peers(), as.elements);
  const bool even = input_splits.empty() && output_splits.empty();
  arguments.check(!even || input.numel() == output.numel(), input.numel(), " elements into ", output.numel());
  auto work = begin(asked, {output}, Tensors{input});
  const bool apart = !share_bytes({input, output});
  const at::Tensor from = work->operands().in(apart ? input : input.clone(), input.scalar_type());
  const at::Tensor to = work->operands().out(output, output.scalar_type());
  return launch(asked, work, {[=](const IssueTarget& target) {
                  if (even)
                    return setoAlltoAllConfig(from.data_ptr(), to.data_ptr(), sent.front(), as.type, target.comm, target.stream,
                                              target.config);
                  return setoAllToAllvConfig(from.data_ptr(), sent.data(), nullptr, to.data_ptr(), received.data(), nullptr,
                                             as.type, target.comm, target.stream, target.config);
                }});
}

Backend::WorkPtr Backend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  const Arguments arguments("all_to_all");
  for (const Tensors* const tensors : {&outputs, &inputs})
    arguments.check(tensors->size() == peers(), tensors == &inputs ? "input" : "output", " tensor list size ", tensors->size(),
                    " does not match world size ", peers());
  for (const Tensors* const tensors : {&outputs, &inputs}) {
    arguments.usable(*tensors);
    arguments.same_type(inputs.front(), *tensors);
  }
  const Asked asked = collective(OpType::ALLTOALL, "seto:all_to_all", options);
  auto work = begin(asked, outputs, inputs);
  const Parts from = parts_in(work->operands(), inputs);
  const Parts to = parts_out(work->operands(), outputs);
  const Moved as = moved_as(inputs.front().scalar_type());
  return launch(asked, work, {[=](const IssueTarget& target) {
                  return setoAllToAllvConfig(from.base, from.counts.data(), from.places.data(), to.base, to.counts.data(),
                                             to.places.data(), as.type, target.comm, target.stream, target.config);
                }});
}

// ---- messages, barriers ----

Backend::WorkPtr Backend::send(Tensors& tensors, int peer, int tag) {
  const Arguments arguments("send");
  check_tag(arguments, tag);
  const at::Tensor& tensor = arguments.only(tensors);
  arguments.check(peer >= 0 && peer < getSize(), "there is no rank ", peer, " among ", getSize());
  const Asked asked{OpType::SEND, "seto:send", c10d::kUnsetTimeout, {StreamKey::Kind::sends, peer}};
  auto work = begin(asked, {}, tensors);
  const at::Tensor memory = work->operands().in(tensor, tensor.scalar_type());
  const Moved as = moved_as(memory.scalar_type());
  return launch(asked, work, {[=](const IssueTarget& target) {
                  const setoCallConfig_t config = with_tag(target, tag);
                  return setoSendConfig(memory.data_ptr(), elements_of(memory, as.elements), as.type, peer, target.comm,
                                        target.stream, &config);
                }});
}

Backend::WorkPtr Backend::recv(Tensors& tensors, int peer, int tag) {
  const Arguments arguments("recv");
  check_tag(arguments, tag);
  const at::Tensor& tensor = arguments.only(tensors);
  arguments.check(peer >= 0 && peer < getSize(), "there is no rank ", peer, " among ", getSize());
  const Asked asked{OpType::RECV, "seto:recv", c10d::kUnsetTimeout, {StreamKey::Kind::receives, peer}, peer};
  auto work = begin(asked, tensors, tensors);
  const at::Tensor memory = work->operands().out(tensor, tensor.scalar_type());
  const Moved as = moved_as(memory.scalar_type());
  return launch(asked, work, {[=](const IssueTarget& target) {
                  const setoCallConfig_t config = with_tag(target, tag);
                  return setoRecvConfig(memory.data_ptr(), elements_of(memory, as.elements), as.type, peer, target.comm,
                                        target.stream, &config);
                }});
}

Backend::WorkPtr Backend::recvAnysource(Tensors& tensors, int tag) {
  const Arguments arguments("recv");
  check_tag(arguments, tag);
  const at::Tensor& tensor = arguments.only(tensors);
  arguments.check(batch_of_thread() == nullptr, "a receive from any rank cannot be part of a batch");
  const Asked asked{OpType::RECVANYSOURCE, "seto:recvAnySource", c10d::kUnsetTimeout, {StreamKey::Kind::receives_of_any, 0}};
  auto work = begin(asked, tensors, tensors);
  const at::Tensor memory = work->operands().out(tensor, tensor.scalar_type());
  const Moved as = moved_as(memory.scalar_type());
  int* const source = work->source();
  return launch(asked, work, {[=](const IssueTarget& target) {
                  const setoCallConfig_t config = with_tag(target, tag);
                  return setoRecvAnyConfig(memory.data_ptr(), elements_of(memory, as.elements), as.type, source, target.comm,
                                           target.stream, &config);
                }});
}

// A barrier names a device if the caller did, by device_ids or by device_id of the group; else it is one of the host.
Backend::WorkPtr Backend::barrier(const c10d::BarrierOptions& options) {
  if (options.device && !options.device->is_cpu() && options.device->has_index()) return barrier_on(*options.device, options);
  if (!options.device_ids.empty())
    return barrier_on(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(options.device_ids.front())), options);
  return barrier_on(getBoundDeviceId().value_or(c10::kCPU), options);
}

Backend::WorkPtr Backend::barrier_on(c10::Device device, const c10d::BarrierOptions& options) {
  const Asked asked = collective(OpType::BARRIER, "seto:barrier", options);
  auto work = begin_on(device, asked, {}, std::nullopt);
  return launch(asked, work,
                {[](const IssueTarget& target) { return setoBarrierConfig(target.comm, target.stream, target.config); }});
}

void Backend::monitoredBarrier(const c10d::BarrierOptions& options, bool /*wait_all*/) {
  const WorkPtr work = barrier_on(c10::kCPU, options);  // of the host, which names the missing ranks
  try {
    work->wait(kNoTimeout);
  } catch (const c10::DistBackendError& error) {
    if (communicator_->error() != setoTimeout) throw;
    const bool own_limit = options.timeout >= std::chrono::milliseconds(0);
    const auto limit = own_limit ? options.timeout : options_->timeout;
    C10_THROW_ERROR(DistBackendError, c10::str("Rank ", getRank(), " timed out in monitoredBarrier after ", limit.count(),
                                               " ms: ", error.what_without_backtrace()));
  }
}

}  // namespace seto::torch_backend
