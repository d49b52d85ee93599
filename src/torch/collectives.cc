// What each call of torch is in calls of the library.

#include <c10/util/Exception.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "src/torch/backend.h"
#include "src/torch/parts.h"
#include "src/torch/reduction.h"

namespace seto::torch_backend {
namespace {

using c10d::OpType;
using Seat = Channel::Seat;

constexpr Lane kCollectives{};

// ---- arguments ----

void check_tensor(const char* call, const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "seto: ", call, " takes dense tensors, and this one is ", tensor.layout());
  TORCH_CHECK_VALUE(tensor.device().is_cpu(), "seto: ", call, " takes tensors in host memory, and this one is on ",
                    tensor.device());
}

void check_tensors(const char* call, const std::vector<at::Tensor>& tensors) {
  for (const at::Tensor& tensor : tensors) check_tensor(call, tensor);
}

void check_pairs(const char* call, const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "seto: ", call, ": ", outputs.size(), " outputs for ", inputs.size(),
                    " inputs");
  check_tensors(call, outputs);
  check_tensors(call, inputs);
}

const at::Tensor& only(const char* call, const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "seto: ", call, " takes one tensor on each rank, not ", tensors.size());
  check_tensor(call, tensors.front());
  return tensors.front();
}

const std::vector<at::Tensor>& only_list(const char* call, const std::vector<std::vector<at::Tensor>>& lists, std::size_t ranks) {
  TORCH_CHECK_VALUE(lists.size() == 1, "seto: ", call, " takes one list of tensors on each rank, not ", lists.size());
  TORCH_CHECK_VALUE(lists.front().size() == ranks, "seto: ", call, " among ", ranks, " ranks takes as many tensors, not ",
                    lists.front().size());
  check_tensors(call, lists.front());
  return lists.front();
}

void check_same_type(const char* call, const at::Tensor& one, const at::Tensor& other) {
  TORCH_CHECK_VALUE(one.scalar_type() == other.scalar_type(), "seto: ", call, ": a tensor of ", one.scalar_type(), " and one of ",
                    other.scalar_type());
}

void check_root(const char* call, std::int64_t root, std::size_t ranks) {
  TORCH_CHECK_VALUE(root >= 0 && static_cast<std::size_t>(root) < ranks, "seto: ", call, ": root ", root, " is none of ", ranks,
                    " ranks");
}

}  // namespace

// ---- one buffer ----

Channel::Call Backend::all_reduce(Work& work, const at::Tensor& tensor, const c10d::ReduceOp& op) {
  const Reduction how(tensor.scalar_type(), op);
  const at::Tensor memory = work.operands().in_out(tensor, how.memory);
  return [how, memory](const Seat& seat) {
    const Operation operation(seat, how);
    if (operation.result() != setoSuccess) return operation.result();
    return setoAllReduceConfig(memory.data_ptr(), memory.data_ptr(), elements_of(memory, how.as.elements), how.as.type,
                               operation.get(), seat.comm, seat.stream, seat.config);
  };
}

Backend::WorkPtr Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  if (tensors.size() == 1 && tensors.front().is_sparse()) return allreduce_sparse(tensors, options);
  const at::Tensor& tensor = only("all_reduce", tensors);
  const Asked asked{OpType::ALLREDUCE, "seto:all_reduce", options.timeout, kCollectives};
  auto work = begin(asked, tensors, tensors);
  return launch(asked, work, {all_reduce(*work, tensor, options.reduceOp)});
}

Backend::WorkPtr Backend::all_reduce_coded(const at::Tensor& tensor, const c10d::ReduceOp& op, int codec,
                                           const ErrorFeedback* feedback) {
  check_tensor("all_reduce", tensor);
  TORCH_CHECK_VALUE(!batch_of_thread(), "seto: a sum in a codec of its own cannot be part of a batch");
  Asked asked{OpType::ALLREDUCE, "seto:all_reduce", c10d::kUnsetTimeout, kCollectives};
  asked.codec = codec;
  asked.feedback = feedback == nullptr ? nullptr : feedback->get();
  auto work = begin(asked, {tensor}, Tensors{tensor});
  return launch(asked, work, {all_reduce(*work, tensor, op)});
}

