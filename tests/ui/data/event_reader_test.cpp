// Parsing of addresses and of event streams: split anywhere, and from peers that are not Hearth.
#include "ui/feeds/event_reader.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::HasSubstr;

const std::string kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(const std::string& text) {
  char size[32];
  std::snprintf(size, sizeof(size), "%zx\r\n", text.size());
  return size + text + "\r\n";
}

std::string error_of(const std::string& bytes) {
  EventReader reader;
  std::vector<ServerEvent> events;
  const Status status = reader.push(bytes, events);
  return status.ok() ? "" : status.error().message;
}

TEST(HttpAddress, EveryUsualFormIsAccepted) {
  const auto text = [](const char* from) {
    const auto address = parse_http_address(from);
    return address.ok() ? address->text : "refused";
  };
  EXPECT_EQ(text("http://box:9000"), "box:9000");
  EXPECT_EQ(text("HTTP://10.0.0.7:80/"), "10.0.0.7:80");
  EXPECT_EQ(text("http://box:9000/events"), "box:9000");
  EXPECT_EQ(text("box"), "box:8080");
  EXPECT_EQ(text("localhost:1"), "localhost:1");
  EXPECT_EQ(text("http://[::1]:8081"), "[::1]:8081");
  EXPECT_EQ(parse_http_address("[::1]")->host, "::1");
  for (const char* bad : {"", "http://", "http://:80", "box:", "box:0", "box:65536", "box:80x",
                          "box:-1", "http://a b", "http://me@box", "[::1", "[::1]x", "box/else",
                          "box\r\nX: y", "http://box:80/events?x"})
    EXPECT_EQ(text(bad), "refused") << bad;
  EXPECT_THAT(parse_http_address("https://box").error().message, HasSubstr("not https"));
}

TEST(EventReader, ReadsEventsHoweverTheyAreSplit) {
  const std::string stream = kHead + chunk(": steps\n\nevent: hello\ndata: {\"a\":1}\n\n") +
                             chunk("data: one\n") + chunk("\ndata: two\r\ndata: lines\r\n\r\n") +
                             chunk("id: 7\nretry: 3\n\n") + "0\r\n\r\n";
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    EventReader reader;
    std::vector<ServerEvent> events;
    for (size_t at = 0; at < stream.size(); at += piece)
      ASSERT_TRUE(reader.push(std::string_view(stream).substr(at, piece), events).ok());
    ASSERT_EQ(events.size(), 3u) << piece;
    EXPECT_EQ(events[0].name, "hello");
    EXPECT_EQ(events[0].data, "{\"a\":1}");
    EXPECT_EQ(events[1].name, "");
    EXPECT_EQ(events[1].data, "one");
    EXPECT_EQ(events[2].data, "two\nlines");
    EXPECT_TRUE(reader.ended());
  }
}

TEST(EventReader, ReadsAStreamWithoutChunks) {
  EventReader reader;
  std::vector<ServerEvent> events;
  ASSERT_TRUE(
      reader.push("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", events).ok());
  EXPECT_TRUE(reader.has_head());
  ASSERT_TRUE(reader.push("data: x\n\n", events).ok());
  EXPECT_EQ(events.size(), 1u);
}

TEST(EventReader, ErrorsNameTheCause) {
  EXPECT_THAT(error_of("HTTP/1.1 401 Unauthorized\r\n\r\n"), HasSubstr("--api-key"));
  EXPECT_THAT(error_of("HTTP/1.1 404 Not Found\r\n\r\n"), HasSubstr("hearth serve"));
  EXPECT_THAT(error_of("HTTP/1.1 503 Busy\r\n\r\n"), HasSubstr("not ready"));
  EXPECT_THAT(error_of("HTTP/1.1 302 Found\r\n\r\n"), HasSubstr("302"));
  EXPECT_THAT(error_of("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
              HasSubstr("not an event stream"));
  EXPECT_THAT(error_of("SSH-2.0-OpenSSH_9.2\r\n\r\n"), HasSubstr("not HTTP"));
  EXPECT_THAT(error_of(std::string(20000, 'x')), HasSubstr("not HTTP"));
  EXPECT_THAT(error_of(kHead + "zz\r\n"), HasSubstr("chunk"));
  EXPECT_THAT(error_of(kHead + std::string(100, '1')), HasSubstr("chunk"));
  EXPECT_THAT(error_of(kHead + "3\r\nabcdef\r\n"), HasSubstr("chunk"));
  EXPECT_THAT(error_of(kHead + "ffffffff\r\n" + std::string(5u << 20, 'x')),
              HasSubstr("more than 4 MiB"));
  EXPECT_THAT(error_of(kHead + chunk("data: " + std::string(3u << 20, 'x') + "\n") +
                       chunk("data: " + std::string(2u << 20, 'x') + "\n")),
              HasSubstr("more than 4 MiB"));
}

TEST(EventReader, SurvivesCorruptedStreams) {
  const std::string good = kHead + chunk("event: hello\ndata: {}\n\n") + chunk("data: a\n\n");
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    std::string bytes = good;
    for (int change = 0; change < 3; ++change)
      bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    static_cast<void>(error_of(bytes));
  }
}

}  // namespace
}  // namespace hearth
