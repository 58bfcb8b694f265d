// Addresses of servers, in every form that users write.
#include "tools/http/server_url.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

std::string whole_url(const char* text) {
  const auto url = parse_server_url(text);
  return url.ok() ? url->at("/x") : "refused";
}

TEST(ServerUrl, EveryUsualFormIsAccepted) {
  EXPECT_EQ(whole_url("http://box:9000"), "http://box:9000/x");
  EXPECT_EQ(whole_url("HTTP://10.0.0.7:80/"), "http://10.0.0.7:80/x");
  EXPECT_EQ(whole_url("https://box"), "https://box:443/x");
  EXPECT_EQ(whole_url("Https://box:8443/api/v1/"), "https://box:8443/api/v1/x");
  EXPECT_EQ(whole_url("box"), "http://box:8080/x");
  EXPECT_EQ(whole_url("http://127.0.0.1/v1"), "http://127.0.0.1:80/v1/x");
  EXPECT_EQ(whole_url("localhost:1"), "http://localhost:1/x");
  EXPECT_EQ(whole_url("http://[::1]:8081"), "http://[::1]:8081/x");
  EXPECT_EQ(parse_server_url("[::1]")->host, "::1");
  EXPECT_EQ(parse_server_url("[::1]")->place(), "[::1]:8080");
}

TEST(ServerUrl, AnythingElseIsRefused) {
  for (const char* bad : {"", "http://", "http://:80", "box:", "box:0", "box:65536", "box:80x",
                          "box:-1", "http://a b", "http://me@box", "[::1", "[::1]x", "box\r\nX: y",
                          "http://box:80/a?x", "http://box/a b", "https://"})
    EXPECT_EQ(whole_url(bad), "refused") << bad;
}

TEST(ServerUrl, OnlyThisMachineIsLoopback) {
  EXPECT_TRUE(parse_server_url("http://127.0.0.1:80")->is_loopback());
  EXPECT_TRUE(parse_server_url("localhost")->is_loopback());
  EXPECT_TRUE(parse_server_url("[::1]")->is_loopback());
  EXPECT_FALSE(parse_server_url("http://10.0.0.7")->is_loopback());
}

}  // namespace
}  // namespace hearth
