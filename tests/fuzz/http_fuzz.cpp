// HTTP requests: any bytes end in requests or in an error, the same in one piece as byte by byte.
#include <cstdlib>
#include <optional>

#include "tests/fuzz/fuzz.h"
#include "tools/server/browser_guard.h"
#include "tools/server/http_parser.h"

namespace hearth {

std::vector<std::string> fuzz::seeds() {
  return {
      "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "POST /v1/completions HTTP/1.1\r\nHost: [::1]:80\r\nOrigin: http://a\r\nContent-Length: 2\r\n"
      "Expect: 100-continue\r\n\r\n{}",
      "POST /p?q HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u"
      "\r\n\r\nGET /n HTTP/1.0\r\nConnection: keep-alive\r\nSec-Fetch-Site: cross-site\r\n\r\n",
  };
}

namespace {

constexpr HttpLimits kFuzzLimits{
    .target_bytes = 64, .head_bytes = 512, .headers = 8, .body_bytes = 256};

// One line per request, and the status of the error that ends them.
std::string read_all_requests(const std::string& bytes, std::size_t step) {
  std::string result, input;
  std::optional<HttpParser> parser(kFuzzLimits);
  for (std::size_t i = 0; i < bytes.size(); i += step) {
    input += bytes.substr(i, step);
    for (;;) {
      const HttpParser::State state = parser->feed(input);
      if (state == HttpParser::State::kFailed)
        return result + std::to_string(parser->error().status);
      if (state != HttpParser::State::kDone) break;
      const HttpRequest request = parser->take();
      if (request.body.size() > kFuzzLimits.body_bytes) std::abort();
      refusal_of_host(request, {.allowed_hosts = {"a"}});
      refusal_of_origin(request, {.allowed_hosts = {"a"}, .cors_origin = "http://a"});
      result += request.method + " " + percent_decoded(request.path) + " " + request.body + "\n";
      parser.emplace(kFuzzLimits);
      if (input.empty()) break;
    }
  }
  return result;
}

}  // namespace
}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  if (hearth::read_all_requests(bytes, bytes.size() + 1) != hearth::read_all_requests(bytes, 1))
    std::abort();
  return 0;
}
