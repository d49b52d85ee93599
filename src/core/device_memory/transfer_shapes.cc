#include "src/core/device_memory/transfer_shapes.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "src/base/log.h"
#include "src/core/device_memory/shape_room.h"
#include "src/core/launch/message_label.h"
#include "src/core/launch/recorded_transfers.h"

namespace seto {
namespace {

using Direction = LocalTransfer::Direction;
using kernels::TransferOutcome;

constexpr std::uint64_t kBytesOfAccess = 16;

bool sends(const Transfer& transfer) { return transfer.direction == Direction::send; }
std::uint64_t bytes_of(const Transfer& transfer) { return transfer.count * size_of(transfer.type); }

kernels::Address address_of(const Transfer& transfer) {
  return reinterpret_cast<kernels::Address>(sends(transfer) ? transfer.source : transfer.target);
}

std::uint64_t loaded(const std::uint64_t& word) {
  return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}
TransferOutcome outcome_in(std::uint64_t state) {
  return static_cast<TransferOutcome>(state & ((1U << kernels::kReportBits) - 1));
}

// The i-th send of this rank to itself is received by its i-th receive from itself.
Result<std::vector<kernels::TransferCopy>> copies_of(const std::vector<Transfer>& transfers, Rank rank) {
  std::vector<const Transfer*> out, in;
  for (const Transfer& transfer : transfers)
    if (transfer.peer == rank) (sends(transfer) ? out : in).push_back(&transfer);
  if (out.size() != in.size())
    return failure(Code::invalid_argument, "rank %d sends %zu messages to itself in this group and receives %zu", rank,
                   out.size(), in.size());
  std::vector<kernels::TransferCopy> copies;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i]->count != in[i]->count || out[i]->type != in[i]->type || out[i]->tag != in[i]->tag)
      return failure(Code::invalid_argument, "rank %d sends itself %llu %s, tag %u, and receives %llu %s, tag %u", rank,
                     static_cast<unsigned long long>(out[i]->count), name_of(out[i]->type).data(), out[i]->tag,
                     static_cast<unsigned long long>(in[i]->count), name_of(in[i]->type).data(), in[i]->tag);
    const kernels::TransferCopy copy{address_of(*out[i]), address_of(*in[i]), bytes_of(*out[i])};
    if (copy.size == 0 || copy.source == copy.target) continue;
    if (copy.source < copy.target + copy.size && copy.target < copy.source + copy.size)
      return failure(Code::invalid_argument, "rank %d sends itself a message whose sendbuff and recvbuff overlap", rank);
    copies.push_back(copy);
  }
  return copies;
}

TransferList list_of(const TransferArea& area, const std::vector<std::byte>& image) {
  kernels::TransferProgram begin;
  std::memcpy(&begin, image.data(), sizeof begin);
  TransferList list;
  std::uint32_t messages = 0;
  for (std::uint32_t i = 0; i < begin.lane_count; ++i) {
    kernels::TransferLane lane;
    std::memcpy(&lane, image.data() + begin.lanes + i * sizeof lane, sizeof lane);
    list.lanes.push_back({area.pair_of(lane.report), lane.report, lane.first_message, lane.message_count});
    messages = std::max(messages, lane.first_message + lane.message_count);
  }
  list.messages.resize(messages);
  if (messages > 0) std::memcpy(list.messages.data(), image.data() + begin.messages, messages * sizeof(kernels::TransferMessage));
  return list;
}

}  // namespace

void TransferBatch::merge(std::uint32_t deadline_ms) {
  const bool is_own = deadline_ms == 0 || (has_deadline_ && deadline_ms_ == 0);
  deadline_ms_ = is_own ? 0 : std::max(deadline_ms_, deadline_ms);
  has_deadline_ = true;
}

// So that an addition for which there is no memory changes nothing.
void TransferBatch::make_room(std::size_t more) {
  transfers_.reserve(transfers_.size() + more);
  exchange_of_.reserve(exchange_of_.size() + more);
}

void TransferBatch::add(Transfer transfer, std::uint32_t deadline_ms) {
  make_room(1);
  merge(deadline_ms);
  transfers_.push_back(std::move(transfer));
  exchange_of_.push_back(0);
}

