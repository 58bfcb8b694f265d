// Ollama's API, for the one model that is served, whatever name a client has for it.
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "tools/server/api/field_rules.h"
#include "tools/server/api/generate.h"
#include "tools/server/api/ollama_reply.h"
#include "tools/server/api/ollama_request.h"
#include "tools/server/api/routes.h"
#include "tools/server/api/server_state.h"
#include "tools/server/model_card.h"

namespace hearth {
namespace {

using nlohmann::json;

void generate_ollama(OllamaCall call, ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.ready(exchange);
  if (model == nullptr || !exchange.charge()) return;
  GenerationCall generation{.adapter = std::make_unique<OllamaReply>(call, model->name),
                            .names = ollama_field_names()};
  {  // the tree may be large
    const auto parsed = parse_ollama_request(call, exchange.request.body);
    if (const ApiError* error = std::get_if<ApiError>(&parsed)) return exchange.refuse(*error);
    const OllamaRequest& asked = std::get<OllamaRequest>(parsed);
    if (asked.load_only) return exchange.send(OllamaReply::loaded(call, model->name));
    generation.kind = asked.kind;
    generation.body = asked.body.dump();
  }
  generate(server, exchange, std::move(generation));
}
void chat_ollama(ServerState& server, Exchange& exchange) {
  generate_ollama(OllamaCall::kChat, server, exchange);
}
void complete_ollama(ServerState& server, Exchange& exchange) {
  generate_ollama(OllamaCall::kGenerate, server, exchange);
}

// "8.0B", "15.2M".
std::string parameter_size(uint64_t parameters) {
  const auto count = static_cast<double>(parameters);
  return count >= 1e9 ? fmt::format("{:.1f}B", count * 1e-9) : fmt::format("{:.1f}M", count * 1e-6);
}

// Ollama's is the hash of the model's file, which is too large to read for this. It identifies the
// model by its name and size.
std::string model_digest(const ServedModel& model) {
  std::string digest;
  for (uint64_t hash = 0xcbf29ce484222325; digest.size() < 64;
       digest += fmt::format("{:016x}", hash))
    for (const char c :
         fmt::format("{} {} {}", model.name, model.about.parameters, model.about.bytes))
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return digest;
}

json model_details(const ServedModel& model) {
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", model.about.architecture},
          {"families", json::array({model.about.architecture})},
          {"parameter_size", parameter_size(model.about.parameters)},
          {"quantization_level", model.about.format}};
}

json model_entry(const ServedModel& model) {
  return {{"name", model.name},
          {"model", model.name},
          {"size", model.about.bytes},
          {"digest", model_digest(model)},
          {"details", model_details(model)}};
}

void list_tags(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.loaded(exchange);
  if (model == nullptr) return;
  json entry = model_entry(*model);
  entry["modified_at"] = ollama_time();
  exchange.send({{"models", json::array({std::move(entry)})}});
}

// The models in memory: the one that is served, which is never unloaded.
void list_running(ServerState& server, Exchange& exchange) {
  constexpr const char* kNever = "2318-01-01T00:00:00Z";  // as Ollama says it
  const ServedModel* const model = server.loaded(exchange);
  if (model == nullptr) return;
  json entry = model_entry(*model);
  entry["size_vram"] = model->about.bytes;
  entry["expires_at"] = kNever;
  entry["context_length"] = longest_sequence(model->engine.limits());
  exchange.send({{"models", json::array({std::move(entry)})}});
}

json capabilities(const ServedModel& model) {
  json list = {"completion", "tools"};
  if (model.style != nullptr && model.style->format.reasoning != nullptr)
    list.push_back("thinking");
  return list;
}

void show_tag(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.loaded(exchange);
  if (model == nullptr || !exchange.charge()) return;
  const auto parsed = parse_ordered_body(exchange.request.body);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return exchange.refuse(*error);
  const std::string& architecture = model->about.architecture;
  const SamplingOptions& sampling = model->default_sampling;
  exchange.send({{"modelfile", fmt::format("FROM {}\n", model->name)},
                 {"parameters",
                  fmt::format("temperature {}\ntop_k {}\ntop_p {}\nmin_p {}", sampling.temperature,
                              sampling.top_k, sampling.top_p, sampling.min_p)},
                 {"template", model->tokenizer.vocabulary().chat_template},
                 {"details", model_details(*model)},
                 {"model_info",
                  {{"general.architecture", architecture},
                   {"general.parameter_count", model->about.parameters},
                   {architecture + ".context_length", longest_sequence(model->engine.limits())}}},
                 {"capabilities", capabilities(*model)},
                 {"modified_at", ollama_time()}});
}

void show_version(ServerState& server, Exchange& exchange) {
  if (const ServedModel* const model = server.loaded(exchange))
    exchange.send({{"version", model->about.version}});
}

}  // namespace

std::span<const Route> ollama_routes() {
  constexpr ErrorShape kShape = ErrorShape::kOllama;
  static constexpr Route kRoutes[] = {
      {.method = "POST", .path = "/api/chat", .handle = chat_ollama, .errors = kShape},
      {.method = "POST", .path = "/api/generate", .handle = complete_ollama, .errors = kShape},
      {.method = "GET", .path = "/api/tags", .handle = list_tags, .errors = kShape},
      {.method = "GET", .path = "/api/ps", .handle = list_running, .errors = kShape},
      {.method = "POST", .path = "/api/show", .handle = show_tag, .errors = kShape},
      {.method = "GET", .path = "/api/version", .handle = show_version, .errors = kShape},
  };
  return kRoutes;
}

}  // namespace hearth
