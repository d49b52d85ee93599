#include "transports/status_record.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>

#include "tests/support/seed.h"

namespace seto {
namespace {

// A note whose content follows from its number, so that a torn one is detected.
Note note_number(std::uint64_t operation) {
  Note note;
  note.operation = operation;
  note.digest = static_cast<std::uint32_t>(operation * 3);
  note.verdict = static_cast<std::uint32_t>(operation * 5);
  for (std::uint64_t i = 0; i < 5; ++i) note.words[i] = operation * 7 + i;
  return note;
}

void expect_note(const StatusRecord& record, std::uint64_t operation) {
  Note note;
  ASSERT_TRUE(record.note_of(operation, note)) << operation;
  const Note expected = note_number(operation);
  EXPECT_EQ(note.operation, operation);
  EXPECT_EQ(note.digest, expected.digest);
  EXPECT_EQ(note.verdict, expected.verdict);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(note.words[i], expected.words[i]);
}

bool has_note(const StatusRecord& record, std::uint64_t operation) {
  Note note;
  return record.note_of(operation, note);
}

TEST(StatusRecord, KeepsTheNotesOfTheLatestOperations) {
  StatusRecord record;
  EXPECT_FALSE(has_note(record, 0)) << "operations count from 1";
  EXPECT_FALSE(has_note(record, 1));
  for (std::uint64_t operation = 1; operation <= 20; ++operation) {
    record.write(note_number(operation));
    expect_note(record, operation);
  }
  for (std::uint64_t operation = 21 - kNotesKept; operation <= 20; ++operation) expect_note(record, operation);
  EXPECT_FALSE(has_note(record, 20 - kNotesKept)) << "overwritten";
  EXPECT_FALSE(has_note(record, 21)) << "not written yet";
}

TEST(StatusRecord, KeepsTheFirstFateAndTheFirstExplanation) {
  StatusRecord record;
  EXPECT_EQ(record.fate().reason, 0U);
  record.explain("rank 3 died");
  record.explain("it was rank 4");
  record.leave({7, 3});
  record.leave({8, 4});
  EXPECT_EQ(record.fate().reason, 7U);
  EXPECT_EQ(record.fate().culprit, 3U);
  EXPECT_EQ(record.explanation(), "rank 3 died");
}

TEST(StatusRecord, CutsAnExplanationThatIsTooLong) {
  StatusRecord record;
  record.explain(std::string(2 * kMostWords, 'x'));
  EXPECT_EQ(record.explanation().size(), kMostWords);
  record.leave({1, 0});
  StatusRecord copy;
  EXPECT_TRUE(copy.renew(record.encoded()).ok()) << "the longest record is accepted";
  EXPECT_EQ(copy.explanation(), record.explanation());
}

TEST(StatusRecord, ACopyHasEverything) {
  StatusRecord record;
  for (std::uint64_t operation = 1; operation <= 12; ++operation) record.write(note_number(operation));
  record.complete(11);
  record.explain("out of memory");
  StatusRecord copy;
  ASSERT_TRUE(copy.renew(record.encoded()).ok());
  for (std::uint64_t operation = 13 - kNotesKept; operation <= 12; ++operation) expect_note(copy, operation);
  EXPECT_EQ(copy.completed(), 11U);
  EXPECT_EQ(copy.fate().reason, 0U);
  EXPECT_EQ(copy.explanation(), "") << "a text without a departure says nothing yet";
  record.leave({5, 2});
  ASSERT_TRUE(copy.renew(record.encoded()).ok());
  EXPECT_EQ(copy.fate().reason, 5U);
  EXPECT_EQ(copy.fate().culprit, 2U);
  EXPECT_EQ(copy.explanation(), "out of memory");
}

TEST(StatusRecord, ACopyCountsTheRecordsThatBroughtAnythingNew) {
  StatusRecord record;
  StatusRecord copy;
  std::uint64_t expected = 0;
  const auto expect_news = [&](std::uint64_t news) {
    ASSERT_TRUE(copy.renew(record.encoded()).ok());
    EXPECT_EQ(copy.renewals(), expected += news);
  };
  expect_news(0);
  record.write(note_number(1));
  expect_news(1);
  expect_news(0);
  record.complete(1);
  expect_news(1);
  record.leave({5, 2});
  expect_news(1);
  expect_news(0);
}

// Records may arrive in another order than they were sent.
TEST(StatusRecord, AnOlderRecordTakesNothingBack) {
  StatusRecord record;
  record.write(note_number(1));
  record.complete(1);
  const std::string old = record.encoded();
  for (std::uint64_t operation = 2; operation <= 1 + kNotesKept; ++operation) record.write(note_number(operation));
  record.complete(9);
  record.leave({5, 2});
  StatusRecord copy;
  ASSERT_TRUE(copy.renew(record.encoded()).ok());
  ASSERT_TRUE(copy.renew(old).ok());
  EXPECT_EQ(copy.completed(), 9U);
  EXPECT_EQ(copy.fate().reason, 5U);
  expect_note(copy, 1 + kNotesKept);
  EXPECT_FALSE(has_note(copy, 1)) << "its slot has a later note";
}

// A peer process writes the text: it reaches a terminal.
TEST(StatusRecord, ACopyHasNoControlCharacters) {
  StatusRecord record;
  record.explain("rank 1\x1b[2J\n is gone");
  record.leave({1, 1});
  StatusRecord copy;
  ASSERT_TRUE(copy.renew(record.encoded()).ok());
  for (const char each : copy.explanation()) EXPECT_TRUE(each >= ' ' && each <= '~') << static_cast<int>(each);
  EXPECT_NE(copy.explanation().find("is gone"), std::string::npos);
}

TEST(StatusRecord, RefusesMalformedRecords) {
  StatusRecord record;
  record.write(note_number(1));
  const std::string good = record.encoded();
  ASSERT_EQ(good.size(), StatusRecord::kFixedSize);
  StatusRecord copy;
  EXPECT_FALSE(copy.renew("").ok());
  EXPECT_FALSE(copy.renew(std::string_view(good).substr(1)).ok());
  EXPECT_FALSE(copy.renew(good + std::string(kMostWords + 1, 'x')).ok());
  std::string other_count = good;
  other_count[2 * sizeof(std::uint64_t)] ^= 1;
  EXPECT_FALSE(copy.renew(other_count).ok()) << "another number of notes";
  EXPECT_FALSE(has_note(copy, 1)) << "a refused record changes nothing";
  EXPECT_TRUE(copy.renew(good).ok());
}

// A note is found by its number, so one in a wrong slot would hide another.
TEST(StatusRecord, IgnoresANoteInAWrongSlot) {
  StatusRecord record;
  record.write(note_number(2));
  std::string bytes = record.encoded();
  constexpr std::size_t kHead = 3 * sizeof(std::uint64_t);
  constexpr std::size_t kNote = 8 * sizeof(std::uint64_t);
  std::string moved = bytes;
  moved.replace(kHead + 3 * kNote, kNote, bytes, kHead + 2 * kNote, kNote);
  moved.replace(kHead + 2 * kNote, kNote, std::string(kNote, '\0'));
  StatusRecord copy;
  EXPECT_TRUE(copy.renew(moved).ok());
  EXPECT_FALSE(has_note(copy, 2));
  EXPECT_FALSE(has_note(copy, 3));
}

TEST(StatusRecord, AnyBytesAreHarmless) {
  std::mt19937_64 random(testing::chosen_seed());
  StatusRecord copy;
  std::uint64_t completed = 0;
  for (int round = 0; round < 2'000; ++round) {
    std::string bytes(StatusRecord::kFixedSize + random() % 20, '\0');
    for (char& each : bytes) each = static_cast<char>(random());
    if (round % 2 == 0) {
      const std::uint64_t notes = kNotesKept;
      bytes.replace(2 * sizeof notes, sizeof notes, reinterpret_cast<const char*>(&notes), sizeof notes);
    }
    EXPECT_EQ(copy.renew(bytes).ok(), round % 2 == 0);
    EXPECT_GE(copy.completed(), completed) << "the number only grows";
    completed = copy.completed();
  }
}

// The progress token's holder writes, the thread of the control plane reads.
TEST(StatusRecord, AReaderSeesWholeNotesOnly) {
  constexpr std::uint64_t kOperations = 200'000;
  StatusRecord record;
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (std::uint64_t operation = 1; operation <= kOperations; ++operation) {
      record.write(note_number(operation));
      record.complete(operation);
    }
    over = true;
  });
  StatusRecord copy;
  while (!over) {
    const std::uint64_t latest = record.completed();
    Note note;
    if (latest != 0 && record.note_of(latest, note)) {
      const Note expected = note_number(latest);
      ASSERT_EQ(note.digest, expected.digest);
      ASSERT_EQ(note.words[4], expected.words[4]);
    }
    ASSERT_TRUE(copy.renew(record.encoded()).ok());
  }
  writer.join();
  ASSERT_TRUE(copy.renew(record.encoded()).ok());
  for (std::uint64_t operation = kOperations + 1 - kNotesKept; operation <= kOperations; ++operation)
    expect_note(copy, operation);
}

}  // namespace
}  // namespace seto
