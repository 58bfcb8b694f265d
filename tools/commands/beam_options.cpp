#include "tools/commands/beam_options.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/log.h"

namespace hearth {

void BeamOptionsGroup::declare(Options& options) {
  options.group("Beam search");
  Option& beams =
      options.add("--beams N", &beams_, "Follow the N most likely texts and return the best one")
          .alias("--num-beams")
          .range(1, kMaxBeams)
          .idle_at(1)
          .advanced();
  // The most likely text is not drawn at random, and steps verify no guesses. The first one that
  // was given is named in the message, so the other decoding strategies come before the settings
  // that belong to them.
  for (const char* name : {"--penalty-alpha",
                           "--guidance",
                           "--temp",
                           "--top-k",
                           "--top-p",
                           "--min-p",
                           "--repeat-penalty",
                           "--presence-penalty",
                           "--frequency-penalty",
                           "--typical",
                           "--top-nsigma",
                           "--top-a",
                           "--epsilon-cutoff",
                           "--eta-cutoff",
                           "--xtc-probability",
                           "--dynatemp-range",
                           "--smoothing-factor",
                           "--mirostat",
                           "--dry-multiplier",
                           "--samplers",
                           "--ban",
                           "--speculate",
                           "--logprobs",
                           "--stats"})
    beams.excludes(options.at(name));
  options.add("--best N", &best_, "With --beams: print the N best texts with their scores")
      .range(1, kMaxBeams)
      .needs(beams)
      .advanced();
  options
      .add("--length-penalty X", &length_penalty_,
           "With --beams: divide a text's log-probability by its length to the power X; the larger "
           "X, the longer the texts that win")
      .range(-100, 100)
      .needs(beams)
      .advanced();
  options
      .add("--early-stopping WORD", &early_stopping_,
           "With --beams: end with N finished texts (on), if no other scores better so far (off), "
           "or if none can score better (never)")
      .one_of({"off", "on", "never"})
      .needs(beams)
      .advanced();
}

std::string BeamOptionsGroup::problem() const {
  if (best_ <= beams_) return {};
  return fmt::format("--best {} asks for more texts than --beams {} finds", best_, beams_);
}

void BeamOptionsGroup::apply(GenerationRequest& request) const {
  request.beam = {.beams = beams_, .length_penalty = length_penalty_};
  if (early_stopping_ == "on") request.beam.early_stopping = EarlyStopping::kOn;
  if (early_stopping_ == "never") request.beam.early_stopping = EarlyStopping::kNever;
  // The model's own settings for sampling do not apply.
  request.sampling = {.temperature = 0, .top_logprobs = request.sampling.top_logprobs};
}

void BeamOptionsGroup::print_json(const GenerationRequest& request, const GenerationEnd& best,
                                  nlohmann::json texts) const {
  // No token is known before the search ends, so there is no rate after the first one.
  const double seconds = best.times.finished - best.times.admitted;
  nlohmann::json result = {
      {"text", texts.front()["text"]},
      {"ids", texts.front()["ids"]},
      {"finish_reason", texts.front()["finish_reason"]},
      {"prompt_tokens", request.prompt.size()},
      {"tokens", best.generated_tokens},
      {"ttft_seconds", best.times.first_token},
      {"tokens_per_s", seconds > 0 ? best.generated_tokens / seconds : 0.0},
      {"beams", beams_},
      {"seconds", best.times.finished},
  };
  result["texts"] = std::move(texts);
  fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Status BeamOptionsGroup::run(Session& session, const GenerationRequest& request,
                             const std::string& prompt, bool json) const {
  HEARTH_ASSIGN(std::vector<TokenStream> streams, session.engine().submit_n(request, best_));
  nlohmann::json texts = nlohmann::json::array();
  for (size_t i = 0; i < streams.size(); ++i) {
    std::string text;
    nlohmann::json ids = nlohmann::json::array();
    while (const auto token = streams[i].next()) {
      ids.push_back(token->id);
      text += token->text;
    }
    const GenerationEnd& end = streams[i].end();
    text += end.text;
    if (end.reason == FinishReason::kError) return Error{ErrorKind::kInternal, end.message};
    const float score = end.score.value_or(0);
    if (json) {
      texts.push_back({{"text", text},
                       {"ids", ids},
                       {"score", score},
                       {"finish_reason", finish_reason_name(end.reason)},
                       {"tokens", end.generated_tokens}});
    } else {
      if (best_ > 1) fmt::print("{}{}. score {:.4f}\n", i == 0 ? "" : "\n", i + 1, score);
      fmt::print("{}{}\n", prompt, text);
      if (best_ == 1)
        log_line(
            fmt::format("{} beams, score {:.4f}, {:.2f} s", beams_, score, end.times.finished));
    }
  }
  if (json) print_json(request, streams.front().end(), std::move(texts));
  return {};
}

}  // namespace hearth
