// Traces in all formats, valid and broken.
#include "tools/replay/trace_reader.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/replay/synthetic_trace.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

Result<Trace> azure(const std::string& text, size_t limit = 0) {
  std::istringstream stream(text);
  return read_azure_csv(stream, "a.csv", limit);
}

Result<Trace> mooncake(const std::string& text, size_t limit = 0) {
  std::istringstream stream(text);
  return read_mooncake_jsonl(stream, "m.jsonl", limit);
}

// The error is one line that has all of these parts.
void expect_wrong(const Result<Trace>& trace, std::initializer_list<const char*> parts) {
  ASSERT_FALSE(trace.ok());
  const std::string& message = trace.error().message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const char* part : parts) EXPECT_THAT(message, HasSubstr(part));
}

TEST(AzureCsv, ReadsTimesAndLengths) {
  const auto trace = azure(std::string(kHeader) +
                           "2023-11-16 23:59:59.5000000,374,44\r\n"
                           "2023-11-16 23:59:59.7500000,396,109\n"
                           "2023-11-17 00:00:01,2,7");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->requests.size(), 3u);
  EXPECT_EQ(trace->requests[0].arrival_seconds, 0);
  EXPECT_NEAR(trace->requests[1].arrival_seconds, 0.25, 1e-6);
  EXPECT_NEAR(trace->requests[2].arrival_seconds, 1.5, 1e-6);
  EXPECT_EQ(trace->requests[1].prompt_tokens, 396u);
  EXPECT_EQ(trace->requests[1].generated_tokens, 109u);
  EXPECT_EQ(trace->prompt_tokens(), 772u);
  EXPECT_EQ(trace->generated_tokens(), 160u);
}

TEST(AzureCsv, TimesMayHaveAZone) {
  const auto trace = azure(std::string(kHeader) +
                           "2024-05-10 00:00:00.500000+00:00,10,5\n"
                           "2024-05-10 00:00:01.500000Z,10,5\n"
                           "2024-05-10 02:00:02+02:00,10,5\n"
                           "2024-05-09 23:30:02.75-00:30,10,5\n");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_NEAR(trace->requests[1].arrival_seconds, 1.0, 1e-6);
  EXPECT_NEAR(trace->requests[2].arrival_seconds, 1.5, 1e-6);
  EXPECT_NEAR(trace->requests[3].arrival_seconds, 2.25, 1e-6);
  expect_wrong(azure(std::string(kHeader) + "2024-05-10 00:00:00+1,10,5\n"), {"TIMESTAMP"});
}

TEST(AzureCsv, ReadsNoMoreThanTheLimit) {
  const auto trace = azure(std::string(kHeader) + "2023-11-16 18:15:46,1,2\nnonsense\n", 1);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->requests.size(), 1u);
}

TEST(AzureCsv, ErrorsNameLineAndField) {
  const std::string head = std::string(kHeader) + "2023-11-16 18:15:46.5,374,44\n";
  expect_wrong(azure(""), {"a.csv", "line 1", "TIMESTAMP,ContextTokens"});
  expect_wrong(azure("a,b,c\n"), {"line 1"});
  expect_wrong(azure(kHeader), {"a.csv", "no requests"});
  expect_wrong(azure(head + "2023-11-16 18:15:47,374\n"), {"line 3", "three fields"});
  expect_wrong(azure(head + "2023-11-16 18:15:47,374,44,1\n"), {"line 3", "three fields"});
  expect_wrong(azure(head + "2023-11-16 18:15:45,374,44\n"), {"line 3", "TIMESTAMP", "earlier"});
  for (const char* time : {"", "yesterday", "2023-13-16 18:15:47", "2023-02-30 18:15:47",
                           "2023-11-16 24:15:47", "2023-11-16 18:15:47.", "2023-11-16 18:15:47.x",
                           "2023-11-16 18:15:4", "2023-11-16T18:15:47"})
    expect_wrong(azure(head + time + ",374,44\n"), {"line 3", "TIMESTAMP"});
  for (const char* tokens : {"", "0", "-1", "1.5", "12x", " 12", "99999999999"}) {
    expect_wrong(azure(head + "2023-11-16 18:15:47," + tokens + ",44\n"),
                 {"line 3", "ContextTokens"});
    expect_wrong(azure(head + "2023-11-16 18:15:47,374," + tokens + "\n"),
                 {"line 3", "GeneratedTokens"});
  }
}

