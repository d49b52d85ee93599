// verbs_probe [DEVICE DEVICE] [--interrupt ACTION ACTION]: writes with immediate data between two RDMA devices, compared byte by
// byte.
//
// Without names it takes the first two of RDMA_LAB_DEVICES. --interrupt: between writes that work, $RDMA_LAB_LINK makes the
// second device unreachable by the first action, so that a write ends with an error, and reachable again by the second action.
// Exit status: 0 all was right, 1 something was wrong, 77 there are no two devices.

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kSkipped = 77;
constexpr std::uint8_t kPort = 1;
constexpr std::size_t kGuard = 61;                // bytes before and after the target that no write may touch; odd on purpose
constexpr std::size_t kBytes = (1U << 20U) + 13;  // more than one packet, and no multiple of it
constexpr std::size_t kBuffer = kBytes + 2 * kGuard;
constexpr std::uint8_t kUntouched = 0xEE;
constexpr std::uint32_t kImmediate = 0x5E70'1234;
// 4.096 us << 15 = 0.13 s for each attempt: a busy host holds the machine up for long, and of lost packets many cost one attempt.
constexpr std::uint8_t kTimeout = 15;
constexpr std::uint8_t kRetries = 6;  // the software device takes 7 for "for ever"
constexpr std::uint8_t kReceiverNotReadyRetries = 7;
constexpr auto kLimit = std::chrono::seconds(300);  // only ends a probe that fails

[[noreturn]] void fail(const std::string& text) {
  std::printf("failed: %s\n", text.c_str());
  std::exit(1);
}

template <auto release>
struct Release {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};
template <class T, auto release>
using Owned = std::unique_ptr<T, Release<release>>;

// An opened device with a buffer that peers may write.
struct Device {
  std::string name;
  Owned<ibv_context, ibv_close_device> context;
  Owned<ibv_pd, ibv_dealloc_pd> domain;
  Owned<ibv_cq, ibv_destroy_cq> completions;
  std::vector<std::uint8_t> buffer = std::vector<std::uint8_t>(kBuffer);
  Owned<ibv_mr, ibv_dereg_mr> memory;
  std::uint32_t gid_index = 0;
  ibv_gid gid{};
  ibv_mtu mtu{};
};

bool is_ipv4(const ibv_gid& gid) {
  constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::equal(kMapped.begin(), kMapped.end(), gid.raw);
}

// The first GID of RoCE v2 with an IPv4 address. A fixed index would be the link-local one on many machines.
void choose_gid(Device& device) {
  std::array<ibv_gid_entry, 64> entries{};
  const ssize_t count = ibv_query_gid_table(device.context.get(), entries.data(), entries.size(), 0);
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = entries[static_cast<std::size_t>(i)];
    if (entry.port_num != kPort || entry.gid_type != IBV_GID_TYPE_ROCE_V2 || !is_ipv4(entry.gid)) continue;
    device.gid_index = entry.gid_index;
    device.gid = entry.gid;
    return;
  }
  fail(device.name + " has no GID of RoCE v2 with an IPv4 address");
}

std::unique_ptr<Device> open(const std::string& name) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  auto device = std::make_unique<Device>();
  device->name = name;
  for (int i = 0; i < count; ++i)
    if (name == ibv_get_device_name(list[i])) device->context.reset(ibv_open_device(list[i]));
  if (list != nullptr) ibv_free_device_list(list);
  if (!device->context) return nullptr;
  ibv_port_attr port{};
  if (ibv_query_port(device->context.get(), kPort, &port) != 0 || port.state != IBV_PORT_ACTIVE)
    fail(name + ": its port is not active");
  device->mtu = port.active_mtu;
  choose_gid(*device);
  device->domain.reset(ibv_alloc_pd(device->context.get()));
  device->completions.reset(ibv_create_cq(device->context.get(), 16, nullptr, nullptr, 0));
  if (device->domain) {
    constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    device->memory.reset(ibv_reg_mr(device->domain.get(), device->buffer.data(), device->buffer.size(), kAccess));
  }
  if (!device->completions || !device->memory) fail(name + ": no completion queue or no registered memory");
  return device;
}

