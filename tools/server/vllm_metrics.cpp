#include "tools/server/vllm_metrics.h"

#include <fmt/format.h>

#include "tools/server/prometheus_writer.h"

namespace hearth {
namespace {

// Cached blocks count as free: a request can have them at any time.
double kv_usage(const Metrics& metrics) {
  const uint64_t used = metrics.kv_blocks_used.value();
  const uint64_t all = used + metrics.kv_blocks_cached.value() + metrics.kv_blocks_free.value();
  return all == 0 ? 0 : static_cast<double>(used) / static_cast<double>(all);
}

void write_gauges(PrometheusWriter& writer, const Metrics& metrics, const VllmFacts& facts) {
  writer.gauge("num_requests_running", "Requests that run.", metrics.running);
  writer.head("num_requests_waiting", "gauge", "Requests in the queue or swapped out.");
  writer.value("num_requests_waiting", {}, metrics.waiting.value() + metrics.swapped.value());
  writer.gauge("num_requests_swapped", "Requests whose KV blocks are in host memory.",
               metrics.swapped);
  // The second name is the one that vLLM had before 0.10.
  for (const char* name : {"kv_cache_usage_perc", "gpu_cache_usage_perc"}) {
    writer.head(name, "gauge", "KV blocks that requests hold, as a fraction of all.");
    writer.value(name, {}, kv_usage(metrics));
  }
  writer.head("cache_config_info", "gauge", "The KV cache, in labels; the value is always 1.");
  writer.value(
      "cache_config_info",
      fmt::format(
          "{},{},{}", prometheus_label("block_size", fmt::format("{}", facts.block_tokens)),
          prometheus_label("num_gpu_blocks", fmt::format("{}", facts.pool_blocks)),
          prometheus_label("enable_prefix_caching", facts.prefix_caching ? "True" : "False")),
      uint64_t{1});
}

void write_counters(PrometheusWriter& writer, const Metrics& metrics) {
  for (const char* prefix : {"prefix_cache", "gpu_prefix_cache"}) {
    writer.counter(fmt::format("{}_queries_total", prefix),
                   "Prompt tokens looked up in the prefix cache.", metrics.prefix_query_tokens);
    writer.counter(fmt::format("{}_hits_total", prefix), "Prompt tokens found in the prefix cache.",
                   metrics.prefix_hit_tokens);
  }
  writer.counter("prompt_tokens_total", "Prompt tokens computed.", metrics.prompt_tokens);
  writer.counter("generation_tokens_total", "Tokens generated.", metrics.generated_tokens);
  writer.head("num_preemptions_total", "counter", "Requests preempted.");
  writer.value("num_preemptions_total", {},
               metrics.preemptions_recompute.value() + metrics.preemptions_swap.value());
  writer.head("request_success_total", "counter", "Requests that ended, by reason.");
  const auto success = [&](const char* reason, uint64_t count) {
    writer.value("request_success_total", prometheus_label("finished_reason", reason), count);
  };
  success("stop", metrics.finished_stop.value());
  success("length", metrics.finished_length.value() + metrics.finished_time_limit.value());
  success("abort", metrics.finished_cancelled.value());
}

void write_histograms(PrometheusWriter& writer, const Metrics& metrics) {
  writer.histogram("time_to_first_token_seconds", "From submission to the first token.",
                   metrics.time_to_first_token_seconds);
  writer.histogram("inter_token_latency_seconds", "Between two tokens of a request.",
                   metrics.time_between_tokens_seconds);
  writer.histogram("request_time_per_output_token_seconds",
                   "Mean time per token of a request, after its first.",
                   metrics.time_per_output_token_seconds);
  writer.histogram("e2e_request_latency_seconds", "From submission to the end.",
                   metrics.end_to_end_seconds);
  writer.histogram("request_queue_time_seconds", "From submission to the first step.",
                   metrics.queue_seconds);
}

}  // namespace

std::string vllm_metrics_text(const Metrics& metrics, const VllmFacts& facts) {
  PrometheusWriter writer(
      "vllm:", prometheus_label("model_name", facts.model) + ',' + prometheus_label("engine", "0"));
  write_gauges(writer, metrics, facts);
  write_counters(writer, metrics);
  write_histograms(writer, metrics);
  return writer.take();
}

}  // namespace hearth
