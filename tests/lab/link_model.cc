#include "tests/lab/link_model.h"

#include <algorithm>

namespace seto::lab {
namespace {

constexpr std::uint64_t kLeastQueue = 256U << 10;
// A super-packet on a slow line arrives in pieces of about this time. As a whole, its first byte would wait for its last.
constexpr double kPieceNs = 1e6;

}  // namespace

std::uint64_t queue_limit(const LinkSettings& settings) {
  if (settings.queue_bytes) return *settings.queue_bytes;
  const Nanoseconds time = settings.queue_time > 0 ? settings.queue_time : settings.delay * 2;
  const double product = settings.rate / 8 * static_cast<double>(time) / 1e9;
  return std::max(kLeastQueue, static_cast<std::uint64_t>(product));
}

double LinkModel::transmission_ns(double bytes) const { return settings_.rate > 0 ? bytes * 8e9 / settings_.rate : 0; }

double LinkModel::backlog(Nanoseconds now) const {
  return std::max(0.0, (free_at_ - static_cast<double>(now)) * settings_.rate / 8e9);
}

// splitmix64, which gives the same numbers with every compiler and library.
double LinkModel::chance() {
  std::uint64_t value = random_ += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((value ^ (value >> 31)) >> 11) * 0x1p-53;
}

bool LinkModel::is_lost() {
  const BurstLoss& burst = settings_.burst_loss;
  if (burst.enter > 0) {
    if (chance() < (in_burst_ ? burst.leave : burst.enter)) in_burst_ = !in_burst_;
    if (in_burst_) return chance() < burst.loss;
  }
  return settings_.loss > 0 && chance() < settings_.loss;
}

void LinkModel::change(Nanoseconds now, const LinkSettings& settings) {
  const double waiting = backlog(now);
  settings_ = settings;
  if (waiting > 0) free_at_ = static_cast<double>(now) + transmission_ns(waiting);
}

LinkModel::Fate LinkModel::fate_of(Nanoseconds now, std::uint32_t size) {
  if (settings_.cut || settings_.hole || (settings_.largest > 0 && size > settings_.largest)) return Fate::swallowed;
  const double waiting = backlog(now);
  counters_.most_backlog = std::max(counters_.most_backlog, waiting);
  if (waiting + size > static_cast<double>(queue_limit(settings_)) && waiting > 0) return Fate::overflows;
  free_at_ += transmission_ns(size + settings_.overhead);  // lost segments have used the line too
  return is_lost() ? Fate::lost : Fate::passes;
}

void LinkModel::close_piece(std::vector<Piece>& pieces, Piece piece) {
  if (piece.count == 0) return;
  const double extra = settings_.jitter > 0 ? chance() * static_cast<double>(settings_.jitter) : 0;
  piece.due = std::max(last_due_, piece.due + settings_.delay + static_cast<Nanoseconds>(extra));
  last_due_ = piece.due;
  pieces.push_back(piece);
}

void LinkModel::offer(Nanoseconds now, const Segments& packet, std::vector<Piece>& pieces) {
  const auto saved = transmission_ns(static_cast<double>(settings_.bucket_bytes));
  free_at_ = std::max(free_at_, static_cast<double>(now) - saved);
  ++counters_.packets;
  Piece piece;
  double piece_started = 0;
  for (std::uint32_t index = 0; index < packet.count; ++index) {
    const std::uint32_t size = packet.size_of(index);
    const double started = free_at_;
    const Fate fate = fate_of(now, size);
    ++counters_.segments;
    counters_.bytes += size;
    counters_.lost += fate == Fate::lost;
    counters_.overflow += fate == Fate::overflows;
    counters_.swallowed += fate == Fate::swallowed;
    if (fate != Fate::passes || (piece.count > 0 && free_at_ - piece_started > kPieceNs)) {
      close_piece(pieces, piece);
      piece = {};
    }
    if (fate != Fate::passes) continue;
    if (piece.count == 0) {
      piece.first = index;
      piece_started = started;
    }
    ++piece.count;
    piece.due = std::max(now, static_cast<Nanoseconds>(free_at_));
    ++counters_.passed_segments;
    counters_.passed_bytes += size;
  }
  close_piece(pieces, piece);
}

}  // namespace seto::lab
