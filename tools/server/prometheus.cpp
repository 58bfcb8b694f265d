#include "tools/server/prometheus.h"

#include <string_view>

#include <fmt/format.h>

#include "tools/server/prometheus_writer.h"

namespace hearth {

std::string prometheus_text(const Metrics& metrics) {
  PrometheusWriter writer("hearth_");
  writer.gauge("requests_running", "Requests that run.", metrics.running);
  writer.gauge("requests_waiting", "Requests in the queue.", metrics.waiting);
  writer.gauge("requests_swapped", "Preempted requests whose KV blocks are in host memory.",
               metrics.swapped);
  writer.gauge("kv_blocks_used", "KV blocks that requests hold.", metrics.kv_blocks_used);
  writer.gauge("kv_blocks_cached", "KV blocks that only the prefix cache holds.",
               metrics.kv_blocks_cached);
  writer.gauge("kv_blocks_free", "KV blocks that are empty.", metrics.kv_blocks_free);

  writer.counter("requests_submitted_total", "Requests accepted.", metrics.requests_submitted);
  writer.counter("requests_refused_total", "Requests refused when they arrived.",
                 metrics.requests_refused);
  writer.head("requests_finished_total", "counter", "Requests that ended, by reason.");
  const auto finished = [&](std::string_view reason, const Counter& counter) {
    writer.value("requests_finished_total", fmt::format("reason=\"{}\"", reason), counter.value());
  };
  finished("stop", metrics.finished_stop);
  finished("length", metrics.finished_length);
  finished("cancelled", metrics.finished_cancelled);
  finished("time_limit", metrics.finished_time_limit);
  finished("error", metrics.finished_error);

  writer.counter("steps_total", "Steps run.", metrics.steps);
  writer.counter("prompt_tokens_total", "Prompt tokens computed.", metrics.prompt_tokens);
  writer.counter("generated_tokens_total", "Tokens generated.", metrics.generated_tokens);
  writer.counter("padding_tokens_total", "Padding tokens computed.", metrics.padding_tokens);
  writer.counter("proposed_tokens_total", "Tokens that speculation proposed.",
                 metrics.proposed_tokens);
  writer.counter("accepted_tokens_total", "Proposed tokens that were accepted.",
                 metrics.accepted_tokens);
  writer.counter("shared_proposed_tokens_total",
                 "Proposed tokens that came from the output of other requests.",
                 metrics.shared_proposed_tokens);
  writer.counter("shared_accepted_tokens_total",
                 "Accepted tokens that came from the output of other requests.",
                 metrics.shared_accepted_tokens);
  writer.counter("judged_steps_total",
                 "Times that a request's proposals were judged; each gives one token more than "
                 "were accepted.",
                 metrics.judged_steps);
  const auto by_place = [&](const char* name, const char* help, const auto& counters) {
    writer.head(name, "counter", help);
    for (size_t i = 0; i < counters.size(); ++i)
      writer.value(name, fmt::format("place=\"{}{}\"", i + 1, i + 1 == counters.size() ? "+" : ""),
                   counters[i].value());
  };
  by_place("proposed_tokens_by_place_total", "Tokens proposed, by their place in the proposal.",
           metrics.proposed_at);
  by_place("accepted_tokens_by_place_total", "Proposed tokens accepted, by their place.",
           metrics.accepted_at);
  writer.counter("forced_tokens_total",
                 "Generated tokens that were not sampled, because a grammar left no choice.",
                 metrics.forced_tokens);
  writer.counter("prefix_cache_query_tokens_total", "Prompt tokens looked up in the prefix cache.",
                 metrics.prefix_query_tokens);
  writer.counter("prefix_cache_hit_tokens_total", "Prompt tokens found in the prefix cache.",
                 metrics.prefix_hit_tokens);
  writer.head("preemptions_total", "counter", "Requests preempted, by kind.");
  writer.value("preemptions_total", "kind=\"recompute\"", metrics.preemptions_recompute.value());
  writer.value("preemptions_total", "kind=\"swap\"", metrics.preemptions_swap.value());
  writer.counter("kv_blocks_copied_total", "KV blocks copied on write.", metrics.blocks_copied);
  writer.head("kv_blocks_swapped_total", "counter", "KV blocks moved to and from host memory.");
  writer.value("kv_blocks_swapped_total", "direction=\"out\"", metrics.blocks_swapped_out.value());
  writer.value("kv_blocks_swapped_total", "direction=\"in\"", metrics.blocks_swapped_in.value());

  writer.histogram("time_to_first_token_seconds", "From submission to the first token.",
                   metrics.time_to_first_token_seconds);
  writer.histogram("time_between_tokens_seconds", "Between two tokens of a request.",
                   metrics.time_between_tokens_seconds);
  writer.histogram("time_per_output_token_seconds",
                   "Mean time per token of a request, after its first.",
                   metrics.time_per_output_token_seconds);
  writer.histogram("end_to_end_seconds", "From submission to the end.", metrics.end_to_end_seconds);
  writer.histogram("queue_seconds", "From submission to the first step.", metrics.queue_seconds);
  writer.histogram("tokens_per_step", "Tokens computed per step.", metrics.tokens_per_step);
  writer.histogram("step_seconds", "Duration of a step.", metrics.step_seconds);
  return writer.take();
}

}  // namespace hearth
