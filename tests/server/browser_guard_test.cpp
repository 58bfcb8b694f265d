// Web pages that must not reach a server without a key: other sites', and those that point their
// own name at this machine.
#include "tools/server/browser_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::HasSubstr;
using Headers = std::vector<std::pair<std::string, std::string>>;

HttpRequest request(Headers headers) {
  HttpRequest head;
  head.method = "POST";
  head.headers = std::move(headers);
  return head;
}

TEST(BrowserGuard, DnsRebindingIsRefusedByHost) {
  const BrowserRules rules{.allowed_hosts = {"box", "Chat.Example"}};
  for (const char* host :
       {"127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:8080", "localhost.", "[::1]:8080",
        "192.168.1.7:80", "a.localhost", "box", "box:8080", "chat.example:443"})
    EXPECT_EQ(refusal_of_host(request({{"host", host}}), rules), "") << host;
  EXPECT_EQ(refusal_of_host(request({}), rules), "");
  for (const char* host :
       {"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example",
        "evil-localhost", "1.2.3.4.5", "[::1", "127.1", "0x7f.0.0.1", "box.evil.example", "*"}) {
    EXPECT_THAT(refusal_of_host(request({{"host", host}}), rules), HasSubstr("--allow-host"))
        << host;
    EXPECT_EQ(refusal_of_host(request({{"host", host}}), {.allowed_hosts = {"*"}}), "") << host;
  }
}

TEST(BrowserGuard, CrossSiteRequestsAreRefusedByOrigin) {
  const std::string host = "127.0.0.1:8080";
  const auto refusal = [&](const std::string& origin, const BrowserRules& rules = {}) {
    return refusal_of_origin(request({{"host", host}, {"origin", origin}}), rules);
  };
  EXPECT_EQ(refusal("http://127.0.0.1:8080"), "");
  EXPECT_EQ(refusal_of_origin(request({{"host", host}}), {}), "") << "not a browser";
  for (const char* origin :
       {"http://evil.example", "http://127.0.0.1:9090", "http://localhost:8080", "null", "x",
        "http://127.0.0.1:8080.evil.example", "file://"})
    EXPECT_THAT(refusal(origin), HasSubstr("--cors")) << origin;
  EXPECT_EQ(refusal("http://page:3000", {.cors_origin = "http://page:3000"}), "");
  EXPECT_NE(refusal("http://page:3001", {.cors_origin = "http://page:3000"}), "");
  EXPECT_EQ(refusal("null", {.cors_origin = "*"}), "");
  // A proxy in front speaks https under its own name.
  EXPECT_EQ(refusal("https://chat.example", {.allowed_hosts = {"chat.example"}}), "");
  EXPECT_NE(refusal("https://evil.example", {.allowed_hosts = {"*"}}), "");
}

TEST(BrowserGuard, CrossSiteRequestsWithoutOriginAreRefused) {
  const auto refusal = [](const char* site, const char* mode) {
    return refusal_of_origin(
        request({{"host", "127.0.0.1"}, {"sec-fetch-site", site}, {"sec-fetch-mode", mode}}), {});
  };
  EXPECT_NE(refusal("cross-site", "no-cors"), "");
  EXPECT_NE(refusal("same-site", "no-cors"), "");
  EXPECT_EQ(refusal("same-origin", "cors"), "");
  EXPECT_EQ(refusal("none", "navigate"), "");
  EXPECT_EQ(refusal("cross-site", "navigate"), "") << "somebody followed a link";
}

TEST(BrowserGuard, BrowsersMustSendJson) {
  const std::pair<std::string, std::string> browser = {"origin", "http://127.0.0.1"};
  const auto refused = [&](Headers headers) { return browser_sent_no_json(request(headers)); };
  EXPECT_FALSE(refused({{"content-type", "text/plain"}})) << "curl";
  EXPECT_FALSE(refused({}));
  EXPECT_FALSE(refused({browser, {"content-type", "application/json"}}));
  EXPECT_FALSE(refused({browser, {"content-type", "Application/JSON; charset=utf-8"}}));
  EXPECT_TRUE(refused({browser, {"content-type", "text/plain"}}));
  EXPECT_TRUE(refused({browser, {"content-type", "application/jsonx"}}));
  EXPECT_TRUE(refused({browser}));
  EXPECT_TRUE(refused({{"sec-fetch-mode", "no-cors"}, {"content-type", "text/plain"}}));
}

}  // namespace
}  // namespace hearth
