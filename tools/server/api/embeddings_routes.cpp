// Embeddings, for clients of OpenAI and of Ollama. Each input is a request to the engine, which
// runs in the same batches as all others.
#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/server/api/embeddings_request.h"
#include "tools/server/api/routes.h"
#include "tools/server/api/server_state.h"
#include "tools/server/model_card.h"
#include "tools/server/openai_reply.h"
#include "tools/server/request_errors.h"

namespace hearth {
namespace {

// How often a wait for the engine looks whether the client is still there.
constexpr auto kEmbeddingsGlance = std::chrono::milliseconds(10);

using Streams = std::variant<std::vector<TokenStream>, ApiError>;

Streams submit_inputs(const ServedModel& model, const EmbeddingsRequest& asked,
                      HttpClock::time_point deadline, const std::atomic<bool>& cancelled) {
  std::vector<GenerationRequest> requests;
  for (const EmbeddingsRequest::Input& input : asked.inputs) {
    if (cancelled) return kClientGone;
    GenerationRequest request{.pooling = asked.pooling.value_or(model.embedding.pooling)};
    const auto* ids = std::get_if<std::vector<uint32_t>>(&input);
    request.prompt = ids != nullptr ? *ids
                                    : model.tokenizer.encode(std::get<std::string>(input),
                                                             {.add_eos = model.embedding.add_eos});
    request.priority = asked.priority;
    request.sampling.temperature = 0;
    if (asked.truncate)
      request.prompt.resize(
          std::min<size_t>(request.prompt.size(), longest_sequence(model.engine.limits()) - 1));
    if (const AddResult fit = model.engine.check_prompt(request.prompt, asked.inputs.size());
        !fit.accepted()) {
      const bool too_long = fit.refusal == Refusal::kTooLong;
      return ApiError{
          .message = too_long ? fmt::format("an input has {} tokens, and at most {} are possible",
                                            request.prompt.size(),
                                            longest_sequence(model.engine.limits()) - 1)
                              : fit.message,
          .param = "input",
          .code = too_long ? "context_length_exceeded" : ""};
    }
    requests.push_back(std::move(request));
  }
  if (deadline != HttpClock::time_point::max()) {
    const double left = std::chrono::duration<double>(deadline - HttpClock::now()).count();
    if (left <= 0) return kTimeIsUp;
    for (GenerationRequest& request : requests) request.time_limit_seconds = left;
  }
  Result<std::vector<TokenStream>> streams = model.engine.submit(std::move(requests));
  if (!streams.ok()) return to_api_error(streams.error(), model.engine);
  return std::move(streams).value();
}

// Waits for the end of a stream. Null: the client is gone.
const GenerationEnd* wait_for_end(const ServerState& server, Exchange& exchange,
                                  TokenStream& stream) {
  while (!stream.ended())
    if (!stream.next(kEmbeddingsGlance) && server.is_gone(exchange.reply)) return nullptr;
  return &stream.end();
}

// As text: a list of JSON values would take ten times the memory.
std::string embedding_text(const EmbeddingsRequest& asked, std::span<const float> vector) {
  const std::vector<float> unit = shortened(vector, asked.dimensions);
  return asked.base64 ? fmt::format("\"{}\"", to_base64(unit))
                      : fmt::format("[{}]", fmt::join(unit, ","));
}

using ParsedEmbeddings = std::variant<EmbeddingsRequest, ApiError>;

// What the inputs became.
struct Embedded {
  std::vector<std::string> vectors;  // as JSON
  uint64_t tokens = 0;               // of all inputs
  double seconds = 0;
};

// Nothing if the exchange has been answered with an error.
std::optional<Embedded> embed(ServerState& server, Exchange& exchange, const ServedModel& model,
                              ParsedEmbeddings parsed) {
  const HttpClock::time_point began = HttpClock::now(), deadline = server.deadline();
  const auto refused = [&](const ApiError& error) {
    exchange.refuse(error);
    return std::nullopt;
  };
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return refused(*error);
  EmbeddingsRequest& asked = std::get<EmbeddingsRequest>(parsed);
  Streams submitted;
  const auto submit = [&](const std::atomic<bool>& cancelled) {
    submitted = submit_inputs(model, asked, deadline, cancelled);
  };
  if (!server.run_prompt_task(submit, deadline, exchange)) return std::nullopt;
  if (const ApiError* error = std::get_if<ApiError>(&submitted)) return refused(*error);
  // The engine has the inputs now.
  asked.inputs = {};
  exchange.request.body = {};
  exchange.request.memory.release();
  Embedded embedded;
  for (TokenStream& stream : std::get<std::vector<TokenStream>>(submitted)) {
    const GenerationEnd* const end = wait_for_end(server, exchange, stream);
    if (end == nullptr) return refused(server.is_cut_off() ? kShutDown : kClientGone);
    if (end->reason != FinishReason::kLength)
      return refused({.status = 503,
                      .message = end->message.empty() ? "the request was cancelled" : end->message,
                      .type = "server_error"});
    embedded.tokens += end->prompt_tokens;
    embedded.vectors.push_back(embedding_text(asked, end->embedding));
  }
  embedded.seconds = std::chrono::duration<double>(HttpClock::now() - began).count();
  return embedded;
}

void create_embeddings(ServerState& server, Exchange& exchange) {
  const ServedModel* const model = server.ready(exchange);
  if (model == nullptr || !exchange.charge()) return;
  const auto embedded =
      embed(server, exchange, *model,
            parse_embeddings_request(exchange.request.body, model->tokenizer.size(),
                                     model->embedding.width));
  if (!embedded) return;
  std::string data;
  for (size_t i = 0; i < embedded->vectors.size(); ++i)
    data += fmt::format(R"({}{{"object":"embedding","index":{},"embedding":{}}})",
                        i == 0 ? "" : ",", i, embedded->vectors[i]);
  const nlohmann::json usage = {{"prompt_tokens", embedded->tokens},
                                {"total_tokens", embedded->tokens}};
  exchange.reply.send(200, "application/json",
                      fmt::format(R"({{"object":"list","data":[{}],"model":{},"usage":{}}})", data,
                                  to_text(model->name), to_text(usage)));
}

std::optional<Embedded> embed_for_ollama(OllamaEmbedding call, ServerState& server,
                                         Exchange& exchange, const ServedModel*& model) {
  model = server.ready(exchange);
  if (model == nullptr || !exchange.charge()) return std::nullopt;
  return embed(server, exchange, *model,
               parse_ollama_embedding(call, exchange.request.body, model->embedding.width));
}

void embed_ollama(ServerState& server, Exchange& exchange) {
  const ServedModel* model = nullptr;
  const auto embedded = embed_for_ollama(OllamaEmbedding::kEmbed, server, exchange, model);
  if (!embedded) return;
  constexpr const char* kReply =
      R"({{"model":{},"embeddings":[{}],"total_duration":{},"load_duration":0,"prompt_eval_count":{}}})";
  exchange.reply.send(200, "application/json",
                      fmt::format(kReply, to_text(model->name), fmt::join(embedded->vectors, ","),
                                  static_cast<int64_t>(embedded->seconds * 1e9), embedded->tokens));
}

void embed_ollama_prompt(ServerState& server, Exchange& exchange) {
  const ServedModel* model = nullptr;
  const auto embedded = embed_for_ollama(OllamaEmbedding::kEmbeddings, server, exchange, model);
  if (!embedded) return;
  exchange.reply.send(200, "application/json",
                      fmt::format(R"({{"embedding":{}}})", embedded->vectors.front()));
}

}  // namespace

std::span<const Route> embeddings_routes() {
  static constexpr Route kRoutes[] = {
      {.method = "POST", .path = "/v1/embeddings", .handle = create_embeddings},
      {.method = "POST",
       .path = "/api/embed",
       .handle = embed_ollama,
       .errors = ErrorShape::kOllama},
      {.method = "POST",
       .path = "/api/embeddings",
       .handle = embed_ollama_prompt,
       .errors = ErrorShape::kOllama},
  };
  return kRoutes;
}

}  // namespace hearth