void TransferBatch::add(std::vector<Transfer> exchange, std::uint32_t deadline_ms) {
  make_room(exchange.size());
  merge(deadline_ms);
  ++exchanges_;
  for (Transfer& transfer : exchange) {
    transfers_.push_back(std::move(transfer));
    exchange_of_.push_back(exchanges_);
  }
}

Result<std::unique_ptr<TransferShapes>> TransferShapes::create(const Setup& setup, DeviceShapes& staging) {
  SETO_ASSIGN(const TransferArea area, TransferArea::of(static_cast<std::size_t>(setup.ranks), setup.area));
  std::unique_ptr<TransferShapes> made(new TransferShapes(setup, staging, area));
  SETO_TRY(made->open());
  return made;
}

Status TransferShapes::open() {
  const std::size_t size = area_.lanes() * sizeof(kernels::TransferReport);
  void* memory = nullptr;
  SETO_TRY(driver_.mem_host_alloc(&memory, size, cuda::kHostAllocPortable | cuda::kHostAllocDeviceMap));
  reports_ = static_cast<kernels::TransferReport*>(memory);
  std::fill_n(reports_, area_.lanes(), kernels::TransferReport{});
  cuda::DevicePointer there = 0;
  SETO_TRY(driver_.mem_host_get_device_pointer(&there, memory, 0));
  reports_there_ = there;
  return {};
}

TransferShapes::~TransferShapes() {
  if (reports_ != nullptr) static_cast<void>(driver_.mem_free_host.code(reports_));
}

std::uint64_t TransferShapes::number_exchanges(const TransferBatch& batch) {
  return std::exchange(exchanges_, exchanges_ + batch.exchanges());
}

Result<TransferShapes::Image> TransferShapes::image_of(const TransferBatch& batch) const {
  SETO_ASSIGN(const std::vector<kernels::TransferCopy> copies, copies_of(batch.transfers(), setup_.rank));
  std::vector<DeviceTransfer> messages;
  for (std::size_t i = 0; i < batch.transfers().size(); ++i) {
    const Transfer& transfer = batch.transfers()[i];
    if (transfer.peer == setup_.rank) continue;
    const std::uint32_t exchange = batch.exchange_of(i);
    const std::uint64_t label = exchange == 0 ? label_of(transfer.type, TransferKind::point_to_point, transfer.tag)
                                              : label_of(transfer.type, TransferKind::all_to_all_v, exchange);
    messages.push_back({{transfer.direction, transfer.peer},
                        {address_of(transfer), bytes_of(transfer), label, exchange == 0 ? std::uint64_t{0} : 1}});
  }
  if (messages.empty() && copies.empty()) return Image{};
  return transfer_program(area_, static_cast<std::size_t>(setup_.rank), setup_.workspaces,
                          {messages, copies, setup_.most_blocks, setup_.relayed, setup_.staging});
}

Result<std::shared_ptr<DeviceShape>> TransferShapes::find(const TransferBatch& batch, std::uint64_t ended) {
  SETO_ASSIGN(const Image image, image_of(batch));
  if (image.empty()) return std::shared_ptr<DeviceShape>();
  std::string key(reinterpret_cast<const char*>(image.data()), image.size());
  const auto found = shapes_.find(key);
  if (found != shapes_.end()) return found->second;
  make_room(shapes_, kMostShapes, ended, staging_);
  SETO_ASSIGN(std::shared_ptr<DeviceShape> shape, bind(batch, image));
  return shapes_.emplace(std::move(key), std::move(shape)).first->second;
}

