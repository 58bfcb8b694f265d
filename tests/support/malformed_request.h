// Requests that no server should accept.
#pragma once

#include <random>
#include <string>

#include "tests/support/http_client.h"

namespace hearth::testing {

// A request that is wrong in one of many ways, chosen by `random`.
inline std::string malformed_request(std::mt19937& random) {
  const auto pick = [&](auto... items) {
    const std::string list[] = {items...};
    return list[random() % (sizeof...(items))];
  };
  const auto noise = [&](size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
  };
  const std::string path =
      pick("/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize");
  const std::string head = "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n";
  switch (random() % 10) {
    case 0:  // broken JSON
      return HttpClient::post_text(path, pick("{", "{\"prompt\":", "[1,", "{]}", "nul", "\"", ""));
    case 1:  // deep nesting
      return HttpClient::post_text(path, "{\"prompt\":" + std::string(random() % 50000, '['));
    case 2:  // huge numbers
      return HttpClient::post_text(path,
                                   R"({"prompt":"a","content":7,"tokens":[9e99],"max_tokens":)" +
                                       std::string(random() % 500 + 20, '9') + "}");
    case 3:  // wrong UTF-8
      return HttpClient::post_text(path, "{\"prompt\":\"\xff" + noise(20) + "\"}");
    case 4:  // wrong types
      return HttpClient::post_text(
          path, pick(R"({"prompt":{},"messages":1,"content":[],"tokens":"x"})",
                     R"({"messages":[1],"prompt":true,"content":null,"tokens":[-1]})",
                     R"({"messages":[{"role":[]}],"prompt":[[]],"content":{},"tokens":[null]})"));
    case 5:  // missing fields
      return HttpClient::post_text(path, pick("{}", R"({"model":"m"})", R"({"n":1})"));
    case 6:  // chunked nonsense
      return head + "Transfer-Encoding: chunked\r\n\r\n" +
             pick("zz\r\n", "-5\r\nabc", "5\r\nabcdefgh\r\n0\r\n\r\n", "ffffffffff\r\n",
                  "\r\n\r\n");
    case 7:  // broken heads
      return pick("GET\r\n\r\n", "POST / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
                  "GET / HTTP/1.1\r\nHost: localhost\r\n : b\r\n\r\n");
    case 8:  // noise
      return noise(random() % 300 + 1) + "\r\n\r\n";
    default:  // half of a request
      return head + "Content-Length: 100\r\n\r\n{\"prompt\":";
  }
}

}  // namespace hearth::testing
