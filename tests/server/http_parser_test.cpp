// Requests from bytes, in pieces of any size: what is read, what is refused and with which status.
#include "tools/server/http_parser.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hearth {
namespace {

using State = HttpParser::State;

constexpr HttpLimits kLimits{
    .target_bytes = 100, .head_bytes = 400, .headers = 8, .body_bytes = 64};

// Feeds `bytes` in pieces of `step`; bytes that the parser leaves are returned in `rest`.
HttpParser parse(const std::string& bytes, size_t step, std::string* rest = nullptr) {
  HttpParser parser(kLimits);
  std::string input;
  for (size_t i = 0; i < bytes.size(); i += step) {
    input += bytes.substr(i, step);
    const State state = parser.feed(input);
    if (state == State::kDone || state == State::kFailed) {
      if (rest != nullptr) *rest = input + bytes.substr(std::min(bytes.size(), i + step));
      break;
    }
  }
  return parser;
}

TEST(HttpParser, ReadsRequestsInAnyPieces) {
  struct Case {
    std::string bytes, method, path, query, body;
    bool keep_alive;
  };
  const std::string host = "Host: a\r\n";
  const Case cases[] = {
      {"GET / HTTP/1.1\r\n" + host + "\r\n", "GET", "/", "", "", true},
      {"\r\nGET /a?b=c?d HTTP/1.1\r\nhOST:a\r\nX:\ty \r\n\r\n", "GET", "/a", "b=c?d", "", true},
      {"GET http://a:1/b?c HTTP/1.1\r\n" + host + "\r\n", "GET", "/b", "c", "", true},
      {"GET http://a HTTP/1.1\r\n" + host + "\r\n", "GET", "/", "", "", true},
      {"GET / HTTP/1.0\r\n\r\n", "GET", "/", "", "", false},
      {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET", "/", "", "", true},
      {"GET / HTTP/1.1\r\nConnection: x, Close\r\n" + host + "\r\n", "GET", "/", "", "", false},
      {"POST /p HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello", "POST", "/p", "", "hello",
       true},
      {"POST /p HTTP/1.1\r\n" + host + "Content-Length: 0\r\n\r\n", "POST", "/p", "", "", true},
      {"POST /p HTTP/1.1\r\n" + host +
           "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
       "POST", "/p", "", "abc0123456789", true},
  };
  for (const Case& test : cases) {
    for (const size_t step : {size_t{1}, size_t{3}, test.bytes.size()}) {
      std::string rest;
      HttpParser parser = parse(test.bytes + "NEXT", step, &rest);
      ASSERT_EQ(parser.state(), State::kDone) << test.bytes << parser.error().message;
      EXPECT_EQ(rest, "NEXT") << test.bytes;
      const HttpRequest request = parser.take();
      EXPECT_EQ(request.method, test.method);
      EXPECT_EQ(request.path, test.path);
      EXPECT_EQ(request.query, test.query);
      EXPECT_EQ(request.body, test.body);
      EXPECT_EQ(request.keep_alive, test.keep_alive) << test.bytes;
    }
  }
}

TEST(HttpParser, FindsHeadersByNameInLowerCase) {
  HttpParser parser = parse("GET / HTTP/1.1\r\nHost: a\r\nX-Key:  some value \r\n\r\n", 4096);
  ASSERT_EQ(parser.state(), State::kDone);
  const HttpRequest request = parser.take();
  EXPECT_EQ(request.header("x-key"), "some value");
  EXPECT_EQ(request.header("nothing"), "");
}

TEST(HttpParser, RefusesRequestsThatAreBrokenOrTooLarge) {
  struct Case {
    int status;
    std::string bytes;
  };
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n", end = "\r\n\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked" + end;
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 8; ++i) many += "A: b\r\n";
  const Case cases[] = {
      {400, "nonsense" + end},
      {400, "GET  HTTP/1.1" + end},
      {400, "GET nowhere HTTP/1.1\r\nHost: a" + end},
      {400, "GET /a b HTTP/1.1\r\nHost: a" + end},
      {400, "GET /\x01 HTTP/1.1\r\nHost: a" + end},
      {400, "G\"T / HTTP/1.1\r\nHost: a" + end},
      {400, "GET / FTP/1.1\r\nHost: a" + end},
      {505, "GET / HTTP/2.0\r\nHost: a" + end},
      {400, "GET / HTTP/1.1" + end},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b" + end},
      {400, "GET / HTTP/1.1\nHost: a\n\n" + end},
      {400, "GET / HTTP/1.1\r\nHost : a" + end},
      {400, "GET / HTTP/1.1\r\nHost: a\r\n folded" + end},
      {400, "GET / HTTP/1.1\r\nHost: a\r\nno colon" + end},
      {400, "GET / HTTP/1.1\r\nHost: a\nb: c" + end},
      {414, "GET /" + std::string(120, 'a') + " HTTP/1.1\r\nHost: a" + end},
      {414, "GET /" + std::string(1000, 'a')},
      {431, "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(1000, 'a')},
      {431, many + "\r\n"},
      {400, post + "Content-Length: 1\r\nContent-Length: 1" + end},
      {400, post + "Content-Length: 1\r\nTransfer-Encoding: chunked" + end},
      {400, post + "Content-Length: -1" + end},
      {400, post + "Content-Length: +1" + end},
      {400, post + "Content-Length: 1x" + end},
      {400, post + "Content-Length:" + end},
      {413, post + "Content-Length: 65" + end},
      {413, post + "Content-Length: 99999999999999999999999" + end},
      {501, post + "Transfer-Encoding: gzip, chunked" + end},
      {415, post + "Content-Encoding: gzip\r\nContent-Length: 1" + end},
      {400, chunked + "xyz\r\n"},
      {400, chunked + "-1\r\n"},
      {400, chunked + "\r\n"},
      {400, chunked + "3\r\nabcd\r\n"},
      {400, chunked + std::string(300, '1')},
      {413, chunked + "41\r\n"},
      {413, chunked + "20\r\n" + std::string(32, 'a') + "\r\n21\r\n"},
      {413, chunked + "ffffffffffffffff\r\n"},
      {400, chunked + "fffffffffffffffff\r\n"},
      {431, chunked + "0\r\n" + std::string(1000, 't')},
      {400, chunked + "3;a\nb\r\nabc\r\n0\r\n\r\n"},
      {400, chunked + "3;a\rb\r\nabc\r\n0\r\n\r\n"},
      {400, chunked + "0\r\nT: a\nb\r\n\r\n"},
      {400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked" + end + "3\r\nabc\r\n0\r\n\r\n"},
  };
  for (const Case& test : cases) {
    for (const size_t step : {size_t{1}, size_t{7}, test.bytes.size()}) {
      const HttpParser parser = parse(test.bytes, step);
      ASSERT_EQ(parser.state(), State::kFailed) << test.bytes;
      EXPECT_EQ(parser.error().status, test.status) << test.bytes;
      EXPECT_FALSE(parser.error().message.empty());
    }
  }
}

TEST(HttpParser, EndlessEmptyLinesAreRefused) {
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(parse("\r\n\r\n\r\n\r\n" + request, 1).state(), State::kDone);
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "\r\n";
  for (const size_t step : {size_t{1}, size_t{2}, size_t{3}, lines.size()}) {
    const HttpParser parser = parse(lines, step);
    ASSERT_EQ(parser.state(), State::kFailed) << step;
    EXPECT_EQ(parser.error().status, 400);
  }
}

// A million chunks of one byte, as fast as one of a million bytes.
TEST(HttpParser, TinyChunksTakeNoQuadraticTime) {
  constexpr HttpLimits kLarge{.body_bytes = 1 << 20};
  HttpParser parser(kLarge);
  std::string input = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 1 << 20; ++i) input += "1\r\na\r\n";
  input += "0\r\n\r\n";
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(parser.feed(input), State::kDone);
  EXPECT_EQ(parser.take().body.size(), size_t{1} << 20);
  // It takes milliseconds; moving the rest of the input for every chunk would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

TEST(HttpParser, TheHeadIsThereBeforeTheBody) {
  HttpParser parser(kLimits);
  std::string input = "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n";
  parser.feed(input);
  EXPECT_FALSE(parser.head_read());
  input += "\r\n";
  EXPECT_EQ(parser.feed(input), State::kBody);
  EXPECT_TRUE(parser.head_read() && parser.has_body());
  EXPECT_EQ(parser.head().path, "/p");
}

TEST(HttpParser, EscapesOfAPathAreBytes) {
  EXPECT_EQ(percent_decoded("org%2Fmy%20model"), "org/my model");
  EXPECT_EQ(percent_decoded("%e2%9C%93a"),
            "\xe2\x9c\x93"
            "a");
  EXPECT_EQ(percent_decoded(""), "");
  for (const char* other : {"%", "%2", "a%", "%zz", "%-1", "%+1", "% 1", "a+b", "%%"})
    EXPECT_EQ(percent_decoded(other), other);
  EXPECT_EQ(percent_decoded("%%41%4"), "%A%4");
}

TEST(HttpParser, SaysWhenTheClientWaitsToContinue) {
  HttpParser parser(kLimits);
  std::string input =
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
  EXPECT_EQ(parser.feed(input), State::kBody);
  EXPECT_TRUE(parser.expects_continue());
  input = "ok";
  EXPECT_EQ(parser.feed(input), State::kDone);
}

}  // namespace
}  // namespace hearth