TEST(MooncakeJsonl, ReadsTimesLengthsAndIds) {
  const auto trace = mooncake(
      R"({"timestamp": 500, "input_length": 1025, "output_length": 6, "hash_ids": [0, 1, 2]})"
      "\n"
      R"({"timestamp": 540, "input_length": 600, "output_length": 4, "hash_ids": [0, 9]})");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->requests.size(), 2u);
  EXPECT_EQ(trace->requests[0].arrival_seconds, 0);
  EXPECT_NEAR(trace->requests[1].arrival_seconds, 0.04, 1e-9);
  EXPECT_EQ(trace->requests[0].prompt_tokens, 1025u);
  EXPECT_EQ(trace->requests[1].generated_tokens, 4u);
  EXPECT_THAT(trace->requests[0].prefix_ids, ElementsAre(0, 1, 2));
  EXPECT_EQ(trace->requests[0].tokens_per_prefix_id, 512);
}

TEST(MooncakeJsonl, ErrorsNameLineAndField) {
  const std::string good =
      R"({"timestamp": 5, "input_length": 600, "output_length": 6, "hash_ids": [0, 1]})"
      "\n";
  expect_wrong(mooncake(""), {"m.jsonl", "no requests"});
  expect_wrong(mooncake(good + "{"), {"m.jsonl", "line 2"});
  expect_wrong(mooncake(good + "[1]"), {"line 2", "object"});
  const auto line = [&](const char* time, const char* input, const char* output, const char* ids) {
    return mooncake(good + "{\"timestamp\":" + time + ",\"input_length\":" + input +
                    ",\"output_length\":" + output + ",\"hash_ids\":" + ids + "}");
  };
  EXPECT_TRUE(line("5", "1", "1", "[]").ok());
  expect_wrong(line("4", "1", "1", "[]"), {"line 2", "timestamp", "earlier"});
  expect_wrong(line("-4", "1", "1", "[]"), {"line 2", "timestamp"});
  expect_wrong(line("\"5\"", "1", "1", "[]"), {"line 2", "timestamp"});
  expect_wrong(line("5", "0", "1", "[]"), {"line 2", "input_length"});
  expect_wrong(line("5", "1.5", "1", "[]"), {"line 2", "input_length"});
  expect_wrong(line("5", "1", "null", "[]"), {"line 2", "output_length"});
  expect_wrong(line("5", "1", "1", "7"), {"line 2", "hash_ids"});
  expect_wrong(line("5", "512", "1", "[1,2]"), {"line 2", "hash_ids", "2 entries"});
  expect_wrong(line("5", "512", "1", "[-1]"), {"line 2", "hash_ids"});
  expect_wrong(mooncake(good + "{\"timestamp\":5}"), {"line 2", "input_length"});
}

TEST(SyntheticTrace, LengthsAreInTheirRanges) {
  const auto trace =
      make_synthetic_trace("synthetic:rate=inf,n=500,prompt=16..120,gen=8..96,seed=1");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->requests.size(), 500u);
  uint32_t least = 1000, most = 0;
  for (const TraceRequest& request : trace->requests) {
    EXPECT_EQ(request.arrival_seconds, 0);
    EXPECT_TRUE(request.prefix_ids.empty());
    EXPECT_GE(request.generated_tokens, 8u);
    EXPECT_LE(request.generated_tokens, 96u);
    least = std::min(least, request.prompt_tokens);
    most = std::max(most, request.prompt_tokens);
  }
  // 500 draws from 105 lengths miss an end about once in a hundred times, and the seed is fixed.
  EXPECT_EQ(least, 16u);
  EXPECT_EQ(most, 120u);
}

TEST(SyntheticTrace, TheSameSeedGivesTheSameTrace) {
  const auto lengths = [](const char* text, size_t limit = 0) {
    return make_synthetic_trace(text, limit).value().requests;
  };
  EXPECT_EQ(lengths("n=20,prompt=1..999,seed=1"), lengths("n=20,prompt=1..999,seed=1"));
  EXPECT_NE(lengths("n=20,prompt=1..999,seed=1"), lengths("n=20,prompt=1..999,seed=2"));
  // Asking for fewer requests gives the same first ones.
  auto all = lengths("rate=3,n=20,prompt=1..999");
  all.resize(5);
  EXPECT_EQ(lengths("rate=3,n=20,prompt=1..999", 5), all);
  EXPECT_EQ(lengths("rate=3,n=5,prompt=1..999"), all);
}

