// Sums of sparse tensors. Every rank gathers the values of all ranks and adds them in the same order, so that all ranks have the
// same bits.

#include <cstdint>
#include <utility>
#include <vector>

#include "src/torch/arguments.h"
#include "src/torch/backend.h"

namespace seto::torch_backend {
namespace {

// The number of values of a rank, and the properties on which ranks must agree before they exchange values.
std::vector<std::int64_t> shape_of(const at::Tensor& tensor) {
  std::vector<std::int64_t> shape{tensor._nnz(), tensor.sparse_dim(), tensor.dense_dim()};
  shape.insert(shape.end(), tensor.sizes().begin(), tensor.sizes().end());
  return shape;
}

at::Tensor empty_like_with(const at::Tensor& tensor, std::int64_t dimension, std::int64_t size) {
  std::vector<std::int64_t> sizes = tensor.sizes().vec();
  sizes[static_cast<std::size_t>(dimension)] = size;
  return at::empty(sizes, tensor.options());
}

}  // namespace

// Returns when the sum is complete, because the number of values of each rank must be known before they can be sent.
Backend::WorkPtr Backend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const Arguments arguments("all_reduce of a sparse tensor");
  arguments.alike(tensors);
  const at::Tensor& tensor = tensors.front();
  arguments.check(tensor.layout() == at::kSparse && tensor.device().is_cpu(),
                  "only coordinates (COO) in host memory are supported, but this one is ", tensor.layout(), " on ",
                  tensor.device());
  const bool averages = options.reduceOp == c10d::ReduceOp::AVG;
  arguments.check(averages || options.reduceOp == c10d::ReduceOp::SUM,
                  "unsupported reduction operation: sparse tensors can only be summed and averaged");
  arguments.check(!averages || (tensors.size() == 1 && !c10::isIntegralType(tensor.scalar_type(), true)), "no average of ",
                  tensors.size(), " tensors of ", tensor.scalar_type());
  arguments.check(batch_of_thread() == nullptr, "it cannot be part of a batch");
  const at::NoGradGuard no_grad;
  at::Tensor own = tensor.detach();
  for (std::size_t index = 1; index < tensors.size(); ++index) own = own + tensors[index].detach();
  own = own.coalesce();
  c10d::AllgatherOptions gathering;
  gathering.timeout = options.timeout;

  const std::vector<std::int64_t> shape = shape_of(own);
  at::Tensor mine = at::tensor(shape, at::kLong);
  at::Tensor shapes = at::empty({getSize(), mine.numel()}, at::kLong);
  _allgather_base(shapes, mine, gathering)->wait(kNoTimeout);

  std::vector<Tensors> indices(1);
  std::vector<Tensors> values(1);
  Tensors own_indices{own.indices().contiguous()};
  Tensors own_values{own.values().contiguous()};
  for (int rank = 0; rank < getSize(); ++rank) {
    const at::Tensor theirs = shapes[rank];
    arguments.check(theirs.slice(0, 1).equal(mine.slice(0, 1)), "its shape is ", tensor.sizes(), ", ", own.dense_dim(),
                    " of its dimensions dense, but rank ", rank, " has another shape");
    const auto count = theirs[0].item<std::int64_t>();
    indices.front().push_back(empty_like_with(own_indices.front(), 1, count));
    values.front().push_back(empty_like_with(own_values.front(), 0, count));
  }
  const WorkPtr first = allgather(indices, own_indices, gathering);
  allgather(values, own_values, gathering)->wait(kNoTimeout);
  first->wait(kNoTimeout);

  at::Tensor sum = at::sparse_coo_tensor(at::cat(indices.front(), 1), at::cat(values.front(), 0), tensor.sizes(),
                                         own_values.front().options().layout(at::kSparse))
                       .coalesce();
  if (averages) sum.div_(getSize());
  for (at::Tensor& one : tensors) one.copy_(sum);
  auto work = begin({c10d::OpType::ALLREDUCE, "seto:all_reduce", options.timeout, {}}, tensors, tensors);
  (void)work->ended(setoSuccess, "");
  return work;
}

}  // namespace seto::torch_backend
