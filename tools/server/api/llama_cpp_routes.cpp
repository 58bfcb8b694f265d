// Addresses that llama.cpp's server has and its clients ask for.
#include <nlohmann/json.hpp>

#include "tools/server/api/render_chat.h"
#include "tools/server/api/routes.h"
#include "tools/server/api/server_state.h"
#include "tools/server/model_card.h"

namespace hearth {
namespace {

using nlohmann::json;

std::string token_text(const Tokenizer& tokenizer, const std::optional<uint32_t>& id) {
  return id ? tokenizer.piece(*id, true) : std::string();
}

void show_props(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.loaded(exchange);
  if (model == nullptr) return;
  const Vocabulary& vocabulary = model->tokenizer.vocabulary();
  const SchedulerLimits limits = model->engine.limits();
  const json card = model_json({.id = model->name,
                                .created = server.started(),
                                .limits = limits,
                                .sampling = model->default_sampling,
                                .example = {}});
  exchange.send({{"default_generation_settings",
                  {{"n_ctx", longest_sequence(limits)}, {"params", card["sampling"]}}},
                 {"total_slots", limits.max_sequences},
                 {"model_alias", model->name},
                 {"model_path", model->name},
                 {"modalities", {{"vision", false}, {"audio", false}}},
                 {"chat_template", vocabulary.chat_template},
                 {"bos_token", token_text(model->tokenizer, vocabulary.bos)},
                 {"eos_token", token_text(model->tokenizer, vocabulary.eos)},
                 {"build_info", "hearth " + model->about.version}});
}

void apply_template(ServerState& server, Exchange& exchange) {
  if (server.ready(exchange) == nullptr || !exchange.charge()) return;
  if (const auto prompt = render_chat(server, exchange, exchange.request.body))
    exchange.send({{"prompt", prompt->text}});
}

}  // namespace

std::span<const Route> llama_cpp_routes() {
  static constexpr Route kRoutes[] = {
      {.method = "GET", .path = "/props", .handle = show_props},
      {.method = "POST", .path = "/apply-template", .handle = apply_template},
  };
  return kRoutes;
}

}  // namespace hearth