Backend::WorkPtr Backend::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  const Asked asked{OpType::ALLREDUCE_COALESCED, "seto:all_reduce_coalesced", options.timeout, kCollectives};
  auto work = begin(asked, tensors, tensors);
  std::vector<Channel::Call> calls;
  for (const at::Tensor& tensor : tensors) {
    check_tensor("all_reduce_coalesced", tensor);
    calls.push_back(all_reduce(*work, tensor, options.reduceOp));
  }
  return launch(asked, work, std::move(calls));
}

Backend::WorkPtr Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const at::Tensor& tensor = only("broadcast", tensors);
  check_root("broadcast", options.rootRank, peers());
  const Asked asked{OpType::BROADCAST, "seto:broadcast", options.timeout, kCollectives};
  auto work = begin(asked, tensors, tensors);
  const int root = static_cast<int>(options.rootRank);
  const at::Tensor memory =
      root == getRank() ? work->operands().in(tensor, tensor.scalar_type()) : work->operands().out(tensor, tensor.scalar_type());
  const Moved as = moved_as(memory.scalar_type());
  return launch(asked, work, {[=](const Seat& seat) {
                  return setoBroadcastConfig(memory.data_ptr(), memory.data_ptr(), elements_of(memory, as.elements), as.type,
                                             root, seat.comm, seat.stream, seat.config);
                }});
}

Backend::WorkPtr Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const at::Tensor& tensor = only("reduce", tensors);
  check_root("reduce", options.rootRank, peers());
  const Asked asked{OpType::REDUCE, "seto:reduce", options.timeout, kCollectives};
  auto work = begin(asked, tensors, tensors);
  const int root = static_cast<int>(options.rootRank);
  const Reduction how(tensor.scalar_type(), options.reduceOp);
  const at::Tensor memory =
      root == getRank() ? work->operands().in_out(tensor, how.memory) : work->operands().in(tensor, how.memory);
  return launch(asked, work, {[=](const Seat& seat) {
                  const Operation operation(seat, how);
                  if (operation.result() != setoSuccess) return operation.result();
                  return setoReduceConfig(memory.data_ptr(), memory.data_ptr(), elements_of(memory, how.as.elements), how.as.type,
                                          operation.get(), root, seat.comm, seat.stream, seat.config);
                }});
}

// ---- all_gather, reduce_scatter ----

Channel::Call Backend::all_gather(Work& work, const at::Tensor& output, const at::Tensor& input) const {
  check_same_type("all_gather", output, input);
  TORCH_CHECK_VALUE(output.numel() == input.numel() * getSize(), "seto: all_gather of ", input.numel(), " elements from each of ",
                    getSize(), " ranks does not fill ", output.numel());
  const at::Tensor from = work.operands().in(input, input.scalar_type());
  const at::Tensor to = work.operands().out(output, output.scalar_type());
  const Moved as = moved_as(input.scalar_type());
  return [=](const Seat& seat) {
    return setoAllGatherConfig(from.data_ptr(), to.data_ptr(), elements_of(from, as.elements), as.type, seat.comm, seat.stream,
                               seat.config);
  };
}

Channel::Call Backend::all_gather(Work& work, const Tensors& outputs, const at::Tensor& input) const {
  check_same_type("all_gather", outputs.front(), input);
  const at::Tensor from = work.operands().in(input, input.scalar_type());
  const Parts to = parts_out(work.operands(), outputs);
  const Moved as = moved_as(input.scalar_type());
  return [=](const Seat& seat) {
    return setoAllGathervConfig(from.data_ptr(), elements_of(from, as.elements), to.base, to.counts.data(), to.places.data(),
                                as.type, seat.comm, seat.stream, seat.config);
  };
}

Backend::WorkPtr Backend::allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  const at::Tensor& input = only("all_gather", inputs);
  const Tensors& parts = only_list("all_gather", outputs, peers());
  const Asked asked{OpType::ALLGATHER, "seto:all_gather", options.timeout, kCollectives};
  auto work = begin(asked, parts, inputs);
  return launch(asked, work, {all_gather(*work, parts, input)});
}

Backend::WorkPtr Backend::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  check_tensor("all_gather_into_tensor", output);
  check_tensor("all_gather_into_tensor", input);
  const Asked asked{OpType::_ALLGATHER_BASE, "seto:_all_gather_base", options.timeout, kCollectives};
  auto work = begin(asked, {output}, Tensors{input});
  return launch(asked, work, {all_gather(*work, output, input)});
}

