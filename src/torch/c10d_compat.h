#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

// Differences between the c10d headers of torch versions: declarations that older versions lack. find_torch.py looks into the
// installed headers.
namespace seto::torch_backend {

#ifdef SETO_TORCH_HAS_ERROR_TYPE
using c10d::ErrorType;
#else
enum class ErrorType { SUCCESS, TIMEOUT, COMM_ERROR, REMOTE_ERROR };
#endif

#ifdef SETO_TORCH_HAS_COALESCED_REDUCE_SCATTER
constexpr c10d::OpType kReduceScatterTensorCoalesced = c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED;
#else
constexpr c10d::OpType kReduceScatterTensorCoalesced = c10d::OpType::COALESCED;
#endif

struct C10dCompatOptions : c10d::Backend::Options {
  using c10d::Backend::Options::Options;

#ifdef SETO_TORCH_HAS_GROUP_NAME
  static std::string name_in(const c10d::Backend::Options& options) { return options.group_name; }
#else
  static std::string name_in(const c10d::Backend::Options& /*options*/) { return ""; }
  std::string group_name;
#endif
};

// A base class with the functions that some versions lack. An override of one of them overrides torch's function where torch has
// it.
class C10dCompat : public c10d::Backend {
 public:
  using c10d::Backend::Backend;

#ifndef SETO_TORCH_HAS_BACKEND_OPTIONS
  virtual c10::intrusive_ptr<Options> getBackendOptions() = 0;
#endif
#ifndef SETO_TORCH_HAS_COALESCING_QUESTION
  [[nodiscard]] virtual bool supportsCoalescing() const = 0;
#endif
#ifndef SETO_TORCH_HAS_SPLIT
  virtual c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                                  const c10::intrusive_ptr<Options>& options) = 0;
#endif
#ifndef SETO_TORCH_HAS_SET_TIMEOUT
  virtual void setTimeout(std::chrono::milliseconds timeout) = 0;
#endif
#ifndef SETO_TORCH_HAS_ERROR_TYPE
  virtual ErrorType getError() = 0;
#endif
#ifndef SETO_TORCH_HAS_ABORT
  virtual void abort() = 0;
#endif
#ifndef SETO_TORCH_HAS_SHUTDOWN
  virtual void shutdown() = 0;
#endif
};

}  // namespace seto::torch_backend
