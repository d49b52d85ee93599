// torch's reductions, broadcasts and all-gathers, as calls of the library.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "src/torch/arguments.h"
#include "src/torch/backend.h"
#include "src/torch/parts.h"
#include "src/torch/reduction.h"
#include "src/torch/types.h"

namespace seto::torch_backend {
namespace {

using c10d::OpType;
using IssueTarget = Communicator::IssueTarget;

void check_pairs(const Arguments& arguments, const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs) {
  arguments.check(outputs.size() == inputs.size(), outputs.size(), " outputs for ", inputs.size(), " inputs");
  arguments.usable(outputs);
  arguments.usable(inputs);
}

bool is_even(const std::vector<at::Tensor>& parts) {
  return std::all_of(parts.begin(), parts.end(), [&](const at::Tensor& part) { return part.numel() == parts.front().numel(); });
}

Communicator::Call all_gather_of(const at::Tensor& from, const at::Tensor& to) {
  const Moved as = moved_as(from.scalar_type());
  return [=](const IssueTarget& target) {
    return setoAllGatherConfig(from.data_ptr(), to.data_ptr(), elements_of(from, as.elements), as.type, target.comm,
                               target.stream, target.config);
  };
}

}  // namespace

// ---- one buffer ----

Communicator::Call Backend::all_reduce(Work& work, const at::Tensor& tensor, const c10d::ReduceOp& op) {
  const Reduction how(tensor.scalar_type(), op);
  const at::Tensor memory = work.operands().in_out(tensor, how.memory);
  return [how, memory](const IssueTarget& target) {
    const Operation operation(target, how);
    if (operation.result() != setoSuccess) return operation.result();
    return setoAllReduceConfig(memory.data_ptr(), memory.data_ptr(), elements_of(memory, how.as.elements), how.as.type,
                               operation.get(), target.comm, target.stream, target.config);
  };
}

Backend::WorkPtr Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const Arguments arguments("all_reduce");
  arguments.alike(tensors);
  if (tensors.front().is_sparse()) return allreduce_sparse(tensors, options);
  arguments.usable(tensors);
  const at::Tensor own = folded(tensors, options.reduceOp);
  const Asked asked = collective(OpType::ALLREDUCE, "seto:all_reduce", options);
  auto work = begin(asked, tensors, tensors);
  auto call = all_reduce(*work, own, options.reduceOp);
  if (tensors.size() > 1)
    for (const at::Tensor& tensor : tensors) work->operands().also(tensor, own);
  return launch(asked, work, {std::move(call)});
}

Backend::WorkPtr Backend::all_reduce_coded(const at::Tensor& tensor, const c10d::ReduceOp& op, int codec,
                                           const ErrorFeedback* feedback) {
  const Arguments arguments("all_reduce");
  arguments.usable(tensor);
  arguments.check(batch_of_thread() == nullptr, "a sum in a codec of its own cannot be part of a batch");
  Asked asked{OpType::ALLREDUCE, "seto:all_reduce", c10d::kUnsetTimeout, {}};
  asked.codec = codec;
  asked.feedback = feedback == nullptr ? nullptr : feedback->get();
  auto work = begin(asked, {tensor}, Tensors{tensor});
  return launch(asked, work, {all_reduce(*work, tensor, op)});
}

Backend::WorkPtr Backend::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  const Arguments arguments("all_reduce_coalesced");
  arguments.same_layout(tensors);
  arguments.check(tensors.front().layout() == at::kStrided, "unsupported layout: ", tensors.front().layout());
  arguments.usable(tensors);
  for (const at::Tensor& tensor : tensors)
    arguments.check(tensor.scalar_type() == tensors.front().scalar_type(), "tensors must all have the same type");
  const Asked asked = collective(OpType::ALLREDUCE_COALESCED, "seto:all_reduce_coalesced", options);
  auto work = begin(asked, tensors, tensors);
  std::vector<Communicator::Call> calls;
  Extents reduced;
  for (const at::Tensor& tensor : tensors) {
    if (reduced.add(tensor)) {
      calls.push_back(all_reduce(*work, tensor, options.reduceOp));
      continue;
    }
    const at::Tensor copy = tensor.detach().clone();  // an element that both tensors share is summed once
    calls.push_back(all_reduce(*work, copy, options.reduceOp));
    work->operands().also(tensor, copy);
  }
  return launch(asked, work, std::move(calls));
}

