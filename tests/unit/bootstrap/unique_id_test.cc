#include "src/bootstrap/unique_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/support/seed.h"

namespace seto {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::string text_of(const UniqueIdBytes& bytes) { return std::string(decode(bytes).status().text()); }

UniqueId id_of_test() {
  UniqueId id{UniqueId::Serves::job, random_token(), {random_socket_name(), {}}};
  for (const char* text : {"10.1.2.3:4711", "[2001:db8::7]:4711", "192.168.0.1:4711", "[fe80::1]:4711"}) {
    id.address.addresses.push_back(parse_address(text).value());
  }
  return id;
}

TEST(UniqueId, RoundTrip) {
  const UniqueId id = id_of_test();
  const UniqueIdBytes bytes = encode(id);
  const UniqueId back = decode(bytes).value();
  EXPECT_EQ(back.serves, UniqueId::Serves::job);
  EXPECT_EQ(back.address.socket_name, id.address.socket_name);
  EXPECT_THAT(back.address.addresses, ElementsAreArray(id.address.addresses));
  EXPECT_TRUE(equal(back.token, id.token));
  EXPECT_EQ(parse_unique_id(hex_text(bytes)).value(), bytes);
}

TEST(UniqueId, CarriesAsManyAddressesAsFit) {
  UniqueId id = id_of_test();
  for (int count = 0; count < 40; ++count) id.address.addresses.push_back(parse_address("[2001:db8::8]:4711").value());
  for (int count = 0; count < 40; ++count) id.address.addresses.push_back(parse_address("10.9.9.9:4711").value());
  const UniqueId back = decode(encode(id)).value();
  ASSERT_GT(back.address.addresses.size(), 4U);
  for (std::size_t index = 0; index < 4; ++index) EXPECT_EQ(back.address.addresses[index], id.address.addresses[index]);
}

TEST(UniqueId, MalformedIdsAreRejected) {
  UniqueIdBytes bytes = encode(id_of_test());
  bytes[8] = 9;
  EXPECT_THAT(text_of(bytes), HasSubstr("version 9, made by another version of the library"));
  bytes[0] = 'x';
  EXPECT_THAT(text_of(bytes), HasSubstr("this is not a unique id"));
  EXPECT_FALSE(decode(UniqueIdBytes{}).ok());
  EXPECT_THAT(std::string(parse_unique_id("abc").status().text()), HasSubstr("256 hexadecimal digits"));
  EXPECT_FALSE(parse_unique_id(std::string(256, 'g')).ok());
}

TEST(UniqueId, EveryDamagedIdIsReadSafely) {
  std::mt19937_64 random(testing::chosen_seed());
  const UniqueIdBytes whole = encode(id_of_test());
  for (int round = 0; round < 20'000; ++round) {
    UniqueIdBytes bytes = whole;
    for (int flips = 0; flips < 3; ++flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto id = decode(bytes);
    EXPECT_TRUE(!id.ok() || !id.value().address.empty());
  }
}

}  // namespace
}  // namespace seto
