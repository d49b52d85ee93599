#include "src/control/overlay/relayed_stream.h"

#include <utility>

namespace seto {

const RelayedStream::Kept& RelayedStream::keep(std::string bytes) {
  kept_bytes_ += bytes.size();
  kept_.push_back({++sent_, std::move(bytes)});
  return kept_.back();
}

bool RelayedStream::acknowledged(std::uint64_t heard) {
  if (heard > sent_) return false;
  while (!kept_.empty() && kept_.front().number <= heard) {
    kept_bytes_ -= kept_.front().bytes.size();
    kept_.pop_front();
  }
  return true;
}

void RelayedStream::close() {
  closed_ = true;
  kept_.clear();
  kept_bytes_ = 0;
  path.reset();
}

bool RelayedStream::take(std::uint64_t number, std::size_t bytes) {
  ++untold_;
  untold_bytes_ += bytes;
  if (number != heard_ + 1) return false;
  heard_ = number;
  return true;
}

std::uint64_t RelayedStream::tell_heard() {
  untold_ = 0;
  untold_bytes_ = 0;
  return heard_;
}

}  // namespace seto