TEST(SyntheticTrace, RequestsArriveAtTheRate) {
  const auto trace = make_synthetic_trace("rate=4,n=4001");
  ASSERT_TRUE(trace.ok());
  double last = 0, squares = 0;
  for (const TraceRequest& request : trace->requests) {
    EXPECT_GE(request.arrival_seconds, last);
    squares += (request.arrival_seconds - last) * (request.arrival_seconds - last);
    last = request.arrival_seconds;
  }
  EXPECT_NEAR(last / 4000, 0.25, 0.02);
  // Exponential gaps: the mean square is twice the square of the mean.
  EXPECT_NEAR(squares / 4000, 2 * 0.25 * 0.25, 0.02);
}

TEST(SyntheticTrace, ThePrefixComesBeforeEveryPrompt) {
  const auto trace = make_synthetic_trace("n=3,prompt=16,gen=8,prefix=192");
  ASSERT_TRUE(trace.ok());
  for (const TraceRequest& request : trace->requests) {
    EXPECT_EQ(request.prompt_tokens, 208u);
    EXPECT_THAT(request.prefix_ids, ElementsAre(0));
    EXPECT_EQ(request.section_begin(1), 192u);
  }
}

TEST(SyntheticTrace, ErrorsNameTheWrongPart) {
  expect_wrong(make_synthetic_trace("rate=0"), {"rate=0"});
  expect_wrong(make_synthetic_trace("rate=nan"), {"rate=nan"});
  expect_wrong(make_synthetic_trace("n=0"), {"n=0"});
  expect_wrong(make_synthetic_trace("n=1e3"), {"n=1e3"});
  expect_wrong(make_synthetic_trace("prompt=9..8"), {"prompt=9..8"});
  expect_wrong(make_synthetic_trace("prompt=0..8"), {"prompt=0..8"});
  expect_wrong(make_synthetic_trace("gen="), {"gen="});
  expect_wrong(make_synthetic_trace("gen=1...3"), {"gen=1...3"});
  expect_wrong(make_synthetic_trace("seed=-1"), {"seed=-1"});
  expect_wrong(make_synthetic_trace("prefix=x"), {"prefix=x"});
  expect_wrong(make_synthetic_trace("tokens=1"), {"tokens", "rate, n, prompt"});
  expect_wrong(make_synthetic_trace("n"), {"'n'", "name=value"});
}

TEST(ReadTrace, RecognizesTheFormat) {
  const std::string path = ::testing::TempDir() + "/trace_reader_test.trace";
  const auto write = [&](const std::string& text) { std::ofstream(path) << text; };
  write(R"({"timestamp": 0, "input_length": 3, "output_length": 6, "hash_ids": []})");
  ASSERT_TRUE(read_trace(path).ok());
  EXPECT_EQ(read_trace(path)->requests[0].prompt_tokens, 3u);
  write(std::string(kHeader) + "2023-11-16 18:15:46,5,2\n");
  ASSERT_TRUE(read_trace(path).ok());
  EXPECT_EQ(read_trace(path)->requests[0].prompt_tokens, 5u);
  write("");
  expect_wrong(read_trace(path), {path.c_str(), "empty"});
  expect_wrong(read_trace("no/such/trace.csv"), {"no/such/trace.csv"});
  EXPECT_EQ(read_trace("synthetic:n=7")->requests.size(), 7u);
}

TEST(ReadTrace, AnEndlessFileIsAnError) {
  expect_wrong(read_trace("/dev/zero"), {"/dev/zero, line 1"});
}

TEST(ReadTrace, ALineThatIsTooLongIsAnError) {
  const std::string line = "2023-11-16 18:15:46,5,2\n";
  std::istringstream text(std::string(kHeader) + line + std::string(2 << 20, '1') + "\n" + line);
  expect_wrong(read_azure_csv(text, "long.csv"), {"long.csv, line 3: longer than 1048576 bytes"});
}

// Every line of published traces, if they lie next to the project.
TEST(ReadTrace, RealTraces) {
  const std::string folder = HEARTH_SOURCE_DIR "/../shared/traces/";
  if (!std::ifstream(folder + "azure_llm_conv.csv")) GTEST_SKIP() << "there are no traces";
  const auto azure_trace = read_trace(folder + "azure_llm_conv.csv");
  ASSERT_TRUE(azure_trace.ok()) << azure_trace.error().message;
  EXPECT_EQ(azure_trace->requests.size(), 19366u);
  EXPECT_NEAR(azure_trace->requests.back().arrival_seconds, 3501.721937, 1e-4);
  const auto mooncake_trace = read_trace(folder + "mooncake_synthetic.jsonl");
  ASSERT_TRUE(mooncake_trace.ok()) << mooncake_trace.error().message;
  EXPECT_EQ(mooncake_trace->requests.size(), 3993u);
}

}  // namespace
}  // namespace hearth::testing