Backend::WorkPtr Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const Arguments arguments("broadcast");
  arguments.root(options.rootRank, peers());
  arguments.root_tensor(options.rootTensor, tensors.size());
  arguments.alike(tensors);
  arguments.usable(tensors);
  const at::Tensor& tensor = tensors[static_cast<std::size_t>(options.rootTensor)];
  const Asked asked = collective(OpType::BROADCAST, "seto:broadcast", options);
  auto work = begin(asked, tensors, tensors);
  const int root = static_cast<int>(options.rootRank);
  const at::Tensor memory =
      root == getRank() ? work->operands().in(tensor, tensor.scalar_type()) : work->operands().out(tensor, tensor.scalar_type());
  for (const at::Tensor& other : tensors)
    if (!other.is_same(tensor)) work->operands().also(other, memory);
  const Moved as = moved_as(memory.scalar_type());
  return launch(asked, work, {[=](const IssueTarget& target) {
                  return setoBroadcastConfig(memory.data_ptr(), memory.data_ptr(), elements_of(memory, as.elements), as.type,
                                             root, target.comm, target.stream, target.config);
                }});
}

Backend::WorkPtr Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const Arguments arguments("reduce");
  arguments.root(options.rootRank, peers());
  arguments.root_tensor(options.rootTensor, 1);
  const at::Tensor& tensor = arguments.only(tensors);
  const Asked asked = collective(OpType::REDUCE, "seto:reduce", options);
  auto work = begin(asked, tensors, tensors);
  const int root = static_cast<int>(options.rootRank);
  const Reduction how(tensor.scalar_type(), options.reduceOp);
  const at::Tensor memory =
      root == getRank() ? work->operands().in_out(tensor, how.memory) : work->operands().in(tensor, how.memory);
  return launch(asked, work, {[=](const IssueTarget& target) {
                  const Operation operation(target, how);
                  if (operation.result() != setoSuccess) return operation.result();
                  return setoReduceConfig(memory.data_ptr(), memory.data_ptr(), elements_of(memory, how.as.elements), how.as.type,
                                          operation.get(), root, target.comm, target.stream, target.config);
                }});
}

// ---- all_gather, reduce_scatter ----

Communicator::Call Backend::all_gather(Work& work, const at::Tensor& output, const at::Tensor& input) const {
  const Arguments arguments("all_gather");
  arguments.same_type(input, {output});
  arguments.check(output.numel() == input.numel() * getSize(), input.numel(), " elements from each of ", getSize(),
                  " ranks do not fill ", output.numel());
  const at::Tensor from = work.operands().in(input, input.scalar_type());
  return all_gather_of(from, work.operands().out(output, output.scalar_type()));
}

Communicator::Call Backend::all_gather(Work& work, const Tensors& outputs, const at::Tensor& input) const {
  const at::Tensor from = work.operands().in(input, input.scalar_type());
  // Parts of equal length: in one piece, which communicators of devices take.
  if (!input.is_cpu() && is_even(outputs)) return all_gather_of(from, work.operands().joined_out(outputs, from.scalar_type()));
  const Parts to = parts_out(work.operands(), outputs);
  const Moved as = moved_as(input.scalar_type());
  return [=](const IssueTarget& target) {
    return setoAllGathervConfig(from.data_ptr(), elements_of(from, as.elements), to.base, to.counts.data(), to.places.data(),
                                as.type, target.comm, target.stream, target.config);
  };
}

