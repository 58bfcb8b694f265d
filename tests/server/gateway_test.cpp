// What gateways and autoscalers ask a replica: vLLM's metrics, SGLang's addresses, and a replica
// that leaves the pool.
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/exposition.h"
#include "tests/support/served_stand_in.h"
#include "tools/server/prometheus_writer.h"
#include "tools/server/vllm_metrics.h"

namespace hearth::testing {
namespace {

using ::testing::StartsWith;

const VllmFacts kGatewayFacts{
    .model = "tiny", .block_tokens = 16, .pool_blocks = 40, .prefix_caching = true};

// The colon is part of vLLM's names; the format's rules are kept otherwise.
Exposition read_aliases(const std::string& text) {
  Exposition read = ExpositionReader::read(text);
  EXPECT_THAT(read.complaints, ::testing::Each(StartsWith("colon or capital: vllm:")));
  for (const Sample& sample : read.samples) {
    EXPECT_TRUE(sample.name.starts_with("vllm:")) << sample.name;
    EXPECT_EQ(sample.labels.count("model_name"), 1u) << sample.name;
  }
  return read;
}

using SampleLabels = std::map<std::string, std::string>;

double alias_value(const Exposition& read, const std::string& name, SampleLabels labels = {}) {
  labels["model_name"] = kGatewayFacts.model;
  labels["engine"] = "0";
  for (const Sample& sample : read.samples)
    if (sample.name == name && sample.labels == labels) return sample.value;
  ADD_FAILURE() << "missing: " << name;
  return -1;
}

TEST(VllmMetrics, NumbersAreTheEnginesOwn) {
  Metrics metrics;
  metrics.running.set(3);
  metrics.waiting.set(5);
  metrics.swapped.set(2);
  metrics.kv_blocks_used.set(10);
  metrics.kv_blocks_cached.set(20);
  metrics.kv_blocks_free.set(10);
  metrics.prefix_query_tokens.add(100);
  metrics.prefix_hit_tokens.add(60);
  metrics.prompt_tokens.add(40);
  metrics.generated_tokens.add(70);
  metrics.finished_length.add(2);
  metrics.finished_time_limit.add(1);
  metrics.preemptions_recompute.add(4);
  metrics.preemptions_swap.add(1);
  metrics.time_to_first_token_seconds.add(0.02);
  const Exposition read = read_aliases(vllm_metrics_text(metrics, kGatewayFacts));
  EXPECT_EQ(alias_value(read, "vllm:num_requests_running"), 3);
  EXPECT_EQ(alias_value(read, "vllm:num_requests_waiting"), 7);
  EXPECT_EQ(alias_value(read, "vllm:kv_cache_usage_perc"), 0.25);
  EXPECT_EQ(alias_value(read, "vllm:gpu_cache_usage_perc"), 0.25);
  EXPECT_EQ(alias_value(read, "vllm:prefix_cache_queries_total"), 100);
  EXPECT_EQ(alias_value(read, "vllm:prefix_cache_hits_total"), 60);
  EXPECT_EQ(alias_value(read, "vllm:gpu_prefix_cache_queries_total"), 100);
  EXPECT_EQ(alias_value(read, "vllm:gpu_prefix_cache_hits_total"), 60);
  EXPECT_EQ(alias_value(read, "vllm:prompt_tokens_total"), 40);
  EXPECT_EQ(alias_value(read, "vllm:generation_tokens_total"), 70);
  EXPECT_EQ(alias_value(read, "vllm:num_preemptions_total"), 5);
  EXPECT_EQ(alias_value(read, "vllm:request_success_total", {{"finished_reason", "length"}}), 3);
  EXPECT_EQ(
      alias_value(
          read, "vllm:cache_config_info",
          {{"block_size", "16"}, {"num_gpu_blocks", "40"}, {"enable_prefix_caching", "True"}}),
      1);
  EXPECT_EQ(alias_value(read, "vllm:time_to_first_token_seconds_bucket", {{"le", "0.025"}}), 1);
  EXPECT_EQ(alias_value(read, "vllm:time_to_first_token_seconds_bucket", {{"le", "0.01"}}), 0);
}

TEST(VllmMetrics, AnEmptyPoolIsNotUsed) {
  const Exposition read = read_aliases(vllm_metrics_text(Metrics(), kGatewayFacts));
  EXPECT_EQ(alias_value(read, "vllm:kv_cache_usage_perc"), 0);
}

TEST(VllmMetrics, AnyModelNameIsALabel) {
  EXPECT_EQ(prometheus_label("a", "x\"y\\z\n"), R"(a="x\"y\\z\n")");
  VllmFacts facts = kGatewayFacts;
  facts.model = "a \"b\" \\ c\nd";
  read_aliases(vllm_metrics_text(Metrics(), facts));
}

TEST(VllmMetrics, TheManualNamesThemAll) {
  std::ifstream file(HEARTH_SOURCE_DIR "/docs/server.md");
  const std::string manual{std::istreambuf_iterator<char>(file), {}};
  for (const auto& [name, type] : read_aliases(vllm_metrics_text(Metrics(), kGatewayFacts)).types)
    EXPECT_NE(manual.find('`' + name), std::string::npos) << name;
}

class ServedGateway : public ServedStandIn {};

TEST_F(ServedGateway, MetricsHaveBothNames) {
  ASSERT_EQ(post("/v1/completions", R"({"prompt":"Once","max_tokens":3})").status, 200);
  const Exposition read = ExpositionReader::read(get("/metrics").body);
  EXPECT_THAT(read.complaints, ::testing::Each(StartsWith("colon or capital: vllm:")));
  std::map<std::string, double> values;
  for (const Sample& sample : read.samples)
    if (!sample.labels.contains("le")) values[sample.name] = sample.value;
  EXPECT_EQ(values["hearth_generated_tokens_total"], 3);
  EXPECT_EQ(values["vllm:generation_tokens_total"], 3);
  EXPECT_EQ(values["vllm:cache_config_info"], 1);
}

TEST_F(ServedGateway, TellsWhatItServes) {
  for (const char* path : {"/server_info", "/get_server_info"}) {
    const auto info = get(path).json();
    EXPECT_EQ(info["max_running_requests"], 8);
    EXPECT_EQ(info["max_total_num_tokens"], 256 * 16);
    EXPECT_EQ(info["page_size"], 16);
    EXPECT_EQ(info["context_length"], 256);
    EXPECT_EQ(info["num_running_reqs"], 0);
    EXPECT_EQ(info["status"], "ok");
  }
  for (const char* path : {"/model_info", "/get_model_info"}) {
    const auto info = get(path).json();
    EXPECT_EQ(info["model_path"], "hearth");
    EXPECT_EQ(info["is_generation"], true);
    EXPECT_EQ(info["vocab_size"], tokenizer_->size());
  }
}

TEST_F(ServedGateway, ALoadingReplicaIsNotAskedInVain) {
  auto loading = HttpServer::create({.port = 0});
  ASSERT_TRUE(loading.ok());
  HttpClient client((*loading)->port());
  const HttpAnswer answer = client.get("/server_info");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.json()["error"]["code"], "loading");
}

}  // namespace
}  // namespace hearth::testing
