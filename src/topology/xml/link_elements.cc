#include "src/topology/xml/link_elements.h"

#include <array>
#include <charconv>
#include <optional>

#include "src/topology/xml/attributes.h"

namespace seto {
namespace {

// The greatest values that are taken for meant: a petabyte a second, a thousand seconds, 300 years.
constexpr double kMostBytesPerSecond = 1e15;
constexpr double kMostRoundTripS = 1000;
constexpr double kMostAgeS = 1e10;

std::string value_text(const char* key, const std::optional<double>& value) {
  return value ? std::string(" ").append(key).append("=\"").append(number_text(*value)).append("\"") : std::string();
}

void add_link(std::string& text, const std::string& which, const LinkFacts& facts) {
  if (!facts.known()) return;
  text += "  <seto_link " + which + value_text("bytes_per_second", facts.bytes_per_second) +
          value_text("round_trip_s", facts.round_trip_s) + value_text("loss", facts.loss) +
          value_text("socket_bytes_per_second", facts.socket_bytes_per_second) + value_text("age_s", facts.age_s) + " source=\"" +
          std::string(name_of(facts.source)) + "\"/>\n";
}

// The link of the graph that the attributes name; null with an error in them.
LinkFacts* place(Attributes& attributes, TopologyGraph& graph) {
  const std::string kind = attributes.text("kind");
  const int most = static_cast<int>(graph.sites.size()) - 1;
  const auto site = [&](const char* key) { return static_cast<std::size_t>(attributes.integer(key, 0, most, 0)); };
  if (kind == "fabric") return &graph.sites[site("site")].fabric;
  if (kind == "uplink") return &graph.sites[site("site")].uplink;
  if (kind == "downlink") return &graph.sites[site("site")].downlink;
  if (kind == "between") {
    const std::size_t from = site("from");
    const std::size_t to = site("to");
    if (from != to) return &graph.between(from, to);
    attributes.fail("from and to are the same site");
    return nullptr;
  }
  if (kind == "interconnect") {
    const std::string name = attributes.text("host");
    for (TopologyHost& host : graph.hosts)
      if (host.name == name) return &host.interconnect;
    attributes.fail("host: there is no host of this name");
    return nullptr;
  }
  attributes.fail("kind is not one of fabric, uplink, downlink, between and interconnect");
  return nullptr;
}

}  // namespace

Status read_link(const XmlElement& element, TopologyGraph& graph) {
  if (!element.children.empty()) return element_failure(element, "has elements inside");
  Attributes attributes(element);
  LinkFacts* const link = place(attributes, graph);
  LinkFacts facts;
  facts.bytes_per_second = attributes.number("bytes_per_second", 0, kMostBytesPerSecond);
  facts.round_trip_s = attributes.number("round_trip_s", 0, kMostRoundTripS);
  facts.loss = attributes.number("loss", 0, 1);
  facts.socket_bytes_per_second = attributes.number("socket_bytes_per_second", 0, kMostBytesPerSecond);
  facts.age_s = attributes.number("age_s", 0, kMostAgeS);
  const std::string source = attributes.text("source");
  const auto known_source = source.empty() ? FactSource::file : fact_source_of(source);
  if (!known_source) attributes.fail("source is not one of assumed, file, hwloc, NVML, verbs, sysfs, measured and traffic");
  if (!facts.known()) attributes.fail("states no value");
  SETO_TRY(attributes.done());
  if (link->known()) return element_failure(element, "this link is there twice");
  facts.medium = link->medium;
  facts.source = *known_source;
  *link = facts;
  return {};
}

std::string links_text(const TopologyGraph& graph) {
  std::string text;
  for (std::size_t i = 0; i < graph.sites.size(); ++i) {
    const std::string site = std::string("\" site=\"").append(std::to_string(i)).append("\"");
    add_link(text, "kind=\"fabric" + site, graph.sites[i].fabric);
    add_link(text, "kind=\"uplink" + site, graph.sites[i].uplink);
    add_link(text, "kind=\"downlink" + site, graph.sites[i].downlink);
  }
  for (std::size_t from = 0; from < graph.between_sites.size(); ++from)
    for (std::size_t to = 0; to < graph.between_sites[from].size(); ++to)
      add_link(text,
               std::string("kind=\"between\" from=\"").append(std::to_string(from)) + "\" to=\"" + std::to_string(to) + "\"",
               graph.between_sites[from][to]);
  for (const TopologyHost& host : graph.hosts)
    add_link(text, std::string("kind=\"interconnect\" host=\"").append(xml_escaped(host.name)) + "\"", host.interconnect);
  return text;
}

std::string number_text(double number) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::string(text.data(), end) : "0";
}

}  // namespace seto
