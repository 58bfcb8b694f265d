// The numbers of a load, from known times, and how they are shown.
#include "tools/load/load_report.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/xml.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using State = LoadedRequest::State;

LoadedRequest completed_request(double arrival, std::vector<double> times, uint64_t tokens) {
  LoadedRequest request;
  request.state = State::kCompleted;
  request.timing = {.arrival = arrival, .token_times = std::move(times)};
  request.end = request.timing.token_times.back() + 0.5;
  request.prompt_tokens = 10;
  request.tokens = tokens;
  request.server_counted = true;
  return request;
}

LoadRun known_run() {
  LoadRun run;
  run.requests.push_back(completed_request(0, {1, 1.2, 1.8}, 5));
  run.requests.push_back(completed_request(2, {2.1, 2.15}, 2));
  LoadedRequest failed;
  failed.state = State::kFailed;
  failed.timing = {.arrival = 3, .token_times = {3.1}, .failed = true};
  failed.tokens = 1;
  failed.error = "broken stream";
  failed.error_detail = "the server closed the connection";
  run.requests.push_back(failed);
  LoadedRequest refused;
  refused.state = State::kRefused;
  refused.timing = {.arrival = 3, .failed = true};
  refused.refusals = 3;
  refused.error = "HTTP status 429";
  run.requests.push_back(refused);
  run.end = 4;
  return run;
}

TEST(LoadReport, AddsUp) {
  const LoadReport report =
      make_load_report(known_run(), {.time_to_first_token = 0.5, .time_between_tokens = 0.1}, "x");
  EXPECT_EQ(report.requests, 4u);
  EXPECT_EQ(report.completed, 2u);
  EXPECT_EQ(report.failed, 1u);
  EXPECT_EQ(report.refused, 1u);
  EXPECT_EQ(report.refusals, 3u);
  EXPECT_EQ(report.generated_tokens, 8u);
  EXPECT_DOUBLE_EQ(report.makespan_seconds, 3.1);  // to the last token of all
  EXPECT_DOUBLE_EQ(report.throughput_tokens_per_s, 8 / 3.1);
  EXPECT_EQ(report.met_goal, 1u);
  EXPECT_DOUBLE_EQ(report.goodput, 1 / 3.1);
  EXPECT_NEAR(report.ttft.p50, 0.1, 1e-9);                    // of 1, 0.1 and 0.1
  EXPECT_NEAR(report.tbt.p50, 0.2, 1e-9);                     // of 0.2, 0.6 and 0.05
  EXPECT_NEAR(report.tpot.mean, (0.8 / 4 + 0.05) / 2, 1e-9);  // by tokens, not by chunks
  EXPECT_NEAR(report.e2e.mean, (2.3 + 0.65) / 2, 1e-9);
  EXPECT_NEAR(report.worst_gap.mean, (0.6 + 0.05) / 2, 1e-9);
  EXPECT_NEAR(report.longest_gap, 0.6, 1e-9);
  EXPECT_EQ(report.errors.at("broken stream").count, 1u);
}

TEST(LoadReport, JsonHasEveryNumber) {
  const nlohmann::json json = to_json(make_load_report(known_run(), {}, "8 clients"));
  for (const char* key : {"ttft_seconds", "tbt_seconds", "tpot_seconds", "e2e_seconds"})
    for (const char* part : {"mean", "p50", "p90", "p99"})
      EXPECT_TRUE(json[key].contains(part)) << key << part;
  EXPECT_NEAR(json["worst_gap_seconds"]["max"].get<double>(), 0.6, 1e-9);
  EXPECT_EQ(json["load"], "8 clients");
  EXPECT_EQ(json["tokens_from"], "usage and chunks");
  EXPECT_EQ(json["errors"]["HTTP status 429"]["count"], 1);
  const nlohmann::json list = requests_to_json(known_run());
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0]["state"], "completed");
  EXPECT_EQ(list[3]["state"], "refused");
  EXPECT_FALSE(list[3].contains("ttft_seconds"));
}

TEST(LoadReport, TheTableHasAColumnPerLoad) {
  const LoadReport reports[] = {make_load_report(known_run(), {}, "8 clients"),
                                make_load_report({}, {}, "64 clients")};
  const std::string table = format_load(reports, {});
  EXPECT_THAT(table, HasSubstr("8 clients  64 clients\n"));
  EXPECT_THAT(table, HasSubstr("worst gap of all, ms"));
  EXPECT_THAT(table,
              HasSubstr("8 clients: 1 request: broken stream: the server closed the connection\n"));
  EXPECT_THAT(table, HasSubstr("replies of 429 and 503"));
  EXPECT_THAT(table, Not(HasSubstr("nan")));
  const std::string one = format_load(std::span(reports).subspan(1), {});
  EXPECT_THAT(one, Not(HasSubstr("429")));  // nothing to say
}

// A server that died before it answered has counted nothing.
TEST(LoadReport, SaysWhoCountedTheTokens) {
  const auto notes = [](LoadRun run) {
    const LoadReport report = make_load_report(run, {}, "x");
    return format_load(std::span(&report, 1), {});
  };
  LoadRun run = known_run();
  EXPECT_THAT(notes(run), HasSubstr("did not report the usage of 1 of 3 answers"));
  run.requests.erase(run.requests.begin() + 2);
  EXPECT_THAT(notes(run), HasSubstr("Tokens are counted by the server."));
  run.requests.erase(run.requests.begin(), run.requests.begin() + 2);
  EXPECT_THAT(notes(run), Not(HasSubstr("counted by the server")));
}

TEST(LoadReport, ThePlotIsWellFormed) {
  const LoadReport reports[] = {make_load_report(known_run(), {}, "8 & more clients"),
                                make_load_report({}, {}, "64 clients")};
  const auto elements =
      XmlReader(plot_load(reports, {}, "http://box:8080", "synthetic:n=4")).read();
  ASSERT_TRUE(elements);
  std::vector<std::string> texts;
  for (const XmlElement& element : *elements) texts.push_back(element.text);
  for (const char* wanted : {"Throughput, tokens/s", "Goodput, requests/s", "synthetic:n=4"})
    EXPECT_THAT(texts, ::testing::Contains(wanted));
}

}  // namespace
}  // namespace hearth::testing