using QueuePair = Owned<ibv_qp, ibv_destroy_qp>;

QueuePair make_queue_pair(Device& device) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = device.completions.get();
  wanted.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  wanted.qp_type = IBV_QPT_RC;
  QueuePair pair(ibv_create_qp(device.domain.get(), &wanted));
  if (!pair) fail(device.name + ": no queue pair");
  return pair;
}

void change(const Device& device, ibv_qp& pair, ibv_qp_attr& attributes, int mask) {
  const int error = ibv_modify_qp(&pair, &attributes, mask);
  if (error != 0)
    fail(device.name + ": queue pair to state " + std::to_string(attributes.qp_state) + ": " + std::strerror(error));
}

// Brings a queue pair of `device` to the state in which it sends to and receives from a queue pair of `peer`.
void connect(const Device& device, ibv_qp& pair, const Device& peer, const ibv_qp& peer_pair) {
  ibv_qp_attr to_init{};
  to_init.qp_state = IBV_QPS_INIT;
  to_init.port_num = kPort;
  to_init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  change(device, pair, to_init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  ibv_qp_attr to_receive{};
  to_receive.qp_state = IBV_QPS_RTR;
  to_receive.path_mtu = std::min(device.mtu, peer.mtu);
  to_receive.dest_qp_num = peer_pair.qp_num;
  to_receive.min_rnr_timer = 12;
  to_receive.ah_attr.is_global = 1;
  to_receive.ah_attr.port_num = kPort;
  to_receive.ah_attr.grh.dgid = peer.gid;
  to_receive.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(device.gid_index);
  to_receive.ah_attr.grh.hop_limit = 64;
  change(device, pair, to_receive,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER);
  ibv_qp_attr to_send{};
  to_send.qp_state = IBV_QPS_RTS;
  to_send.timeout = kTimeout;
  to_send.retry_cnt = kRetries;
  to_send.rnr_retry = kReceiverNotReadyRetries;
  change(device, pair, to_send,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

// Queue pairs on two devices, connected with each other.
class Connection {
 public:
  Connection(Device& one, Device& other) : ends_{End{&one, make_queue_pair(one)}, End{&other, make_queue_pair(other)}} {
    connect(one, *ends_[0].pair, other, *ends_[1].pair);
    connect(other, *ends_[1].pair, one, *ends_[0].pair);
  }

  // Writes a random pattern from one end to the other, and compares. The receiver learns of it by the immediate data.
  void write(std::size_t from, std::uint64_t seed) {
    Device &source = *ends_[from].device, &target = *ends_[1 - from].device;
    std::mt19937_64 random(seed);
    std::generate(source.buffer.begin(), source.buffer.end(), [&] { return static_cast<std::uint8_t>(random()); });
    std::fill(target.buffer.begin(), target.buffer.end(), kUntouched);
    ibv_recv_wr receive{}, *bad = nullptr;
    if (ibv_post_recv(ends_[1 - from].pair.get(), &receive, &bad) != 0) fail(target.name + ": receive not posted");
    post(from, target.memory->rkey);
    const ibv_wc sent = completion_of(source), received = completion_of(target);
    if (sent.status != IBV_WC_SUCCESS) fail(source.name + ": write ended with " + ibv_wc_status_str(sent.status));
    if (received.status != IBV_WC_SUCCESS || received.opcode != IBV_WC_RECV_RDMA_WITH_IMM)
      fail(target.name + ": no write arrived");
    if (ntohl(received.imm_data) != kImmediate || received.byte_len != kBytes)
      fail(target.name + ": wrong immediate data or length");
    const auto begin = target.buffer.begin() + kGuard, end = begin + kBytes;
    if (!std::equal(begin, end, source.buffer.begin() + kGuard))
      fail(target.name + ": wrong bytes, seed " + std::to_string(seed));
    const auto untouched = [](std::uint8_t byte) { return byte == kUntouched; };
    if (!std::all_of(target.buffer.begin(), begin, untouched) || !std::all_of(end, target.buffer.end(), untouched))
      fail(target.name + ": bytes beside the target were written");
    std::printf("%s -> %s: %zu bytes and the immediate data are right (seed %llu)\n", source.name.c_str(), target.name.c_str(),
                kBytes, static_cast<unsigned long long>(seed));
  }

  // A write to the other end must end with this error.
  void write_in_vain(std::size_t from, std::uint32_t key_change, ibv_wc_status wanted) {
    Device& source = *ends_[from].device;
    const auto begin = std::chrono::steady_clock::now();
    post(from, ends_[1 - from].device->memory->rkey ^ key_change);
    const ibv_wc sent = completion_of(source);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (sent.status != wanted)
      fail(source.name + ": write ended with '" + ibv_wc_status_str(sent.status) + "' in place of '" + ibv_wc_status_str(wanted) +
           "'");
    std::printf("%s: write ended with '%s' after %.2f s, as it must\n", source.name.c_str(), ibv_wc_status_str(sent.status),
                took.count());
  }

 private:
  struct End {
    Device* device;
    QueuePair pair;
  };

  void post(std::size_t from, std::uint32_t key) {
    Device &source = *ends_[from].device, &target = *ends_[1 - from].device;
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(source.buffer.data() + kGuard), kBytes, source.memory->lkey};
    ibv_send_wr request{}, *bad = nullptr;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.send_flags = IBV_SEND_SIGNALED;
    request.imm_data = htonl(kImmediate);
    request.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(target.buffer.data() + kGuard);
    request.wr.rdma.rkey = key;
    if (ibv_post_send(ends_[from].pair.get(), &request, &bad) != 0) fail(source.name + ": write not posted");
  }

  static ibv_wc completion_of(Device& device) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    ibv_wc completion{};
    while (ibv_poll_cq(device.completions.get(), 1, &completion) == 0) {
      if (std::chrono::steady_clock::now() > end) fail(device.name + ": no completion within the limit");
      std::this_thread::yield();
    }
    return completion;
  }

  std::array<End, 2> ends_;
};

std::vector<std::string> device_names_of_lab() {
  const char* text = std::getenv("RDMA_LAB_DEVICES");
  std::vector<std::string> names;
  for (std::string rest = text == nullptr ? "" : text; !rest.empty();) {
    const std::string word = rest.substr(0, rest.find(' '));
    names.push_back(word.substr(0, word.find(':')));
    rest.erase(0, word.size() + 1);
  }
  return names;
}

void change_link(const std::string& action) {
  const std::string command = "\"$RDMA_LAB_LINK\" " + action + " 1";  // the shell inserts the path of the script
  if (std::system(command.c_str()) != 0) fail("the link did not go " + action);
  std::printf("link: %s\n", action.c_str());
}

void interrupt(Device& one, Device& other, const std::string& action, const std::string& opposite) {
  Connection connection(one, other);
  connection.write(0, 10);
  change_link(action);
  connection.write_in_vain(0, 0, IBV_WC_RETRY_EXC_ERR);
  change_link(opposite);
  Connection(one, other).write(0, 11);
  Connection(one, other).write(1, 12);
}

void exchange(Device& one, Device& other) {
  Connection connection(one, other);
  connection.write(0, 1);
  connection.write(1, 2);
  connection.write_in_vain(0, 0xFF00, IBV_WC_REM_ACCESS_ERR);
  Connection(one, other).write(0, 3);
}

}  // namespace

int main(int count, char** words) {
  std::vector<std::string> names = device_names_of_lab(), rest(words + 1, words + count);
  if (rest.size() >= 2 && rest[0] != "--interrupt") {
    names.assign(rest.begin(), rest.begin() + 2);
    rest.erase(rest.begin(), rest.begin() + 2);
  }
  std::unique_ptr<Device> one, other;
  if (names.size() >= 2) one = open(names[0]), other = open(names[1]);
  if (!one || !other) {
    std::puts("skipped: needs two RDMA devices, in RDMA_LAB_DEVICES or as arguments");
    return kSkipped;
  }
  if (rest.size() == 3 && rest[0] == "--interrupt")
    interrupt(*one, *other, rest[1], rest[2]);
  else if (rest.empty())
    exchange(*one, *other);
  else
    fail("wanted [DEVICE DEVICE] [--interrupt ACTION ACTION]");
  return 0;
}
