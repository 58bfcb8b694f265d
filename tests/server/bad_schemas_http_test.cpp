// Schemas, expressions and tools that someone sends to stall the server: each is refused or
// answered, while the stream of another client continues.
#include <atomic>
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/served_stand_in.h"

namespace hearth::testing {
namespace {

std::string many_properties(int count) {
  std::string schema = R"({"type":"object","properties":{)";
  for (int i = 0; i < count; ++i)
    schema += fmt::format(R"({}"p{}":{{"type":"integer"}})", i == 0 ? "" : ",", i);
  return schema + "}}";
}

std::string deep_items(int depth) {
  std::string schema, end;
  for (int i = 0; i < depth; ++i) schema += R"({"items":)", end += "}";
  return schema + "{}" + end;
}

// kinds^parts combinations.
std::string catastrophic_all_of(int parts, int kinds) {
  std::string schema = R"({"allOf":[)";
  for (int i = 0; i < parts; ++i) {
    schema += fmt::format(R"({}{{"anyOf":[)", i == 0 ? "" : ",");
    for (int k = 0; k < kinds; ++k)
      schema += fmt::format(R"({}{{"type":"object","properties":{{"p{}":{{"const":{}}}}}}})",
                            k == 0 ? "" : ",", i, k);
    schema += "]}";
  }
  return schema + "]}";
}

// An intersection that needs 2^30 states.
std::string exponential_patterns() {
  std::string schema = R"({"allOf":[)";
  for (int i = 1; i < 30; ++i)
    schema += fmt::format(R"({}{{"type":"string","pattern":"^(a|b)*a(a|b){{{}}}$"}})",
                          i == 1 ? "" : ",", i);
  return schema + "]}";
}

class BadSchemasOverHttp : public ServedStandIn {
 protected:
  uint32_t context() const override { return 3000; }
  void SetUp() override {
    ServedStandIn::SetUp();
    engine_->executor().delay = std::chrono::milliseconds(1);
    neighbour_ = std::thread([this] { stream_until_told(); });
  }
  void TearDown() override {
    done_ = true;
    if (neighbour_.joinable()) neighbour_.join();
    ServedStandIn::TearDown();
  }

  // One stream after the other, token by token.
  void stream_until_told() {
    const std::string body =
        R"({"prompt":"Once","max_tokens":200,"ignore_eos":true,"stream":true})";
    while (!done_) {
      HttpClient client(server_->port());
      client.send(HttpClient::post_text("/v1/completions", body));
      size_t seen = 0;
      while (client.received().find("[DONE]") == std::string::npos) {
        if (!client.read_more_than(seen)) {
          ++broken_;
          return;
        }
        seen = client.received().size();
        ++pieces_;
      }
    }
  }

  // The status of a request with these fields, during which the other client's stream must
  // continue.
  int status_of(const std::string& fields) {
    const auto begin = std::chrono::steady_clock::now();
    const uint64_t before = pieces_;
    const HttpAnswer answer =
        HttpClient(server_->port())
            .post("/v1/chat/completions", R"({"max_tokens":8,"messages":[{"role":"user","content":)"
                                          R"("Hi"}],)" +
                                              fields + "}");
    const auto took = std::chrono::steady_clock::now() - begin;
    // A step takes a millisecond.
    if (took > std::chrono::milliseconds(300)) {
      EXPECT_GT(pieces_, before + 5) << fields.substr(0, 80);
    }
    EXPECT_TRUE(comes_true([&] { return pieces_ > before || broken_ > 0; }));
    EXPECT_EQ(broken_, 0u) << fields.substr(0, 80);
    if (answer.status == 400) {
      EXPECT_FALSE(answer.json()["error"]["message"].get<std::string>().empty());
    }
    return answer.status;
  }
  int status_of_schema(const std::string& schema) {
    return status_of(
        R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":)" + schema +
        "}}");
  }

  std::atomic<bool> done_ = false;
  std::atomic<uint64_t> pieces_ = 0, broken_ = 0;
  std::thread neighbour_;
};

TEST_F(BadSchemasOverHttp, AreRefusedWhileOthersGoOn) {
  EXPECT_EQ(status_of_schema(many_properties(100'000)), 400);
  EXPECT_EQ(status_of_schema(deep_items(10'000)), 400);
  EXPECT_EQ(status_of_schema(catastrophic_all_of(20, 10)), 400);
  EXPECT_EQ(status_of_schema(R"({"$ref":"#"})"), 400);
  EXPECT_EQ(status_of_schema(R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},
                                 "b":{"anyOf":[{"$ref":"#/$defs/a"}]}}})"),
            400);
}

// These may be refused or answered; a grammar whose masks take too long is the client's mistake.
TEST_F(BadSchemasOverHttp, AreAnsweredWhileOthersGoOn) {
  const auto is_handled = [&](int status) { return status == 200 || status == 400; };
  EXPECT_TRUE(is_handled(status_of_schema(exponential_patterns())));
  EXPECT_TRUE(is_handled(status_of_schema(many_properties(1'500))));
  for (const char* const pattern : {"(a|b)*a(a|b){18}", "((a{0,100}){0,100}){0,100}", "(x+x+)+y",
                                    "([a-z]{1,50}-){1,50}[a-z]{1,50}"}) {
    const int status = status_of(fmt::format(R"("structured_outputs":{{"regex":"{}"}})", pattern));
    EXPECT_TRUE(is_handled(status)) << pattern << ": " << status;
  }
}

// The arguments of a tool that the model need not call are not enforced, and nothing is refused.
TEST_F(BadSchemasOverHttp, OfToolsLeaveOthersAlone) {
  const auto tool = [](const std::string& parameters) {
    return R"("tools":[{"type":"function","function":{"name":"f","parameters":)" + parameters +
           "}}]";
  };
  const std::string schema = catastrophic_all_of(14, 3);
  EXPECT_EQ(status_of(tool(schema)), 200);
  EXPECT_EQ(status_of(tool(schema) + R"(,"tool_choice":"required")"), 400);
}

}  // namespace
}  // namespace hearth::testing
