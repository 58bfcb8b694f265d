// Addresses at which gateways ask a replica what it serves: SGLang's, under both of its names.
#include <nlohmann/json.hpp>

#include "tools/server/api/routes.h"
#include "tools/server/api/server_state.h"
#include "tools/server/model_card.h"

namespace hearth {
namespace {

void show_server_info(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.loaded(exchange);
  if (model == nullptr) return;
  const SchedulerLimits limits = model->engine.limits();
  const Metrics& metrics = model->engine.metrics();
  exchange.send({{"model_path", model->name},
                 {"served_model_name", model->name},
                 {"tokenizer_path", model->name},
                 {"version", model->about.version},
                 {"status", server.health().state},
                 {"device", model->device},
                 {"tp_size", 1},
                 {"dp_size", 1},
                 {"disaggregation_mode", "null"},
                 {"page_size", kTokensPerBlock},
                 {"context_length", longest_sequence(limits)},
                 {"max_running_requests", limits.max_sequences},
                 {"max_queued_requests", limits.max_queue},
                 {"max_prefill_tokens", limits.max_step_tokens},
                 {"max_total_num_tokens", uint64_t{limits.pool_blocks} * kTokensPerBlock},
                 {"num_running_reqs", metrics.running.value()},
                 {"num_waiting_reqs", metrics.waiting.value() + metrics.swapped.value()}});
}

void show_model_info(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.loaded(exchange);
  if (model == nullptr) return;
  exchange.send({{"model_path", model->name},
                 {"tokenizer_path", model->name},
                 {"model_type", model->about.architecture},
                 {"quantization", model->about.format},
                 {"parameters", model->about.parameters},
                 {"context_length", longest_sequence(model->engine.limits())},
                 {"vocab_size", model->tokenizer.size()},
                 {"is_generation", true},
                 {"has_image_understanding", false},
                 {"has_audio_understanding", false}});
}

}  // namespace

std::span<const Route> gateway_routes() {
  static constexpr Route kRoutes[] = {
      {.method = "GET", .path = "/server_info", .handle = show_server_info},
      {.method = "GET", .path = "/get_server_info", .handle = show_server_info},
      {.method = "GET", .path = "/model_info", .handle = show_model_info},
      {.method = "GET", .path = "/get_model_info", .handle = show_model_info},
  };
  return kRoutes;
}

}  // namespace hearth
