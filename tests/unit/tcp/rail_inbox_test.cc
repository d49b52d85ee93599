#include "transports/tcp/connect/rail_inbox.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace seto::tcp {
namespace {

std::string part(RailHead head, std::string_view bytes) {
  return std::string(reinterpret_cast<const char*>(&head), sizeof head).append(bytes);
}

TEST(RailInbox, KeepsTheOrderAndPutsPartsTogether) {
  RailInbox inbox;
  inbox.add(part({RailWord::begin, 1, 1, 0, 7}, {}));
  inbox.add(part({RailWord::message, 1, 0, 0, 7}, "one "));
  EXPECT_FALSE(inbox.empty());
  inbox.add(part({RailWord::broken, 0, 1, 0, 3}, {}));
  inbox.add(part({RailWord::message, 1, 1, 0, 7}, "two"));
  const auto begin = inbox.take();
  ASSERT_TRUE(begin.has_value());
  EXPECT_EQ(begin->head.word, RailWord::begin);
  EXPECT_EQ(begin->head.number, 7U);
  EXPECT_EQ(inbox.take()->head.word, RailWord::broken);
  const auto message = inbox.take();
  EXPECT_EQ(message->bytes, "one two");
  EXPECT_EQ(message->head.rail, 1U);
  EXPECT_FALSE(inbox.take().has_value());
  EXPECT_TRUE(inbox.empty());
}

// The rest of a message never came.
TEST(RailInbox, DropsTheHalfMessageOfAnotherSetUp) {
  RailInbox inbox;
  inbox.add(part({RailWord::message, 0, 0, 0, 1}, "half"));
  inbox.add(part({RailWord::message, 0, 1, 0, 2}, "whole"));
  EXPECT_EQ(inbox.take()->bytes, "whole");
  inbox.add(part({RailWord::message, 0, 0, 0, 2}, "half"));
  inbox.add(part({RailWord::message, 1, 1, 0, 2}, "of another rail"));
  EXPECT_EQ(inbox.take()->bytes, "of another rail");
}

TEST(RailInbox, DropsWhatMakesNoSense) {
  RailInbox inbox;
  inbox.add({});
  inbox.add("1234567");
  inbox.add(part({static_cast<RailWord>(0), 0, 1, 0, 1}, "a"));
  inbox.add(part({static_cast<RailWord>(200), 0, 1, 0, 1}, "b"));
  EXPECT_TRUE(inbox.empty());
}

TEST(RailInbox, IsOverrunByTooManyMessages) {
  RailInbox inbox;
  for (std::size_t count = 0; count < RailInbox::kMostMessages; ++count) inbox.add(part({RailWord::broken, 0, 1, 0, 1}, {}));
  EXPECT_FALSE(inbox.is_overrun());
  inbox.add(part({RailWord::broken, 0, 1, 0, 2}, {}));
  EXPECT_FALSE(inbox.empty()) << "its reader must hear of it";
  inbox.add(part({RailWord::broken, 0, 1, 0, 3}, {}));
  EXPECT_FALSE(inbox.take().has_value()) << "what came behind the gap means nothing";
  EXPECT_TRUE(inbox.is_overrun());
  EXPECT_FALSE(inbox.is_overrun());
  EXPECT_TRUE(inbox.empty());
  inbox.add(part({RailWord::broken, 0, 1, 0, 4}, {}));
  EXPECT_EQ(inbox.take()->head.number, 4U);
}

TEST(RailInbox, IsOverrunByTooManyBytes) {
  RailInbox inbox;
  const std::string many(RailInbox::kLongestMessage, 'x');
  inbox.add(part({RailWord::message, 0, 1, 0, 1}, many));
  inbox.add(part({RailWord::message, 0, 1, 0, 1}, many));
  EXPECT_FALSE(inbox.is_overrun());
  inbox.add(part({RailWord::message, 0, 1, 0, 1}, "x"));
  EXPECT_TRUE(inbox.is_overrun());
  inbox.add(part({RailWord::message, 0, 0, 0, 1}, many));
  inbox.add(part({RailWord::message, 0, 1, 0, 1}, "x"));
  EXPECT_TRUE(inbox.is_overrun()) << "a message that is too long";
  inbox.add(part({RailWord::message, 0, 1, 0, 1}, many));
  EXPECT_EQ(inbox.take()->bytes.size(), many.size()) << "nothing of the long one is left";
}

TEST(RailInbox, ForgetsAllWhenItIsCleared) {
  RailInbox inbox;
  inbox.add(part({RailWord::broken, 0, 1, 0, 1}, {}));
  inbox.add(part({RailWord::message, 0, 0, 0, 1}, "half"));
  inbox.clear();
  EXPECT_TRUE(inbox.empty());
  inbox.add(part({RailWord::message, 0, 1, 0, 1}, "whole"));
  EXPECT_EQ(inbox.take()->bytes, "whole");
}

}  // namespace
}  // namespace seto::tcp
