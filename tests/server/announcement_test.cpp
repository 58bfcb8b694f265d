#include "tools/server/announcement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Announcement, SaysWhatRunsWhereAndHowToReachIt) {
  const Announcement facts{.model = "storyteller",
                           .device = "Some GPU",
                           .context = 1024,
                           .max_sequences = 64,
                           .host = "127.0.0.1",
                           .port = 8080};
  EXPECT_THAT(announcement_lines(facts),
              ElementsAre("storyteller on Some GPU",
                          "up to 64 sequences at a time, 1024 tokens each",
                          "listening on http://127.0.0.1:8080",
                          "OpenAI's API at http://127.0.0.1:8080/v1, chat page at "
                          "http://127.0.0.1:8080/"));
}

TEST(Announcement, WarnsWhenAnybodyMayComeIn) {
  Announcement facts{.max_sequences = 1, .host = "0.0.0.0", .port = 80};
  auto lines = announcement_lines(facts);
  EXPECT_THAT(lines[3], HasSubstr("http://127.0.0.1:80/"));
  EXPECT_THAT(lines.back(), HasSubstr("no API key"));
  facts.has_key = true;
  lines = announcement_lines(facts);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[3], HasSubstr("/#key=KEY"));
  EXPECT_THAT(announcement_lines({.host = "::", .port = 80})[3], HasSubstr("http://[::1]:80/"));
  EXPECT_EQ(announcement_lines({.host = "localhost", .port = 80}).size(), 4u);
}

}  // namespace
}  // namespace hearth
