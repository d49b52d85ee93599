#include "transports/message_status.h"

#include <gtest/gtest.h>

#include <new>
#include <string>
#include <utility>
#include <vector>

namespace seto {
namespace {

using Log = std::vector<std::string>;

class MessageStatusOfThree : public ::testing::Test, private StatusExchange, private StatusDataPath {
 protected:
  static constexpr std::uint32_t kOwn = 1;

  // The record of a peer that has completed so many operations.
  static std::string completed(std::uint64_t operations) {
    StatusRecord record;
    record.complete(operations);
    return record.encoded();
  }
  static std::string departed(Fate fate, std::string_view why) {
    StatusRecord record;
    record.explain(why);
    record.leave(fate);
    return record.encoded();
  }

  Log log_;
  bool arrived_ = false;
  bool lacks_memory_ = false;  // for the next departure behind the data
  MessageStatus status_{{kOwn, 3, this, this}};

 private:
  void ask(std::uint32_t member) override { log_.push_back("ask " + std::to_string(member)); }
  void announce() override { log_.push_back("announce"); }
  void send_departure() override {
    if (std::exchange(lacks_memory_, false)) throw std::bad_alloc();
    log_.push_back("depart");
  }
  [[nodiscard]] bool all_arrived(std::uint32_t) const override { return arrived_; }
};

TEST_F(MessageStatusOfThree, AsksForWhatItDoesNotKnowAndReturnsTheOldValue) {
  EXPECT_EQ(status_.completed_by(2), 0U);
  EXPECT_EQ(log_, Log{"ask 2"});
  ASSERT_TRUE(status_.renew(2, completed(4)).ok());
  EXPECT_EQ(status_.known_completed(2), 4U);
  EXPECT_EQ(log_, Log{"ask 2"}) << "known_completed() asks no peer";
  EXPECT_EQ(status_.completed_by(2), 4U);
  EXPECT_EQ(log_, (Log{"ask 2", "ask 2"})) << "there may be a newer value";
  EXPECT_EQ(status_.completed_by(0), 0U) << "the record of another member";
}

TEST_F(MessageStatusOfThree, AsksForANoteOnlyWhileItIsMissing) {
  Note note;
  EXPECT_FALSE(status_.note_of(0, 3, note));
  EXPECT_EQ(log_, Log{"ask 0"});
  StatusRecord theirs;
  theirs.write({3, 77, 0, {1, 2, 3, 4, 5}});
  ASSERT_TRUE(status_.renew(0, theirs.encoded()).ok());
  EXPECT_TRUE(status_.note_of(0, 3, note));
  EXPECT_EQ(note.digest, 77U);
  EXPECT_EQ(log_, Log{"ask 0"});
}

TEST_F(MessageStatusOfThree, KnowsItsOwnRecordAndAsksNoPeerForIt) {
  status_.begin({5, 9, 0, {}});
  status_.complete(4);
  Note note;
  EXPECT_TRUE(status_.note_of(kOwn, 5, note));
  EXPECT_FALSE(status_.note_of(kOwn, 6, note));
  EXPECT_EQ(status_.completed_by(kOwn), 4U);
  EXPECT_TRUE(status_.silent(kOwn));
  EXPECT_EQ(log_, Log{});
  StatusRecord copy;
  ASSERT_TRUE(copy.renew(status_.record()).ok());
  EXPECT_TRUE(copy.note_of(5, note));
  EXPECT_EQ(copy.completed(), 4U);
}

// On the control plane, which is faster, and once behind the data.
TEST_F(MessageStatusOfThree, AnnouncesItsDepartureOnBothPlanes) {
  status_.explain("rank 2 died");
  status_.leave({6, 2});
  EXPECT_EQ(log_, (Log{"announce", "depart"}));
  status_.leave({7, 0});
  EXPECT_EQ(log_, (Log{"announce", "depart", "announce"})) << "the frame behind the data is the last one";
  EXPECT_EQ(status_.fate_of(kOwn).reason, 6U);
  EXPECT_EQ(status_.explanation_of(kOwn), "rank 2 died");
}

TEST_F(MessageStatusOfThree, ADepartureForWhichThereIsNoMemoryIsSentByTheNextCall) {
  lacks_memory_ = true;
  EXPECT_THROW(status_.leave({6, 2}), std::bad_alloc);
  EXPECT_EQ(log_, (Log{"announce"}));
  status_.leave({6, 2});
  EXPECT_EQ(log_, (Log{"announce", "announce", "depart"}));
}

TEST_F(MessageStatusOfThree, CountsEachDepartureOnce) {
  EXPECT_EQ(status_.departures(), 0U);
  ASSERT_TRUE(status_.renew(2, completed(1)).ok());
  EXPECT_EQ(status_.departures(), 0U) << "a record without a fate is no departure";
  const std::string record = departed({6, 0}, "rank 0 is frozen");
  ASSERT_TRUE(status_.renew(2, record).ok());
  ASSERT_TRUE(status_.renew(2, record).ok());
  EXPECT_EQ(status_.departures(), 1U);
  EXPECT_TRUE(status_.departed(2));
  EXPECT_FALSE(status_.departed(0));
  EXPECT_EQ(status_.fate_of(2).culprit, 0U);
  EXPECT_EQ(status_.explanation_of(2), "rank 0 is frozen");
  EXPECT_EQ(status_.known_completed(2), 1U) << "the number stays";
}

// Its process keeps no record of this group any more.
TEST_F(MessageStatusOfThree, ALostMemberHasLeftWithoutAReasonOfItsOwn) {
  status_.lose(0);
  EXPECT_TRUE(status_.departed(0));
  EXPECT_EQ(status_.fate_of(0).culprit, 0U);
  EXPECT_EQ(status_.departures(), 1U);
  status_.lose(kOwn);
  EXPECT_FALSE(status_.departed(kOwn)) << "no message says that this member has left";
}

TEST_F(MessageStatusOfThree, AReasonThatWasGivenOutlivesTheLoss) {
  ASSERT_TRUE(status_.renew(0, departed({6, 2}, "rank 2 died")).ok());
  status_.lose(0);
  EXPECT_EQ(status_.fate_of(0).reason, 6U);
  EXPECT_EQ(status_.fate_of(0).culprit, 2U);
}

TEST_F(MessageStatusOfThree, RefusesRecordsOfMembersThatAreNoPeers) {
  for (const std::uint32_t member : {kOwn, 3U, ~0U}) {
    const Status refused = status_.renew(member, completed(100));
    EXPECT_FALSE(refused.ok());
    EXPECT_NE(std::string(refused.text()).find("is no peer"), std::string::npos) << refused.text();
  }
  EXPECT_EQ(status_.completed_by(kOwn), 0U);
}

TEST_F(MessageStatusOfThree, APeerIsSilentWhenItsDataHasArrived) {
  EXPECT_FALSE(status_.silent(2));
  arrived_ = true;
  EXPECT_TRUE(status_.silent(2));
}

}  // namespace
}  // namespace seto
