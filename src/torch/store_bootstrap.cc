#include "src/torch/store_bootstrap.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace seto::torch_backend {
namespace {

// The time before a rank checks again whether all numbers belong to this attempt.
constexpr std::chrono::milliseconds kWhile{200};

}  // namespace

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

// The ranks whose keys are missing, for example " 1, 4, 5". Empty if the store does not answer.
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

bool StoreBootstrap::came(const std::vector<std::string>& keys, std::chrono::milliseconds a_while) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now());
  try {
    store_->wait(keys, std::clamp(left, std::chrono::milliseconds(1), a_while));
    return true;
  } catch (const c10::Error& error) {
    if (left > a_while) return false;
    const std::string absent = absent_of(keys);
    throw std::runtime_error(absent.empty()
                                 ? error.what_without_backtrace()
                                 : "the store has no data of rank" + absent + " (" + error.what_without_backtrace() + ")");
  }
}

void StoreBootstrap::await(const std::vector<std::string>& keys) const { (void)came(keys, std::chrono::milliseconds::max()); }

std::vector<std::string> StoreBootstrap::keys_under(const std::string& prefix) const {
  std::vector<std::string> keys;
  for (int rank = 0; rank < ranks_; ++rank) keys.push_back(prefix + std::to_string(rank));
  return keys;
}

std::vector<StoreBootstrap::Value> StoreBootstrap::values_of(const std::vector<std::string>& keys) const {
  if (store_->hasExtendedApi()) return store_->multiGet(keys);
  std::vector<Value> values;
  for (const std::string& key : keys) values.push_back(store_->get(key));
  return values;
}

// Each rank draws a random number, and all numbers together name the attempt. The store may still hold a number of an earlier
// attempt until its rank overwrites it. Then not all ranks confirm the name, and the ranks read the numbers again.
void StoreBootstrap::meet() {
  const std::string numbers = "seto/meet/";
  const std::string own = std::to_string(rank_);
  std::random_device device;
  Value number(16);
  for (std::uint8_t& byte : number) byte = static_cast<std::uint8_t>(device());
  store_->set(numbers + own, number);
  do {
    await(keys_under(numbers));
    std::string drawn;
    for (const Value& value : values_of(keys_under(numbers))) drawn.append(value.begin(), value.end());
    meeting_ = "seto/" + std::to_string(std::hash<std::string>{}(drawn)) + "/";
    store_->set(meeting_ + "met/" + own, Value{1});
  } while (!came(keys_under(meeting_ + "met/"), kWhile));
  try {
    (void)store_->deleteKey(numbers + own);
  } catch (const std::exception&) {  // the store cannot delete keys: the next group of this name reads the numbers again
  }
}

void StoreBootstrap::all_gather(const std::uint8_t* mine, std::uint8_t* all, std::size_t size) {
  if (meeting_.empty()) meet();
  const std::string prefix = meeting_ + std::to_string(round_++) + "/";
  store_->set(prefix + std::to_string(rank_), Value(mine, mine + size));
  const std::vector<std::string> keys = keys_under(prefix);
  await(keys);
  const std::vector<Value> values = values_of(keys);
  for (int rank = 0; rank < ranks_; ++rank) {
    const Value& value = values[static_cast<std::size_t>(rank)];
    if (value.size() != size)
      throw std::runtime_error("the store gives " + std::to_string(value.size()) + " bytes for rank " + std::to_string(rank) +
                               " instead of " + std::to_string(size) + ": another group has written under the same prefix");
    std::memcpy(all + static_cast<std::size_t>(rank) * size, value.data(), size);
  }
}

}  // namespace seto::torch_backend
