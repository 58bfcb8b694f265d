// What clients and operators see of a queue that is too slow, and of kernels that are compiled.
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/served_stand_in.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

class OverloadHttp : public ServedStandIn {
 protected:
  static constexpr const char* kShortCompletion = R"({"prompt":"a fox","max_tokens":2})";
};

TEST_F(OverloadHttp, ARequestThatWouldWaitTooLongIsToldWhenToComeBack) {
  Engine& engine = **engine_;
  engine.set_limits(1, 64);
  engine.set_pace(200);
  std::vector<TokenStream> streams;
  for (int i = 0; i < 40; ++i) {
    GenerationRequest request{.prompt = {1, 2, 3}};
    request.max_tokens = 2;
    auto stream = engine.submit(std::move(request));
    ASSERT_TRUE(stream.ok()) << stream.error().message;
    streams.push_back(std::move(stream).value());
  }
  for (size_t i = 0; i < 8; ++i) read_ids(streams[i]);
  engine.set_policy({.max_wait_ms = 1});
  const HttpAnswer refused = post("/v1/completions", kShortCompletion);
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.json()["error"]["code"], "queue_full");
  EXPECT_THAT(refused.json()["error"]["message"].get<std::string>(),
              HasSubstr("the limit is 0.001 s. Try again later."));
  EXPECT_THAT(refused.head, HasSubstr("Retry-After: 1\r\n"));
  // The queue is empty again.
  streams.clear();
  engine.set_pace(0);
  engine.set_policy({});
  EXPECT_EQ(post("/v1/completions", kShortCompletion).status, 200);
}

TEST_F(OverloadHttp, HealthSaysHowManyKernelsAreCompiled) {
  EXPECT_FALSE(get("/health").json().contains("kernels"));
  server_ = HttpServer::create({.port = 0}).value();
  server_->serve(
      {.engine = **engine_,
       .tokenizer = *tokenizer_,
       .chat_template = chat_.get(),
       .preparation = [] { return PreparationProgress{.ready = 3, .total = 8, .done = false}; }});
  EXPECT_EQ(get("/health").json()["kernels"].dump(), R"({"compiled":3,"done":false,"total":8})");
}

}  // namespace
}  // namespace hearth::testing