Backend::WorkPtr Backend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) {
  const Asked asked{OpType::ALLGATHER_COALESCED, "seto:all_gather_coalesced", options.timeout, kCollectives};
  TORCH_CHECK_VALUE(outputs.size() == peers(), "seto: all_gather_coalesced among ", peers(), " ranks takes as many lists, not ",
                    outputs.size());
  Tensors results;
  for (const Tensors& list : outputs) results.insert(results.end(), list.begin(), list.end());
  check_tensors("all_gather_coalesced", results);
  check_tensors("all_gather_coalesced", inputs);
  auto work = begin(asked, results, inputs);
  std::vector<Channel::Call> calls;
  for (std::size_t index = 0; index < inputs.size(); ++index) {
    Tensors parts;
    for (const Tensors& list : outputs) parts.push_back(list.at(index));
    calls.push_back(all_gather(*work, parts, inputs[index]));
  }
  return launch(asked, work, std::move(calls));
}

Backend::WorkPtr Backend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                          const c10d::AllgatherOptions& options) {
  const Asked asked{OpType::COALESCED, "seto:all_gather_into_tensor_coalesced", options.timeout, kCollectives};
  check_pairs("all_gather_into_tensor_coalesced", outputs, inputs);
  auto work = begin(asked, outputs, inputs);
  std::vector<Channel::Call> calls;
  for (std::size_t index = 0; index < inputs.size(); ++index) calls.push_back(all_gather(*work, outputs[index], inputs[index]));
  return launch(asked, work, std::move(calls));
}

Channel::Call Backend::reduce_scatter(Work& work, const at::Tensor& output, const at::Tensor& input,
                                      const c10d::ReduceOp& op) const {
  check_same_type("reduce_scatter", output, input);
  TORCH_CHECK_VALUE(input.numel() == output.numel() * getSize(), "seto: reduce_scatter of ", input.numel(), " elements to ",
                    getSize(), " ranks does not give ", output.numel(), " to each");
  const Reduction how(input.scalar_type(), op);
  const at::Tensor from = work.operands().in(input, how.memory);
  const at::Tensor to = work.operands().out(output, how.memory);
  return [=](const Seat& seat) {
    const Operation operation(seat, how);
    if (operation.result() != setoSuccess) return operation.result();
    return setoReduceScatterConfig(from.data_ptr(), to.data_ptr(), elements_of(to, how.as.elements), how.as.type, operation.get(),
                                   seat.comm, seat.stream, seat.config);
  };
}

Backend::WorkPtr Backend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                         const c10d::ReduceScatterOptions& options) {
  const at::Tensor& output = only("reduce_scatter", outputs);
  const Tensors& parts = only_list("reduce_scatter", inputs, peers());
  check_same_type("reduce_scatter", output, parts.front());
  const at::Tensor& own = parts[static_cast<std::size_t>(getRank())];
  TORCH_CHECK_VALUE(output.numel() == own.numel(), "seto: reduce_scatter of a part of ", own.numel(), " elements into ",
                    output.numel());
  const Asked asked{OpType::REDUCE_SCATTER, "seto:reduce_scatter", options.timeout, kCollectives};
  auto work = begin(asked, outputs, parts);
  const Reduction how(output.scalar_type(), options.reduceOp);
  const at::Tensor from = work->operands().joined_in(parts, how.memory);
  const at::Tensor to = work->operands().out(output, how.memory);
  std::vector<std::size_t> counts;
  for (const at::Tensor& part : parts) counts.push_back(elements_of(part, how.as.elements));
  return launch(asked, work, {[=](const Seat& seat) {
                  const Operation operation(seat, how);
                  if (operation.result() != setoSuccess) return operation.result();
                  return setoReduceScattervConfig(from.data_ptr(), to.data_ptr(), counts.data(), how.as.type, operation.get(),
                                                  seat.comm, seat.stream, seat.config);
                }});
}

Backend::WorkPtr Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  check_tensor("reduce_scatter_tensor", output);
  check_tensor("reduce_scatter_tensor", input);
  const Asked asked{OpType::_REDUCE_SCATTER_BASE, "seto:_reduce_scatter_base", options.timeout, kCollectives};
  auto work = begin(asked, {output}, Tensors{input});
  return launch(asked, work, {reduce_scatter(*work, output, input, options.reduceOp)});
}

