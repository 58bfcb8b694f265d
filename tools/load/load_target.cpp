#include "tools/load/load_target.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tools/load/load_prompt.h"
#include "tools/load/stream_reader.h"

namespace hearth {
namespace {

using nlohmann::json;

constexpr double kProbeSeconds = 120;  // a first answer may have to wait for pipelines

Error server_problem(const ServerUrl& server, std::string_view what) {
  return {ErrorKind::kIo, fmt::format("{}: {}", server.at(""), what)};
}

Error refused_by(const LoadedServer& target, const WholeResponse& response) {
  const std::string text = error_text_of(response.body);
  const std::string said = text.empty() ? std::string() : fmt::format(" ({})", text);
  switch (response.head.status) {
    case 401:
    case 403:
      return server_problem(target.server,
                            fmt::format("the server requires {} API key: pass it with --key or in "
                                        "$HEARTH_API_KEY{}",
                                        target.key.empty() ? "an" : "another", said));
    case 404:
    case 405:
      return server_problem(
          target.server, fmt::format("there is no {}{}; is the address right, or is it the other "
                                     "--endpoint?",
                                     target.path(), said));
    case 429:
    case 503:
      return server_problem(target.server, fmt::format("the server is busy or not ready{}", said));
    default:
      return server_problem(target.server, fmt::format("{} answers with HTTP status {}{}",
                                                       target.path(), response.head.status, said));
  }
}

class TargetProbe {
 public:
  TargetProbe(HttpTransfers& transfers, LoadedServer target, const std::function<bool()>& go_on)
      : transfers_(transfers), target_(std::move(target)), go_on_(go_on) {}

  Result<LoadedServer> run() {
    HEARTH_TRY(ask_for_model());
    HEARTH_TRY(ask_for_ids());
    HEARTH_TRY(find_accepted_fields());
    if (target_.form == PromptForm::kText) HEARTH_TRY(measure_words());
    return target_;
  }

 private:
  Result<WholeResponse> ask(TransferRequest request) {
    WholeResponse response = fetch(transfers_, std::move(request), go_on_);
    if (!response.end.ok()) return server_problem(target_.server, response.end.message);
    return response;
  }

  TransferRequest request_to(std::string path, std::string body) const {
    TransferRequest request = target_.request(std::move(body));
    request.path = std::move(path);
    request.total_seconds = kProbeSeconds;
    return request;
  }

  Status ask_for_model() {
    HEARTH_ASSIGN(const WholeResponse response, ask(request_to("/v1/models", "")));
    if (response.head.status == 401 || response.head.status == 403 || response.head.status == 503)
      return refused_by(target_, response);
    const json body = json::parse(response.body, nullptr, false);
    const bool listed = body.is_object() && body.contains("data") && body["data"].is_array();
    for (const json& model : listed ? body["data"] : json::array()) {
      if (!model.is_object() || !model.contains("id") || !model["id"].is_string()) continue;
      if (!target_.model.empty() && model["id"] != target_.model) continue;
      target_.model = model["id"].get<std::string>();
      if (const auto length = model.find("max_model_len");
          length != model.end() && length->is_number_unsigned() && *length >= 2)
        target_.context = static_cast<uint32_t>(
            std::min<uint64_t>(length->get<uint64_t>(), std::numeric_limits<uint32_t>::max()));
      break;
    }
    if (target_.model.empty()) target_.model = "default";
    return {};
  }

  // The ids of ordinary words, so that no prompt has control tokens in it.
  Status ask_for_ids() {
    if (target_.form == PromptForm::kAny)
      target_.form = target_.endpoint == LoadEndpoint::kChat ? PromptForm::kText : PromptForm::kIds;
    else
      form_is_fixed_ = true;
    if (target_.form != PromptForm::kIds) return {};
    const std::string text = words_text(kPoolWords);
    // As Hearth and llama.cpp name the text, and as vLLM does.
    for (const json& body :
         {json{{"content", text}, {"add_special", false}},
          json{{"model", target_.model}, {"prompt", text}, {"add_special_tokens", false}}}) {
      HEARTH_ASSIGN(const WholeResponse response, ask(request_to("/tokenize", body.dump())));
      const json reply = json::parse(response.body, nullptr, false);
      if (response.head.status != 200 || !reply.is_object() || !reply.contains("tokens") ||
          !reply["tokens"].is_array())
        continue;
      for (const json& id : reply["tokens"])
        if (id.is_number_unsigned()) target_.ids.push_back(id.get<TokenId>());
      std::ranges::sort(target_.ids);
      const auto twice = std::ranges::unique(target_.ids);
      target_.ids.erase(twice.begin(), twice.end());
      if (!target_.ids.empty()) return {};
    }
    if (form_is_fixed_)
      return server_problem(
          target_.server,
          "the server has no /tokenize, which --prompt-as ids needs; use --prompt-as "
          "text");
    target_.form = PromptForm::kText;
    return {};
  }

