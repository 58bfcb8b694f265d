#include "engine/ranks/in_process_link.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "engine/ranks/inbox.h"
#include "engine/ranks/message.h"

namespace hearth::testing {
namespace {

Message number_message(uint64_t number) { return MessageWriter().value(number).take(); }
uint64_t number_in(const Result<Message>& message) {
  uint64_t number = 0;
  if (message.ok()) MessageReader(*message).value(number);
  return number;
}

// Messages at a steady pace, so that the receiver also finds some while it looks, and then an error.
TEST(InProcessLink, AChannelThatIsWatchedCloselyLosesNothing) {
  const auto links = make_in_process_links(2);
  links[0]->watch_closely(Channel::kRows);
  std::thread sender([&] {
    for (uint64_t i = 1; i <= 60; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(i % 10 == 0 ? 2000 : 400));
      ASSERT_TRUE(links[1]->send(0, Channel::kRows, number_message(i)).ok());
    }
    std::this_thread::sleep_for(std::chrono::microseconds(400));
    links[1]->fail("enough");
  });
  for (uint64_t i = 1; i <= 60; ++i)
    EXPECT_EQ(number_in(links[0]->receive(1, Channel::kRows)), i);
  const Result<Message> last = links[0]->receive(1, Channel::kRows);
  ASSERT_FALSE(last.ok());
  EXPECT_EQ(last.error().message, "enough");
  sender.join();
}

TEST(InProcessLink, KeepsTheOrderOfEachChannelAndSource) {
  const auto links = make_in_process_links(3);
  std::thread second([&] {
    for (uint64_t i = 1; i <= 100; ++i) {
      ASSERT_TRUE(links[1]->send(0, Channel::kRows, number_message(i)).ok());
      ASSERT_TRUE(links[1]->send(0, Channel::kIds, number_message(1000 + i)).ok());
    }
  });
  std::thread third([&] {
    for (uint64_t i = 1; i <= 100; ++i)
      ASSERT_TRUE(links[2]->send(0, Channel::kRows, number_message(2000 + i)).ok());
  });
  for (uint64_t i = 1; i <= 100; ++i) {
    EXPECT_EQ(number_in(links[0]->receive(2, Channel::kRows)), 2000 + i);
    EXPECT_EQ(number_in(links[0]->receive(1, Channel::kIds)), 1000 + i);
    EXPECT_EQ(number_in(links[0]->receive(1, Channel::kRows)), i);
  }
  second.join();
  third.join();
  EXPECT_FALSE(links[0]->ready(1, Channel::kRows));
}

TEST(InProcessLink, SendsToItself) {
  const auto links = make_in_process_links(2);
  EXPECT_FALSE(links[0]->ready(0, Channel::kCommands));
  ASSERT_TRUE(links[0]->send(0, Channel::kCommands, number_message(7)).ok());
  EXPECT_TRUE(links[0]->ready(0, Channel::kCommands));
  EXPECT_FALSE(links[1]->ready(0, Channel::kCommands));
  EXPECT_EQ(number_in(links[0]->receive(0, Channel::kCommands)), 7u);
}

TEST(InProcessLink, AFailureEndsEveryWaitAfterWhatHadArrived) {
  const auto links = make_in_process_links(2);
  ASSERT_TRUE(links[0]->send(1, Channel::kRows, number_message(5)).ok());
  std::thread waiting([&] {
    const Result<Message> message = links[0]->receive(1, Channel::kResults);
    ASSERT_FALSE(message.ok());
    EXPECT_EQ(message.error().kind, ErrorKind::kDeviceLost);
    EXPECT_EQ(message.error().message, "rank 1 gave up");
  });
  links[1]->fail("rank 1 gave up");
  waiting.join();
  EXPECT_EQ(number_in(links[1]->receive(0, Channel::kRows)), 5u);
  EXPECT_FALSE(links[1]->receive(0, Channel::kRows).ok());
  EXPECT_FALSE(links[0]->send(1, Channel::kRows, {}).ok());
}

// With three ranks, the second used to give up when the first one ended, while messages of the third
// were still on their way.
TEST(RankInbox, ARankThatEndsEndsOnlyTheWaitsForItself) {
  Inbox inbox(3);
  inbox.put(0, Channel::kRows, number_message(1));
  inbox.end(0, {ErrorKind::kDeviceLost, "rank 0 has ended"});
  EXPECT_FALSE(inbox.has(2, Channel::kRows));
  std::thread later([&] { inbox.put(2, Channel::kRows, number_message(2)); });
  EXPECT_EQ(number_in(inbox.take(2, Channel::kRows)), 2u);
  later.join();
  EXPECT_EQ(number_in(inbox.take(0, Channel::kRows)), 1u);
  const Result<Message> ended = inbox.take(0, Channel::kRows);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().message, "rank 0 has ended");
  EXPECT_FALSE(inbox.error());
}

TEST(RankMessage, ATruncatedMessageIsAnErrorAndNotARead) {
  const std::vector<uint32_t> sent{1, 2, 3};
  Message message = MessageWriter().value(uint64_t{9}).list(sent).text("rows").take();
  for (size_t bytes = 0; bytes <= message.size(); ++bytes) {
    uint64_t number = 0;
    std::vector<uint32_t> list;
    std::string text;
    MessageReader reader(std::span<const std::byte>(message).first(bytes));
    reader.value(number).list(list).text(text);
    EXPECT_EQ(reader.status().ok(), bytes == message.size());
    if (bytes < message.size()) continue;
    EXPECT_EQ(number, 9u);
    EXPECT_EQ(list, sent);
    EXPECT_EQ(text, "rows");
  }
  message.push_back({});
  uint64_t number = 0;
  std::vector<uint32_t> list;
  std::string text;
  EXPECT_FALSE(MessageReader(message).value(number).list(list).text(text).status().ok());
}

}  // namespace
}  // namespace hearth::testing