Backend::WorkPtr Backend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                          const c10d::ReduceScatterOptions& options) {
  const Asked asked{OpType::REDUCE_SCATTER_TENSOR_COALESCED, "seto:reduce_scatter_tensor_coalesced", options.timeout,
                    kCollectives};
  check_pairs("reduce_scatter_tensor_coalesced", outputs, inputs);
  auto work = begin(asked, outputs, inputs);
  std::vector<Channel::Call> calls;
  for (std::size_t index = 0; index < inputs.size(); ++index)
    calls.push_back(reduce_scatter(*work, outputs[index], inputs[index], options.reduceOp));
  return launch(asked, work, std::move(calls));
}

// ---- gather, scatter ----

Backend::WorkPtr Backend::gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  const at::Tensor& input = only("gather", inputs);
  check_root("gather", options.rootRank, peers());
  const int root = static_cast<int>(options.rootRank);
  const Asked asked{OpType::GATHER, "seto:gather", options.timeout, kCollectives};
  Tensors parts;
  if (root == getRank()) parts = only_list("gather", outputs, peers());
  for (const at::Tensor& part : parts)
    TORCH_CHECK_VALUE(part.numel() == input.numel(), "seto: gather of ", input.numel(), " elements into ", part.numel());
  auto work = begin(asked, parts, inputs);
  const at::Tensor from = work->operands().in(input, input.scalar_type());
  at::Tensor to;
  if (root == getRank()) to = work->operands().joined_out(parts, input.scalar_type());
  const Moved as = moved_as(input.scalar_type());
  return launch(asked, work, {[=](const Seat& seat) {
                  return setoGatherConfig(from.data_ptr(), to.defined() ? to.data_ptr() : nullptr, elements_of(from, as.elements),
                                          as.type, root, seat.comm, seat.stream, seat.config);
                }});
}

Backend::WorkPtr Backend::scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) {
  const at::Tensor& output = only("scatter", outputs);
  check_root("scatter", options.rootRank, peers());
  const int root = static_cast<int>(options.rootRank);
  const Asked asked{OpType::SCATTER, "seto:scatter", options.timeout, kCollectives};
  Tensors parts;
  if (root == getRank()) parts = only_list("scatter", inputs, peers());
  for (const at::Tensor& part : parts)
    TORCH_CHECK_VALUE(part.numel() == output.numel(), "seto: scatter of ", part.numel(), " elements into ", output.numel());
  auto work = begin(asked, outputs, parts);
  at::Tensor from;
  if (root == getRank()) from = work->operands().joined_in(parts, output.scalar_type());
  const at::Tensor to = work->operands().out(output, output.scalar_type());
  const Moved as = moved_as(output.scalar_type());
  return launch(asked, work, {[=](const Seat& seat) {
                  return setoScatterConfig(from.defined() ? from.data_ptr() : nullptr, to.data_ptr(),
                                           elements_of(to, as.elements), as.type, root, seat.comm, seat.stream, seat.config);
                }});
}

// ---- all to all ----

Backend::WorkPtr Backend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                                        std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& options) {
  check_tensor("all_to_all_single", output);
  check_tensor("all_to_all_single", input);
  check_same_type("all_to_all_single", output, input);
  const Asked asked{OpType::ALLTOALL_BASE, "seto:all_to_all", options.timeout, kCollectives};
  const Moved as = moved_as(input.scalar_type());
  const auto sent = split_counts("all_to_all_single", input, input_splits, peers(), as.elements);
  const auto received = split_counts("all_to_all_single", output, output_splits, peers(), as.elements);
  const bool even = input_splits.empty() && output_splits.empty();
  TORCH_CHECK_VALUE(!even || input.numel() == output.numel(), "seto: all_to_all_single of ", input.numel(), " elements into ",
                    output.numel());
  auto work = begin(asked, {output}, Tensors{input});
  const at::Tensor from = work->operands().in(input, input.scalar_type());
  const at::Tensor to = work->operands().out(output, output.scalar_type());
  return launch(asked, work, {[=](const Seat& seat) {
                  if (even)
                    return setoAlltoAllConfig(from.data_ptr(), to.data_ptr(), sent.front(), as.type, seat.comm, seat.stream,
                                              seat.config);
                  return setoAllToAllvConfig(from.data_ptr(), sent.data(), nullptr, to.data_ptr(), received.data(), nullptr,
                                             as.type, seat.comm, seat.stream, seat.config);
                }});
}

