#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "src/command/doctor/doctor.h"

namespace seto::command {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Ranks 0 and 1 are 60.1 ms from each other, and state one site.
JobReport far_hosts_of_one_site() {
  JobReport report;
  report.ranks = 2;
  report.sites_stated = true;
  report.matrix.ranks = {0, 1};
  report.matrix.hosts = {"alpha", "beta"};
  report.matrix.sites = {"north", "north"};
  report.matrix.ways = {"", "TCP 192.0.2.1 -> 192.0.2.2", "TCP 192.0.2.2 -> 192.0.2.1", ""};
  report.matrix.ciphers = {"", "none", "none", ""};
  report.matrix.latency_us = {0, 30'050, 30'050, 0};
  report.matrix.bytes_per_second.assign(4, 1e6);
  report.matrix.offset_us.assign(4, 0);
  return report;
}

TEST(DoctorReport, WarnsOfFarHostsOfOneStatedSite) {
  JobReport report = far_hosts_of_one_site();
  EXPECT_THAT(
      far_within_sites(report),
      ElementsAre("warn  ranks 0 and 1 state one site, 'north', but their round trip is 60.1 ms: data between them is not "
                  "encrypted; give the sites different SETO_SITE_IDs, or set SETO_TLS=always"));
  report.matrix.ciphers[1] = "TLS_AES_128_GCM_SHA256";
  EXPECT_THAT(far_within_sites(report), ElementsAre(HasSubstr("60.1 ms: plans take them for near")));
  report.matrix.latency_us[1] = 2'490;
  EXPECT_THAT(far_within_sites(report), IsEmpty());
  report = far_hosts_of_one_site();
  report.matrix.sites[1] = "south";
  EXPECT_THAT(far_within_sites(report), IsEmpty());
  report = far_hosts_of_one_site();
  report.sites_stated = false;
  EXPECT_THAT(far_within_sites(report), IsEmpty());
}

TEST(DoctorReport, TellsSitesAndEncryption) {
  JobReport report = far_hosts_of_one_site();
  EXPECT_THAT(text_of(report), HasSubstr("sites, as stated\n  north: alpha, beta\n"));
  EXPECT_THAT(text_of(report), HasSubstr("  alpha to beta: TCP 192.0.2.1 -> 192.0.2.2, not encrypted\n"));
  report.matrix.sites[1] = "south";
  report.matrix.ciphers[1] = "TLS_AES_128_GCM_SHA256";
  EXPECT_THAT(text_of(report), HasSubstr("  north: alpha\n  south: beta\n"));
  EXPECT_THAT(text_of(report), HasSubstr("192.0.2.2, encrypted by TLS_AES_128_GCM_SHA256\n"));
}

}  // namespace
}  // namespace seto::command