  // Leaves out fields that the server refuses, one after the other.
  Status find_accepted_fields() {
    std::optional<WholeResponse> first;
    for (;;) {
      for (const auto& [ignore_eos, include_usage] :
           {std::pair(true, true), {false, true}, {true, false}, {false, false}}) {
        target_.ignore_eos = ignore_eos;
        target_.include_usage = include_usage;
        HEARTH_ASSIGN(WholeResponse response, ask_for_answer(kShortPrompt));
        const int status = response.head.status;
        if (status == 200) return read_answer(response, nullptr);
        if (status != 400 && status != 422) return refused_by(target_, response);
        if (!first) first = std::move(response);
      }
      if (form_is_fixed_ || target_.form == PromptForm::kText) return refused_by(target_, *first);
      target_.form = PromptForm::kText;
    }
  }

  Result<WholeResponse> ask_for_answer(uint32_t prompt_tokens) {
    const LoadPrompts prompts(target_, prompt_tokens);
    return ask(request_to(
        target_.path(),
        prompts.body({.prompt_tokens = prompt_tokens, .generated_tokens = kShortAnswer}, 0)));
  }

  Status read_answer(const WholeResponse& response, std::optional<uint64_t>* prompt_tokens) {
    StreamedReply reply;
    const Status status = StreamReader().push(response.body, 0, reply);
    if (!status.ok()) return server_problem(target_.server, status.error().message);
    if (!reply.error.empty()) return server_problem(target_.server, reply.error);
    if (!reply.complete)
      return server_problem(target_.server,
                            fmt::format("{} does not stream its answer", target_.path()));
    target_.counts_tokens = reply.generated_tokens.has_value();
    if (prompt_tokens != nullptr) *prompt_tokens = reply.prompt_tokens;
    return {};
  }

  // How many tokens words are, from two prompts of different lengths.
  Status measure_words() {
    constexpr uint32_t kFew = 32, kMany = 160;
    target_.tokens_per_word = 1;
    target_.fixed_tokens = 0;
    std::optional<uint64_t> few, many;
    HEARTH_ASSIGN(const WholeResponse short_one, ask_for_answer(kFew));
    if (short_one.head.status == 200) HEARTH_TRY(read_answer(short_one, &few));
    HEARTH_ASSIGN(const WholeResponse long_one, ask_for_answer(kMany));
    if (long_one.head.status == 200) HEARTH_TRY(read_answer(long_one, &many));
    if (!few || !many || *many <= *few) {
      target_.tokens_per_word = LoadedServer().tokens_per_word;
      return {};
    }
    target_.tokens_per_word = static_cast<double>(*many - *few) / (kMany - kFew);
    target_.fixed_tokens =
        std::max(static_cast<double>(*few) - kFew * target_.tokens_per_word, 0.0);
    return {};
  }

  static constexpr size_t kPoolWords = 90;
  static constexpr uint32_t kShortPrompt = 8, kShortAnswer = 2;

  HttpTransfers& transfers_;
  LoadedServer target_;
  const std::function<bool()>& go_on_;
  bool form_is_fixed_ = false;  // the user chose it
};

}  // namespace

const char* LoadedServer::path() const {
  return endpoint == LoadEndpoint::kChat ? "/v1/chat/completions" : "/v1/completions";
}

TransferRequest LoadedServer::request(std::string body) const {
  return {.server = server, .path = path(), .body = std::move(body), .key = key, .headers = {}};
}

ServerUrl load_server(ServerUrl url) {
  for (const std::string_view end : {"/completions", "/chat", "/v1"})
    if (url.path.ends_with(end)) url.path.resize(url.path.size() - end.size());
  return url;
}

Result<LoadedServer> probe_target(HttpTransfers& transfers, LoadedServer target,
                                  const std::function<bool()>& go_on) {
  return TargetProbe(transfers, std::move(target), go_on).run();
}

}  // namespace hearth
