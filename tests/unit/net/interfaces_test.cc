// The choice of addresses on descriptions of real machines, and the interfaces of this one.
#include "src/net/interfaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

namespace seto {
namespace {

namespace files = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Interface made(const std::string& name, InterfaceKind kind, std::initializer_list<const char*> hosts, std::uint32_t speed = 0) {
  static std::uint32_t index = 100;
  Interface one{name, ++index, kind, true, speed, {}};
  for (const char* host : hosts) one.addresses.push_back(parse_host(host).value());
  return one;
}

Interface loopback() { return made("lo", InterfaceKind::loopback, {"127.0.0.1", "::1"}); }

Interface down(Interface one) {
  one.up = false;
  return one;
}

std::vector<std::string> chosen(const std::vector<Interface>& all, const char* filter = "") {
  auto parsed = InterfaceFilter::parse(filter);
  if (!parsed.ok()) return {std::string(parsed.status().text())};
  auto found = candidates(all, *parsed);
  if (!found.ok()) return {std::string(found.status().text())};
  std::vector<std::string> texts;
  for (const SocketAddress& address : *found) texts.push_back(host_text(address));
  return texts;
}

const std::vector<Interface>& workstation() {
  static const std::vector<Interface> all = {
      loopback(),
      made("docker0", InterfaceKind::internal, {"172.17.0.1"}),
      made("virbr0", InterfaceKind::internal, {"192.168.122.1"}),
      made("eno1", InterfaceKind::ordinary, {"10.1.0.5", "2001:db8::5", "fe80::5"}, 1'000),
      made("ens3", InterfaceKind::ordinary, {"10.2.0.5", "fe80::6"}, 100'000),
      made("ens30", InterfaceKind::ordinary, {"10.3.0.5"}, 100'000),
      down(made("ens4", InterfaceKind::ordinary, {"10.4.0.5"}, 100'000)),
  };
  return all;
}

TEST(Candidates, FastCardsFirstBridgesLateLinkLocalLast) {
  EXPECT_THAT(chosen(workstation()), ElementsAre("10.2.0.5", "10.3.0.5", "10.1.0.5", "2001:db8::5", "172.17.0.1", "192.168.122.1",
                                                 "fe80::6", "fe80::5"));
}

TEST(Candidates, AMachineWithoutANetworkUsesItsLoopback) {
  EXPECT_THAT(chosen({loopback()}), ElementsAre("127.0.0.1", "::1"));
  EXPECT_THAT(chosen({loopback(), down(made("eth0", InterfaceKind::ordinary, {"10.0.0.1"}))}), ElementsAre("127.0.0.1", "::1"));
}

TEST(Candidates, Ipv6OnlyAndLinkLocalOnly) {
  EXPECT_THAT(chosen({loopback(), made("eth0", InterfaceKind::ordinary, {"2001:db8::1", "fe80::1"})}),
              ElementsAre("2001:db8::1", "fe80::1"));
  EXPECT_THAT(chosen({loopback(), made("eth0", InterfaceKind::ordinary, {"fe80::1"})}), ElementsAre("fe80::1"));
  EXPECT_THAT(chosen({loopback(), made("eth0", InterfaceKind::ordinary, {"169.254.1.1"})}),
              ElementsAre("169.254.1.1", "127.0.0.1", "::1"))
      << "a link-local address reaches few hosts";
}

TEST(Candidates, ABridgeIsBetterThanNothing) {
  EXPECT_THAT(chosen({loopback(), made("docker0", InterfaceKind::internal, {"172.17.0.1"})}), ElementsAre("172.17.0.1"));
}

TEST(Candidates, TunnelsAreTriedLast) {
  const Interface tunnel = made("wg0", InterfaceKind::tunnel, {"10.9.0.1", "fe80::9"}, 400'000);
  const Interface card = made("eth0", InterfaceKind::ordinary, {"10.0.0.1", "fe80::1"});
  const Interface bridge = made("docker0", InterfaceKind::internal, {"172.17.0.1"});
  EXPECT_THAT(chosen({loopback(), tunnel, card, bridge}),
              ElementsAre("10.0.0.1", "172.17.0.1", "fe80::1", "10.9.0.1", "fe80::9"));
  EXPECT_THAT(chosen({loopback(), tunnel}), ElementsAre("10.9.0.1", "fe80::9")) << "and before loopback";
  EXPECT_THAT(chosen({tunnel, card}, "wg0"), ElementsAre("10.9.0.1", "fe80::9"));
}

TEST(InterfaceFilter, NamesPrefixesBlocks) {
  EXPECT_THAT(chosen(workstation(), "ens3"), ElementsAre("10.2.0.5", "fe80::6")) << "ens30 only has the same prefix";
  EXPECT_THAT(chosen(workstation(), "ens"), ElementsAre("10.2.0.5", "10.3.0.5", "fe80::6"));
  EXPECT_THAT(chosen(workstation(), "10.1.0.0/16, 2001:db8::/32"), ElementsAre("10.1.0.5", "2001:db8::5"));
  EXPECT_THAT(chosen(workstation(), "10.3.0.5"), ElementsAre("10.3.0.5"));
  EXPECT_THAT(chosen(workstation(), "docker,virbr"), ElementsAre("172.17.0.1", "192.168.122.1"));
}

TEST(InterfaceFilter, NamesAfterACaretAreExcluded) {
  EXPECT_THAT(chosen(workstation(), "^docker,virbr,fe80::/10,eno1"), ElementsAre("10.2.0.5", "10.3.0.5"));
  EXPECT_THAT(chosen(workstation(), "ens,^ens3"), ElementsAre("10.3.0.5"));
}

TEST(InterfaceFilter, LoopbackIsUsedIfRequested) {
  EXPECT_THAT(chosen(workstation(), "lo"), ElementsAre("127.0.0.1", "::1"));
  EXPECT_THAT(chosen(workstation(), "127.0.0.0/8,ens30"), ElementsAre("10.3.0.5", "127.0.0.1"));
  EXPECT_THAT(chosen({loopback()}, "^lo").front(), HasSubstr("SETO_INTERFACE=^lo leaves no interface"));
}

TEST(InterfaceFilter, AFailureListsTheInterfaces) {
  const std::string text = chosen(workstation(), "ib0").front();
  EXPECT_THAT(text,
              HasSubstr("SETO_INTERFACE=ib0 leaves no interface that is up and has an address; there are lo (127.0.0.1, ::1)"));
  EXPECT_THAT(text, HasSubstr("ens4 (down, 10.4.0.5)"));
  EXPECT_THAT(chosen(workstation(), "10.1.0.0/33").front(), HasSubstr("'10.1.0.0/33' is not an address block"));
  EXPECT_THAT(chosen(workstation(), "eth/8").front(), HasSubstr("is not an address block"));
  EXPECT_THAT(chosen({}).front(), HasSubstr("there are none"));
}

TEST(Interfaces, LinkLocalOfAPeerIsTriedOnEveryInterface) {
  SocketAddress peer = parse_host("fe80::99").value();
  const auto forms = with_scopes(peer, workstation());
  ASSERT_EQ(forms.size(), 2U);
  EXPECT_EQ(forms[0].scope, workstation()[3].index);
  EXPECT_EQ(forms[1].scope, workstation()[4].index);
  const SocketAddress global = parse_host("10.0.0.1").value();
  EXPECT_THAT(with_scopes(global, workstation()), ElementsAre(global));
  EXPECT_THAT(with_scopes(peer, {loopback()}), IsEmpty());
}

// A folder like /sys/class/net.
class Classes {
 public:
  Classes() {
    std::string pattern = (files::temp_directory_path() / "seto_net_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Classes() { files::remove_all(folder_); }
  Classes(const Classes&) = delete;
  Classes& operator=(const Classes&) = delete;

  // The kind of an interface of this type. `entry`: a further file of its folder.
  [[nodiscard]] InterfaceKind kind(const std::string& name, int type, const std::string& uevent, const std::string& entry = "") {
    files::create_directories(folder_ / name);
    std::ofstream(folder_ / name / "type") << type << '\n';
    std::ofstream(folder_ / name / "uevent") << uevent << "INTERFACE=" << name << "\nIFINDEX=7\n";
    if (!entry.empty()) std::ofstream(folder_ / name / entry) << "0x1001\n";
    return kind_of(folder_, name, 0);
  }

 private:
  files::path folder_;
};

constexpr int kEthernet = 1;
constexpr int kNoHardware = 65534;

TEST(Interfaces, TunnelsAreKnownByTheirType) {
  Classes classes;
  EXPECT_EQ(classes.kind("wg0", kNoHardware, "DEVTYPE=wireguard\n"), InterfaceKind::tunnel);
  EXPECT_EQ(classes.kind("office", kEthernet, "DEVTYPE=wireguard\n"), InterfaceKind::tunnel) << "by one of the two";
  EXPECT_EQ(classes.kind("tun0", kNoHardware, "", "tun_flags"), InterfaceKind::tunnel);
  EXPECT_EQ(classes.kind("tailscale0", kNoHardware, "", "tun_flags"), InterfaceKind::tunnel);
  EXPECT_EQ(classes.kind("ppp0", 512, "DEVTYPE=ppp\n"), InterfaceKind::tunnel);
  EXPECT_EQ(classes.kind("tunl0", 768, ""), InterfaceKind::tunnel);
  EXPECT_EQ(classes.kind("gre0", 778, ""), InterfaceKind::tunnel);
}

TEST(Interfaces, OthersAreNotTunnels) {
  Classes classes;
  EXPECT_EQ(classes.kind("eth0", kEthernet, "", "device"), InterfaceKind::ordinary);
  EXPECT_EQ(classes.kind("eth1", kEthernet, ""), InterfaceKind::ordinary) << "the end of a veth pair in a container";
  EXPECT_EQ(classes.kind("ib0", 32, "", "device"), InterfaceKind::ordinary);
  EXPECT_EQ(classes.kind("wwan0", kNoHardware, "DEVTYPE=wwan\n", "device"), InterfaceKind::ordinary) << "a modem is a card";
  EXPECT_EQ(classes.kind("vnet3", kEthernet, "", "tun_flags"), InterfaceKind::internal) << "a tap of a virtual machine";
  EXPECT_EQ(classes.kind("docker0", kEthernet, "DEVTYPE=bridge\n", "bridge"), InterfaceKind::internal);
}

TEST(Interfaces, ThisMachineHasALoopback) {
  auto all = list_interfaces();
  ASSERT_TRUE(all.ok()) << all.status().text();
  bool found = false;
  for (const Interface& one : *all) found = found || (one.kind == InterfaceKind::loopback && one.name == "lo" && one.index > 0);
  EXPECT_TRUE(found) << to_text(*all);
}

}  // namespace
}  // namespace seto
