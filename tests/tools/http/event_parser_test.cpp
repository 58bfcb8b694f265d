// Server-sent events: split anywhere, and from peers that send anything.
#include "tools/http/event_parser.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::HasSubstr;

TEST(EventParser, ReadsEventsHoweverTheyAreSplit) {
  const std::string stream =
      ": steps\n\nevent: hello\ndata: {\"a\":1}\n\ndata: one\n\ndata: two\r\ndata:  lines\r\n\r\n"
      "id: 7\nretry: 3\n\n: waiting\n\ndata\n\n";
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    EventParser parser;
    std::vector<ServerEvent> events;
    for (size_t at = 0; at < stream.size(); at += piece)
      ASSERT_TRUE(parser.push(std::string_view(stream).substr(at, piece), events).ok());
    ASSERT_EQ(events.size(), 4u) << piece;
    EXPECT_EQ(events[0].name, "hello");
    EXPECT_EQ(events[0].data, "{\"a\":1}");
    EXPECT_EQ(events[1].name, "");
    EXPECT_EQ(events[1].data, "one");
    EXPECT_EQ(events[2].data, "two\n lines");
    EXPECT_EQ(events[3].data, "");
  }
}

TEST(EventParser, AnEventThatNeverEndsIsAnError) {
  const auto error_of = [](const std::string& bytes) {
    EventParser parser;
    std::vector<ServerEvent> events;
    const Status status = parser.push(bytes, events);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_THAT(error_of(std::string(5u << 20, 'x')), HasSubstr("more than 4 MiB"));
  EXPECT_THAT(error_of("data: " + std::string(3u << 20, 'x') +
                       "\ndata: " + std::string(2u << 20, 'x') + "\n"),
              HasSubstr("more than 4 MiB"));
}

TEST(EventParser, SurvivesCorruptedStreams) {
  const std::string good = "event: hello\ndata: {}\n\ndata: a\n\n";
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = good;
    for (int change = 0; change < 3; ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    EventParser parser;
    std::vector<ServerEvent> events;
    ASSERT_TRUE(parser.push(bytes, events).ok());
    ASSERT_LE(events.size(), 3u);
  }
}

}  // namespace
}  // namespace hearth