Result<std::shared_ptr<DeviceShape>> TransferShapes::bind(const TransferBatch& batch, const Image& image) {
  kernels::TransferProgram begin;
  std::memcpy(&begin, image.data(), sizeof begin);
  std::uint64_t largest = 0;
  for (const Transfer& transfer : batch.transfers()) largest = std::max(largest, bytes_of(transfer));
  const TransferCall call{batch.transfers(), batch.exchanges() == 1 && batch.exchange_of(0) == 1 &&
                                                     batch.exchange_of(batch.transfers().size() - 1) == 1
                                                 ? TransferKind::all_to_all_v
                                                 : TransferKind::point_to_point};
  auto shape = std::make_shared<DeviceShape>();
  shape->rank = setup_.rank;
  shape->blocks = begin.blocks;
  shape->threads = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(std::bit_ceil(std::min<std::uint64_t>(largest, area_.slot_content()) / kBytesOfAccess + 1), kWarp,
                                std::bit_floor(static_cast<std::uint64_t>(setup_.gpu->most_threads()))));
  shape->kernel = setup_.gpu->transfer_kernel();
  shape->recorded = recorded(call);
  shape->plan = "sends and receives";
  const Transfer& first = batch.transfers().front();
  shape->what = batch.transfers().size() == 1
                    ? describe(first.direction, {bytes_of(first), label_of(first.type, call.kind, 0), 0}, first.peer)
                    : std::to_string(batch.transfers().size()) + " sends and receives";
  auto list = std::make_shared<TransferList>(list_of(area_, image));
  for (const TransferList::Lane& lane : list->lanes)
    if (setup_.relayed->has(static_cast<std::size_t>(setup_.rank), static_cast<std::size_t>(lane.pair.peer)))
      list->relayed.push_back(lane.pair.peer);
  shape->transfers = list;
  SETO_TRY(staging_.stage(image, {}, *shape));
  SETO_LOG_AS(debug, (LogOrigin{setup_.rank, 0}), "%s run on the GPU: %u blocks of %u threads, %zu channels, slices of %u bytes",
              shape->what.c_str(), shape->blocks, shape->threads, list->lanes.size(), area_.slot_content());
  return shape;
}

bool TransferShapes::is_done(std::uint32_t report, std::uint64_t launch) const {
  const std::uint64_t state = loaded(reports_[report].state);
  return state >> kernels::kReportBits == launch && outcome_in(state) == TransferOutcome::done;
}

std::vector<TransferShapes::Waiting> TransferShapes::waiting(const TransferList& list, std::uint64_t launch,
                                                             std::uint64_t exchange) const {
  std::vector<Waiting> all;
  std::set<std::pair<Rank, Direction>> told;
  for (const TransferList::Lane& lane : list.lanes) {
    if (is_done(lane.report, launch) || !told.emplace(lane.pair.peer, lane.pair.direction).second) continue;
    const kernels::TransferReport& report = reports_[lane.report];
    const std::uint64_t state = loaded(report.state);
    const bool is_known =
        lane.message_count == 1 || (state >> kernels::kReportBits == launch && outcome_in(state) == TransferOutcome::stopped);
    const std::uint64_t index =
        is_known && lane.message_count > 1 ? std::min<std::uint64_t>(loaded(report.message), lane.message_count - 1) : 0;
    const kernels::TransferMessage& message = list.messages[lane.first_message + index];
    const std::uint64_t label = message.label + (message.numbered != 0 ? exchange << kernels::kLabelNumberBits : 0);
    all.push_back({lane.pair, describe(lane.pair.direction, {message.size, label, 0}, lane.pair.peer) +
                                  (is_known ? "" : " or a later one")});
  }
  return all;
}

std::string TransferShapes::text_of(const std::vector<Waiting>& waiting) {
  std::string text;
  for (const Waiting& one : waiting) {
    if (!text.empty()) text += "; ";
    text += one.text + (one.pair.direction == Direction::send ? " was not received" : " was not sent");
  }
  return text.empty() ? "no message is missing, but the kernel has not ended" : text;
}

Status TransferShapes::refusal() const {
  for (std::uint32_t i = 0; i < area_.lanes(); ++i) {
    const kernels::TransferReport& report = reports_[i];
    if (outcome_in(loaded(report.state)) != TransferOutcome::refused) continue;
    const Rank peer = area_.pair_of(i).peer;
    return failure(Code::remote_error, "rank %d calls %s, but rank %d calls %s", setup_.rank,
                   describe(Direction::receive, {loaded(report.own_size), loaded(report.own_label), 0}, peer).c_str(), peer,
                   describe(Direction::send, {loaded(report.their_size), loaded(report.their_label), 0}, setup_.rank).c_str());
  }
  return {};
}

}  // namespace seto
