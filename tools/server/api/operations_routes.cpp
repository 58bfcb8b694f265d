// The page at /, its manual, and what operators look at: health, metrics, events.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/server/api/engine_hello.h"
#include "tools/server/api/routes.h"
#include "tools/server/api/server_state.h"
#include "tools/server/event_stream.h"
#include "tools/server/page.h"
#include "tools/server/prometheus.h"
#include "tools/server/vllm_metrics.h"

namespace hearth {
namespace {

void send_page(ServerState&, Exchange& exchange) {
  // Limits what the page may do, should anything foreign ever get into it.
  exchange.reply.header("Content-Security-Policy",
                        "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; "
                        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
                        "form-action 'none'; frame-ancestors 'none'");
  exchange.reply.send(200, "text/html; charset=utf-8", page_html());
}

void send_docs(ServerState&, Exchange& exchange) {
  exchange.reply.send(200, "text/plain; charset=utf-8", server_docs());
}

void send_health(ServerState& server, Exchange& exchange) {
  const ServerState::Health health = server.health();
  nlohmann::json body = {{"status", health.state}};
  if (!health.message.empty()) body["message"] = health.message;
  if (const ServedModel* const model = server.model(); model != nullptr && model->preparation) {
    const PreparationProgress kernels = model->preparation();
    body["kernels"] = {
        {"compiled", kernels.ready}, {"total", kernels.total}, {"done", kernels.done}};
  }
  exchange.send(body, health.status);
}

void send_metrics(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.loaded(exchange);
  if (model == nullptr) return;
  const Metrics& metrics = model->engine.metrics();
  exchange.reply.send(
      200, "text/plain; version=0.0.4; charset=utf-8",
      prometheus_text(metrics) +
          vllm_metrics_text(metrics, {.model = model->name,
                                      .block_tokens = kTokensPerBlock,
                                      .pool_blocks = model->engine.limits().pool_blocks,
                                      .prefix_caching = model->engine.policy().prefix_cache}));
}

// Of "history=1000"; 0 if there is no such thing.
uint64_t history_wanted(std::string_view query) {
  constexpr std::string_view kField = "history=";
  while (!query.empty()) {
    const std::string_view field = query.substr(0, query.find('&'));
    uint64_t steps = 0;
    if (field.starts_with(kField) &&
        std::from_chars(field.data() + kField.size(), field.data() + field.size(), steps).ec ==
            std::errc())
      return steps;
    query.remove_prefix(std::min(query.size(), field.size() + 1));
  }
  return 0;
}

void send_events(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.loaded(exchange);
  if (model == nullptr) return;
  stream_events(
      model->engine, [&] { return engine_hello(server, *model); },
      history_wanted(exchange.request.query), exchange.reply, server.events_end());
}

}  // namespace

std::span<const Route> operations_routes() {
  static constexpr Route kRoutes[] = {
      {.method = "GET", .path = "/", .handle = send_page, .open = true},
      {.method = "GET", .path = "/docs", .handle = send_docs, .open = true},
      {.method = "GET", .path = "/health", .handle = send_health, .open = true},
      {.method = "GET", .path = "/metrics", .handle = send_metrics},
      {.method = "GET", .path = "/events", .handle = send_events},
  };
  return kRoutes;
}

}  // namespace hearth
