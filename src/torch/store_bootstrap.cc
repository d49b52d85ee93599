#include "src/torch/store_bootstrap.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

namespace seto::torch_backend {

StoreBootstrap::StoreBootstrap(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks, std::chrono::milliseconds timeout)
    : store_(std::move(store)), rank_(rank), ranks_(ranks), until_(std::chrono::steady_clock::now() + timeout) {}

int StoreBootstrap::all_gather(const void* mine, void* all, size_t size, void* self) {
  auto* const bootstrap = static_cast<StoreBootstrap*>(self);
  try {
    bootstrap->all_gather(static_cast<const std::uint8_t*>(mine), static_cast<std::uint8_t*>(all), size);
    return 0;
  } catch (const c10::Error& error) {
    bootstrap->why_ = error.what_without_backtrace();
    return 1;
  } catch (const std::exception& error) {
    bootstrap->why_ = error.what();
    return 1;
  }
}

// " 1, 4, 5": the ranks whose keys are not there; nothing where the store does not answer.
std::string StoreBootstrap::absent_of(const std::vector<std::string>& keys) const {
  std::string absent;
  try {
    for (std::size_t rank = 0; rank < keys.size(); ++rank)
      if (!store_->check({keys[rank]})) absent += (absent.empty() ? " " : ", ") + std::to_string(rank);
  } catch (const std::exception&) {
    return {};
  }
  return absent;
}

void StoreBootstrap::all_gather(const std::uint8_t* mine, std::uint8_t* all, std::size_t size) {
  const std::string prefix = "seto/" + std::to_string(round_++) + "/";
  store_->set(prefix + std::to_string(rank_), std::vector<std::uint8_t>(mine, mine + size));
  std::vector<std::string> keys;
  for (int rank = 0; rank < ranks_; ++rank) keys.push_back(prefix + std::to_string(rank));
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now());
  try {
    store_->wait(keys, std::max(left, std::chrono::milliseconds(1)));
  } catch (const c10::Error& error) {
    const std::string absent = absent_of(keys);
    throw std::runtime_error(absent.empty() ? error.what_without_backtrace()
                                            : "nothing has come to the store from rank" + absent + " (" +
                                                  error.what_without_backtrace() + ")");
  }
  std::vector<std::vector<std::uint8_t>> values;
  if (store_->hasExtendedApi())
    values = store_->multiGet(keys);
  else
    for (const std::string& key : keys) values.push_back(store_->get(key));
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::vector<std::uint8_t>& value = values[static_cast<std::size_t>(rank)];
    if (value.size() != size)
      throw std::runtime_error("the store gives " + std::to_string(value.size()) + " bytes for rank " + std::to_string(rank) +
                               " instead of " + std::to_string(size) + ": another group has written under the same prefix");
    std::memcpy(all + static_cast<std::size_t>(rank) * size, value.data(), size);
  }
}

}  // namespace seto::torch_backend