// Every list receives the parts of all tensors of all ranks.
Communicator::Call Backend::all_gather_of_several(Work& work, const std::vector<Tensors>& outputs, const Tensors& inputs) const {
  const at::Tensor from = work.operands().joined_in(inputs, inputs.front().scalar_type());
  const at::Tensor to = work.operands().joined_out(outputs.front(), from.scalar_type());
  for (std::size_t list = 1; list < outputs.size(); ++list)
    for (std::size_t part = 0; part < outputs[list].size(); ++part)
      work.operands().also(outputs[list][part], outputs.front()[part]);
  return all_gather_of(from, to);
}

Backend::WorkPtr Backend::allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  const Arguments arguments("all_gather");
  arguments.check(!inputs.empty(), "requires non-empty input tensor list");
  arguments.check(outputs.size() == inputs.size(), "requires input/output tensor lists to have the same length, not ",
                  inputs.size(), " and ", outputs.size());
  arguments.alike(inputs);
  arguments.usable(inputs);
  Tensors results;
  for (std::size_t index = 0; index < outputs.size(); ++index) {
    const Tensors& list = outputs[index];
    arguments.check(list.size() == inputs.size() * peers(), "invalid output tensor list at index ", index, " (expected length ",
                    inputs.size() * peers(), ", got ", list.size(), ")");
    arguments.usable(list);
    arguments.same_type(inputs.front(), list);
    results.insert(results.end(), list.begin(), list.end());
  }
  const Asked asked = collective(OpType::ALLGATHER, "seto:all_gather", options);
  if (inputs.size() > 1) {
    for (const Tensors& list : outputs) arguments.same_shape(inputs.front(), list);
    auto work = begin(asked, results, inputs);
    if (batch_of_thread() == nullptr) work->results_in_lists(outputs.size());
    return launch(asked, work, {all_gather_of_several(*work, outputs, inputs)});
  }
  // The parts of other ranks may have other sizes.
  const at::Tensor& own = results[static_cast<std::size_t>(getRank())];
  arguments.check(own.numel() == inputs.front().numel(), "invalid tensor size at index ", getRank(), " (expected ",
                  inputs.front().sizes(), ", got ", own.sizes(), ")");
  auto work = begin(asked, results, inputs);
  return launch(asked, work, {all_gather(*work, results, inputs.front())});
}

Backend::WorkPtr Backend::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) {
  Arguments("all_gather_into_tensor").usable({output, input});
  const Asked asked = collective(OpType::_ALLGATHER_BASE, "seto:_all_gather_base", options);
  auto work = begin(asked, {output}, Tensors{input});
  return launch(asked, work, {all_gather(*work, output, input)});
}

Backend::WorkPtr Backend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) {
  const Asked asked = collective(OpType::ALLGATHER_COALESCED, "seto:all_gather_coalesced", options);
  const Arguments arguments("all_gather_coalesced");
  arguments.check(outputs.size() == peers(), "output lists should be equal to world size, ", peers(), ", not ", outputs.size());
  Tensors results;
  for (const Tensors& list : outputs) {
    check_pairs(arguments, list, inputs);
    for (std::size_t index = 0; index < list.size(); ++index) {
      arguments.check(list[index].scalar_type() == inputs[index].scalar_type(), "invalid tensor type at index ", index);
      arguments.check(list[index].numel() == inputs[index].numel(), "invalid size of output tensor at index ", index);
    }
    results.insert(results.end(), list.begin(), list.end());
  }
  auto work = begin(asked, results, inputs);
  std::vector<Communicator::Call> calls;
  for (std::size_t index = 0; index < inputs.size(); ++index) {
    Tensors parts;
    for (const Tensors& list : outputs) parts.push_back(list.at(index));
    calls.push_back(all_gather(*work, parts, inputs[index]));
  }
  return launch(asked, work, std::move(calls));
}

