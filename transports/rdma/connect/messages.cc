#include "transports/rdma/connect/messages.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace seto::rdma {
namespace {

class Writer {
 public:
  template <class Value>
  void put(Value value) {
    static_assert(std::is_integral_v<Value> || std::is_enum_v<Value>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(std::string_view text) {
    text = text.substr(0, kMostText);
    put(static_cast<std::uint16_t>(text.size()));
    bytes_.append(text);
  }
  void put_gid(const Gid& gid) { bytes_.append(reinterpret_cast<const char*>(gid.bytes.data()), gid.bytes.size()); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After a first read beyond the end, all reads give zeros, and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class Value>
  Value get() {
    Value value{};
    copy(&value, sizeof value);
    return value;
  }
  std::string get_text() {
    const auto size = get<std::uint16_t>();
    if (size > kMostText || size > bytes_.size()) {
      ok_ = false;
      return {};
    }
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  Gid get_gid() {
    Gid gid;
    copy(gid.bytes.data(), gid.bytes.size());
    return gid;
  }
  // A number of items, at most `most`.
  std::size_t get_count(std::size_t most) {
    const std::size_t count = get<std::uint16_t>();
    ok_ = ok_ && count <= most;
    return ok_ ? count : 0;
  }
  // A value of an enumeration, from 0 to `last`.
  template <class Enumeration>
  Enumeration get_enumeration(Enumeration last) {
    const auto value = get<Enumeration>();
    ok_ = ok_ && value <= last;
    return ok_ ? value : Enumeration{};
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return ok_ && bytes_.empty(); }

 private:
  void copy(void* to, std::size_t size) {
    ok_ = ok_ && bytes_.size() >= size;
    if (!ok_) return;
    std::memcpy(to, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }

  std::string_view bytes_;
  bool ok_ = true;
};

void put_port(Writer& writer, const NamedPort& port) {
  const PortFacts& facts = port.facts;
  writer.put_text(port.device);
  writer.put(facts.number);
  writer.put(facts.state);
  writer.put(facts.link_layer);
  writer.put(facts.mtu);
  writer.put(facts.lid);
  writer.put(static_cast<std::uint8_t>(facts.needs_global_route));
  writer.put(facts.rate_mbit);
  writer.put(port.distance);
  const std::size_t gids = std::min(kMostGidsOfAPort, facts.gids.size());
  writer.put(static_cast<std::uint16_t>(gids));
  for (std::size_t i = 0; i < gids; ++i) {
    writer.put(facts.gids[i].index);
    writer.put_gid(facts.gids[i].gid);
    writer.put(facts.gids[i].type);
    writer.put(facts.gids[i].vlan);
  }
  const std::size_t pkeys = std::min(kMostPkeys, facts.pkeys.size());
  writer.put(static_cast<std::uint16_t>(pkeys));
  for (std::size_t i = 0; i < pkeys; ++i) writer.put(facts.pkeys[i]);
}

NamedPort get_port(Reader& reader) {
  NamedPort port;
  PortFacts& facts = port.facts;
  port.device = reader.get_text();
  facts.number = reader.get<std::uint8_t>();
  facts.state = reader.get_enumeration(PortState::active);
  facts.link_layer = reader.get_enumeration(LinkLayer::ethernet);
  facts.mtu = reader.get<std::uint32_t>();
  facts.lid = reader.get<std::uint16_t>();
  facts.needs_global_route = reader.get<std::uint8_t>() != 0;
  facts.rate_mbit = reader.get<std::uint64_t>();
  port.distance = reader.get<std::uint8_t>();
  for (std::size_t left = reader.get_count(kMostGidsOfAPort); left > 0 && reader.ok(); --left) {
    GidEntry entry;
    entry.index = reader.get<std::uint32_t>();
    entry.gid = reader.get_gid();
    entry.type = reader.get_enumeration(GidType::roce_v2);
    entry.vlan = reader.get<std::uint16_t>();
    facts.gids.push_back(entry);
  }
  for (std::size_t left = reader.get_count(kMostPkeys); left > 0 && reader.ok(); --left)
    facts.pkeys.push_back(reader.get<std::uint16_t>());
  return port;
}

void put_end(Writer& writer, const PortEnd& end) {
  writer.put_text(end.device);
  writer.put(end.port);
  writer.put(static_cast<std::uint8_t>(end.gid_index.has_value()));
  writer.put(end.gid_index.value_or(0));
  writer.put(end.pkey_index);
}

// The address of the port is asked from the device itself.
PortEnd get_end(Reader& reader) {
  PortEnd end;
  end.device = reader.get_text();
  end.port = reader.get<std::uint8_t>();
  const bool global = reader.get<std::uint8_t>() != 0;
  const auto index = reader.get<std::uint32_t>();
  if (global) end.gid_index = index;
  end.pkey_index = reader.get<std::uint16_t>();
  return end;
}

struct Encoder {
  Writer& writer;

  void operator()(const Offer& offer) const {
    writer.put(static_cast<std::uint8_t>(offer.has_manager));
    const std::size_t ports = std::min(kMostPorts, offer.ports.size());
    writer.put(static_cast<std::uint16_t>(ports));
    for (std::size_t i = 0; i < ports; ++i) put_port(writer, offer.ports[i]);
  }
  void operator()(const Proposal& proposal) const {
    writer.put(proposal.attempt);
    writer.put_text(proposal.address.encoded());
    put_end(writer, proposal.yours);
    writer.put(static_cast<std::uint8_t>(proposal.token.has_value()));
    for (const std::uint8_t byte : proposal.token.value_or(Token())) writer.put(byte);
  }
  void operator()(const Acceptance& acceptance) const {
    writer.put(acceptance.attempt);
    writer.put_text(acceptance.address.encoded());
    writer.put(static_cast<std::uint8_t>(acceptance.listener.has_value()));
    writer.put_gid(acceptance.listener.value_or(Listener()).gid);
    writer.put(acceptance.listener.value_or(Listener()).service);
  }
  void operator()(const Refusal& refusal) const {
    writer.put(refusal.attempt);
    writer.put_text(refusal.why);
  }
  void operator()(const Decision& decision) const {
    writer.put(decision.attempt);
    writer.put(decision.verdict);
    writer.put_text(decision.why);
  }
};

Status garbage() {
  return failure(Code::remote_error, "a message of the peer about RDMA is malformed: is its library of another version?");
}

}  // namespace

std::string encode(const SetUpMessage& message) {
  Writer writer;
  writer.put(static_cast<std::uint8_t>(message.index()));
  std::visit(Encoder{writer}, message);
  return writer.take();
}

Result<SetUpMessage> decode_set_up(std::string_view bytes) {
  Reader reader(bytes);
  SetUpMessage message;
  switch (reader.get<std::uint8_t>()) {
    case 0: {
      Offer offer;
      offer.has_manager = reader.get<std::uint8_t>() != 0;
      for (std::size_t left = reader.get_count(kMostPorts); left > 0 && reader.ok(); --left)
        offer.ports.push_back(get_port(reader));
      message = std::move(offer);
      break;
    }
    case 1: {
      Proposal proposal;
      proposal.attempt = reader.get<std::uint32_t>();
      SETO_ASSIGN(proposal.address, ChannelAddress::decode(reader.get_text()));
      proposal.yours = get_end(reader);
      const bool managed = reader.get<std::uint8_t>() != 0;
      Token token;
      for (std::uint8_t& byte : token) byte = reader.get<std::uint8_t>();
      if (managed) proposal.token = token;
      message = std::move(proposal);
      break;
    }
    case 2: {
      Acceptance acceptance;
      acceptance.attempt = reader.get<std::uint32_t>();
      SETO_ASSIGN(acceptance.address, ChannelAddress::decode(reader.get_text()));
      const bool managed = reader.get<std::uint8_t>() != 0;
      Listener listener;
      listener.gid = reader.get_gid();
      listener.service = reader.get<std::uint16_t>();
      if (managed) acceptance.listener = listener;
      message = acceptance;
      break;
    }
    case 3: {
      const auto attempt = reader.get<std::uint32_t>();
      message = Refusal{attempt, reader.get_text()};
      break;
    }
    case 4: {
      Decision decision;
      decision.attempt = reader.get<std::uint32_t>();
      decision.verdict = reader.get_enumeration(Verdict::give_up);
      decision.why = reader.get_text();
      if (decision.verdict < Verdict::probe) return garbage();
      message = std::move(decision);
      break;
    }
    default:
      return garbage();
  }
  if (!reader.at_end()) return garbage();
  return message;
}

}  // namespace seto::rdma
