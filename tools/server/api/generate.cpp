#include "tools/server/api/generate.h"

#include <fmt/format.h>

#include "tools/server/api/server_state.h"
#include "tools/server/call_constraint.h"
#include "tools/server/generation_reply.h"
#include "tools/server/stream_comments.h"
#include "tools/server/structured_fields.h"

namespace hearth {
namespace {

// Compiles the grammar that the answer has to follow, if there is one. False: the reply says why it
// was not possible.
bool add_grammar(ServerState& server, const ServedModel& model, HttpClock::time_point deadline,
                 const GenerationCall& call, ApiRequest& asked, Exchange& exchange) {
  if (auto error = constrain_calls(*model.style, asked)) {
    exchange.refuse(renamed(std::move(*error), call.names));
    return false;
  }
  if (asked.structured.kind == StructuredOutput::Kind::kNone) return true;
  Result<std::shared_ptr<const grammar::Grammar>> compiled = invalid("");
  ApiError error;
  const auto compile = [&](const std::atomic<bool>&) {
    compiled = server.grammars().compile(asked.structured);
    if (!compiled.ok() && !asked.grammar_is_optional)
      error = call_grammar_error(asked, compiled.error());
    model.engine.token_trie();
  };
  if (!server.run_grammar_task(compile, deadline, exchange)) return false;
  if (!compiled.ok() && asked.grammar_is_optional) return true;
  if (!compiled.ok()) {
    exchange.refuse(renamed(std::move(error), call.names));
    return false;
  }
  asked.generation.grammar = *compiled;
  return true;
}

// Reads a request and submits it. Null: the reply already says why it was not. When it returns, the
// memory of the body is free again.
std::unique_ptr<GenerationReply> begin_generation(ServerState& server, const ServedModel& model,
                                                  Exchange& exchange, GenerationCall call) {
  const HttpClock::time_point deadline = server.deadline();
  exchange.request.body = {};
  const MemoryLease memory = std::move(exchange.request.memory);
  auto parsed = parse_api_request(call.kind, call.body,
                                  {.vocabulary = model.tokenizer.size(),
                                   .sampling = model.default_sampling,
                                   .encode = [&](std::string_view text) {
                                     return model.tokenizer.encode(text, {.add_bos = false});
                                   }});
  std::variant<std::unique_ptr<GenerationReply>, ApiError> begun;
  if (ApiError* error = std::get_if<ApiError>(&parsed)) {
    begun = std::move(*error);
  } else {
    ApiRequest& asked = std::get<ApiRequest>(parsed);
    asked.generation.owner = exchange.client;
    if (!add_grammar(server, model, deadline, call, asked, exchange)) return nullptr;
    const ReplyHead head{
        .kind = call.kind,
        .id = fmt::format("{}-{}", call.kind == ApiKind::kChat ? "chatcmpl" : "cmpl",
                          server.next_id()),
        .model = model.name,
        .created = unix_seconds(),
        .fingerprint = model.about.version.empty() ? "" : "hearth-" + model.about.version};
    const auto make = [&](const std::atomic<bool>& cancelled) {
      begun = GenerationReply::begin(model, head, asked,
                                     {.deadline = deadline, .cancelled = &cancelled},
                                     std::move(call.adapter));
    };
    if (!server.run_prompt_task(make, deadline, exchange)) return nullptr;
  }
  if (ApiError* error = std::get_if<ApiError>(&begun)) {
    exchange.refuse(renamed(std::move(*error), call.names));
    return nullptr;
  }
  return std::move(std::get<std::unique_ptr<GenerationReply>>(begun));
}

}  // namespace

ApiError renamed(ApiError error, std::span<const FieldName> names) {
  for (const FieldName& name : names) {
    // The field itself, or a part of it: "messages[0].content".
    if (!error.param.starts_with(name.openai)) continue;
    const std::string_view rest = std::string_view(error.param).substr(name.openai.size());
    if (!rest.empty() && rest.front() != '[' && rest.front() != '.') continue;
    const std::string quoted = fmt::format("'{}", error.param);
    error.param = fmt::format("{}{}", name.theirs, rest);
    if (const size_t place = error.message.find(quoted); place != std::string::npos)
      error.message.replace(place + 1, quoted.size() - 1, error.param);
    break;
  }
  return error;
}

void generate(ServerState& server, Exchange& exchange, GenerationCall call) {
  const ServedModel* const model = server.ready(exchange);
  if (model == nullptr) return;
  const std::unique_ptr<GenerationReply> generation =
      begin_generation(server, *model, exchange, std::move(call));
  if (generation == nullptr) return;
  HttpReply& reply = exchange.reply;
  const auto gone = [&] { return server.is_gone(reply); };
  const auto refuse = [&](const ApiError& error) {
    exchange.refuse(server.is_cut_off() ? kShutDown : error);
  };
  if (!generation->is_stream()) {
    const auto whole = generation->collect(gone);
    if (const ApiError* error = std::get_if<ApiError>(&whole)) return refuse(*error);
    return reply.send(200, "application/json", std::get<std::string>(whole));
  }
  StreamComments stream(reply, generation->stream_type(), server.comment_interval());
  const auto waits_in_vain = [&] { return gone() || !stream.keep_alive(); };
  // Until the first token or comment an error still has a status of its own.
  if (const auto error = generation->wait_for_start(waits_in_vain)) {
    if (!stream.begun()) return refuse(*error);
    if (stream.write(generation->error_event(server.is_cut_off() ? kShutDown : *error)))
      reply.end();
    return;
  }
  if (!stream.begin()) return;
  if (generation->write([&](std::string_view text) { return stream.write(text); }, waits_in_vain) ||
      (server.is_cut_off() && stream.write(generation->error_event(kShutDown))))
    reply.end();
}

}  // namespace hearth