Backend::WorkPtr Backend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                          const c10d::AllgatherOptions& options) {
  const Asked asked = collective(OpType::COALESCED, "seto:all_gather_into_tensor_coalesced", options);
  check_pairs(Arguments("all_gather_into_tensor_coalesced"), outputs, inputs);
  auto work = begin(asked, outputs, inputs);
  std::vector<Communicator::Call> calls;
  for (std::size_t index = 0; index < inputs.size(); ++index) calls.push_back(all_gather(*work, outputs[index], inputs[index]));
  return launch(asked, work, std::move(calls));
}

Communicator::Call Backend::reduce_scatter(Work& work, const at::Tensor& output, const at::Tensor& input,
                                           const c10d::ReduceOp& op) const {
  const Arguments arguments("reduce_scatter");
  arguments.same_type(output, {input});
  arguments.check(input.numel() == output.numel() * getSize(), input.numel(), " elements do not give ", output.numel(),
                  " to each of ", getSize(), " ranks");
  const Reduction how(input.scalar_type(), op);
  const at::Tensor from = work.operands().in(input, how.memory);
  const at::Tensor to = work.operands().out(output, how.memory);
  return [=](const IssueTarget& target) {
    const Operation operation(target, how);
    if (operation.result() != setoSuccess) return operation.result();
    return setoReduceScatterConfig(from.data_ptr(), to.data_ptr(), elements_of(to, how.as.elements), how.as.type, operation.get(),
                                   target.comm, target.stream, target.config);
  };
}

Backend::WorkPtr Backend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                         const c10d::ReduceScatterOptions& options) {
  const Arguments arguments("reduce_scatter");
  const at::Tensor& output = arguments.only(outputs, "output ");
  const Tensors& parts = arguments.list_for_ranks(inputs, peers(), "input", "Input");
  arguments.same_type(output, parts);
  const at::Tensor& own = parts[static_cast<std::size_t>(getRank())];
  arguments.check(own.numel() == output.numel(), "invalid tensor size at index ", getRank(), ": ", own.numel(), " elements into ",
                  output.numel());
  const Asked asked = collective(OpType::REDUCE_SCATTER, "seto:reduce_scatter", options);
  auto work = begin(asked, outputs, parts);
  const Reduction how(output.scalar_type(), options.reduceOp);
  const at::Tensor from = work->operands().joined_in(parts, how.memory);
  const at::Tensor to = work->operands().out(output, how.memory);
  std::vector<std::size_t> counts;
  for (const at::Tensor& part : parts) counts.push_back(elements_of(part, how.as.elements));
  const bool in_equal_parts = !output.is_cpu() && is_even(parts);
  return launch(asked, work, {[=](const IssueTarget& target) {
                  const Operation operation(target, how);
                  if (operation.result() != setoSuccess) return operation.result();
                  if (in_equal_parts)
                    return setoReduceScatterConfig(from.data_ptr(), to.data_ptr(), counts.front(), how.as.type, operation.get(),
                                                   target.comm, target.stream, target.config);
                  return setoReduceScattervConfig(from.data_ptr(), to.data_ptr(), counts.data(), how.as.type, operation.get(),
                                                  target.comm, target.stream, target.config);
                }});
}

Backend::WorkPtr Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  Arguments("reduce_scatter_tensor").usable({output, input});
  const Asked asked = collective(OpType::_REDUCE_SCATTER_BASE, "seto:_reduce_scatter_base", options);
  auto work = begin(asked, {output}, Tensors{input});
  return launch(asked, work, {reduce_scatter(*work, output, input, options.reduceOp)});
}

Backend::WorkPtr Backend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                          const c10d::ReduceScatterOptions& options) {
  const Asked asked = collective(kReduceScatterTensorCoalesced, "seto:reduce_scatter_tensor_coalesced", options);
  check_pairs(Arguments("reduce_scatter_tensor_coalesced"), outputs, inputs);
  auto work = begin(asked, outputs, inputs);
  std::vector<Communicator::Call> calls;
  for (std::size_t index = 0; index < inputs.size(); ++index)
    calls.push_back(reduce_scatter(*work, outputs[index], inputs[index], options.reduceOp));
  return launch(asked, work, std::move(calls));
}

}  // namespace seto::torch_backend