Backend::WorkPtr Backend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  for (const Tensors* const tensors : {&outputs, &inputs}) {
    TORCH_CHECK_VALUE(tensors->size() == peers(), "seto: all_to_all among ", peers(), " ranks takes as many tensors, not ",
                      tensors->size());
    check_tensors("all_to_all", *tensors);
  }
  check_same_type("all_to_all", outputs.front(), inputs.front());
  const Asked asked{OpType::ALLTOALL, "seto:all_to_all", options.timeout, kCollectives};
  auto work = begin(asked, outputs, inputs);
  const Parts from = parts_in(work->operands(), inputs);
  const Parts to = parts_out(work->operands(), outputs);
  const Moved as = moved_as(inputs.front().scalar_type());
  return launch(asked, work, {[=](const Seat& seat) {
                  return setoAllToAllvConfig(from.base, from.counts.data(), from.places.data(), to.base, to.counts.data(),
                                             to.places.data(), as.type, seat.comm, seat.stream, seat.config);
                }});
}

// ---- messages, barriers ----

Backend::WorkPtr Backend::send(Tensors& tensors, int peer, int /*tag*/) {
  const at::Tensor& tensor = only("send", tensors);
  check_root("send", peer, peers());
  const Asked asked{OpType::SEND, "seto:send", c10d::kUnsetTimeout, {Lane::Kind::sends, peer}};
  auto work = begin(asked, {}, tensors);
  const at::Tensor memory = work->operands().in(tensor, tensor.scalar_type());
  const Moved as = moved_as(memory.scalar_type());
  return launch(asked, work, {[=](const Seat& seat) {
                  return setoSendConfig(memory.data_ptr(), elements_of(memory, as.elements), as.type, peer, seat.comm,
                                        seat.stream, seat.config);
                }});
}

Backend::WorkPtr Backend::recv(Tensors& tensors, int peer, int /*tag*/) {
  const at::Tensor& tensor = only("recv", tensors);
  check_root("recv", peer, peers());
  const Asked asked{OpType::RECV, "seto:recv", c10d::kUnsetTimeout, {Lane::Kind::receives, peer}, peer};
  auto work = begin(asked, tensors, tensors);
  const at::Tensor memory = work->operands().out(tensor, tensor.scalar_type());
  const Moved as = moved_as(memory.scalar_type());
  return launch(asked, work, {[=](const Seat& seat) {
                  return setoRecvConfig(memory.data_ptr(), elements_of(memory, as.elements), as.type, peer, seat.comm,
                                        seat.stream, seat.config);
                }});
}

Backend::WorkPtr Backend::recvAnysource(Tensors& tensors, int /*tag*/) {
  const at::Tensor& tensor = only("recv", tensors);
  TORCH_CHECK_VALUE(batch_of_thread() == nullptr, "seto: a receive from any rank cannot be part of a batch");
  const Asked asked{OpType::RECVANYSOURCE, "seto:recvAnySource", c10d::kUnsetTimeout, {Lane::Kind::receives_of_any, 0}};
  auto work = begin(asked, tensors, tensors);
  const at::Tensor memory = work->operands().out(tensor, tensor.scalar_type());
  const Moved as = moved_as(memory.scalar_type());
  int* const source = work->source();
  return launch(asked, work, {[=](const Seat& seat) {
                  return setoRecvAnyConfig(memory.data_ptr(), elements_of(memory, as.elements), as.type, source, seat.comm,
                                           seat.stream, seat.config);
                }});
}

Backend::WorkPtr Backend::barrier(const c10d::BarrierOptions& options) {
  const Asked asked{OpType::BARRIER, "seto:barrier", options.timeout, kCollectives};
  auto work = begin(asked, {}, std::nullopt);
  return launch(asked, work, {[](const Seat& seat) { return setoBarrierConfig(seat.comm, seat.stream, seat.config); }});
}

void Backend::monitoredBarrier(const c10d::BarrierOptions& options, bool /*wait_all*/) {
  const WorkPtr work = barrier(options);
  try {
    work->wait(kNoTimeout);
  } catch (const c10::DistBackendError& error) {
    if (channel_->error() != setoTimeout) throw;
    const bool own_limit = options.timeout >= std::chrono::milliseconds(0);
    const auto limit = own_limit ? options.timeout : options_->timeout;
    C10_THROW_ERROR(DistBackendError, c10::str("Rank ", getRank(), " timed out in monitoredBarrier after ", limit.count(),
                                               " ms: ", error.what_without_backtrace()));
  }
}

}  // namespace seto::torch_backend
