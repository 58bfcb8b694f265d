// What a front end submits to the engine and what it gets back. Plain data: front ends see neither
// shader parameters nor the scheduler's types.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/decoding/beam_options.h"
#include "engine/decoding/contrastive_options.h"
#include "engine/ids.h"
#include "engine/sampling_options.h"

namespace hearth {

namespace grammar {
class Grammar;
}

inline constexpr uint32_t kMaxLogitBiases = 512;  // per request
inline constexpr uint32_t kMaxBannedStrings = 128;

inline constexpr uint32_t kMaxDryBreakers = 64;

struct LogitBias {
  TokenId token = 0;
  float bias = 0;  // added to the logit; -infinity bans the token
};

// Contrastive decoding (Li et al. 2022): of the tokens that the model finds plausible, those that
// it finds more probable than a weaker model, the amateur, does.
struct ContrastOptions {
  // Plausible are tokens with at least this fraction of the most probable one's probability.
  float alpha = 0.1f;
  // Logits are those of the model minus `beta` times those of the amateur; 0: off.
  float beta = 1.0f;
};

// Classifier-free guidance (Sanchez et al. 2023): logits = negative + scale * (own - negative),
// where `negative` are those after the negative prompt and the same generated tokens.
struct GuidanceOptions {
  float scale = 1.0f;  // 1: off, at no cost; above 1: away from the negative prompt
  std::vector<TokenId> negative_prompt;  // empty: the last token of the prompt

  bool guides() const { return scale != 1.0f; }
};

// Which of a prompt's hidden states make its embedding.
enum class Pooling : uint8_t { kNone, kMean, kLast };

struct GenerationRequest {
  // A running request whose KV blocks are shared, as far as the two prompts agree.
  struct Fork {
    RequestId parent = 0;
    uint32_t tokens = 0;  // the most leading tokens to share
  };

  std::vector<TokenId> prompt;
  SamplingOptions sampling;
  std::vector<LogitBias> biases;  // at most kMaxLogitBiases, and at most one per token
  uint32_t max_tokens = 0;        // most tokens to generate; 0: until the context is full
  std::vector<std::string> stop;  // strings that end the text; not part of it
  // Strings that may not appear in the text; see ban_guard.h. At most kMaxBannedStrings. Nothing is
  // proposed for a request that has any.
  std::vector<std::string> banned_strings;
  // Texts that repetitions do not reach across, for DRY; at most kMaxDryBreakers.
  std::vector<std::string> dry_breakers = {"\n", ":", "\"", "*"};
  bool ignore_end = false;  // continues after the model's end token
  int32_t priority = 0;     // higher runs first
  uint64_t cache_salt = 0;  // only requests with equal salts share prefixes
  // Whose request it is: with --ngram-shared, guesses come from outputs of the same owner only.
  uint32_t owner = 0;
  std::optional<Fork> fork;
  // For requests submitted together: shares the prompt's blocks of the last request before it that
  // has this unset.
  bool forks_first = false;
  // With beams, the request and those after it with forks_first are one search: the first stream
  // gets the best text, the next one the second best, and so on. Nothing is delivered before the
  // search has ended.
  BeamOptions beam;
  // Contrastive decoding, where it differs from the engine's settings (EngineOptions::contrast).
  std::optional<float> contrast_alpha, contrast_beta;
  // Not with beams or contrastive decoding. Nothing is proposed for a request that has it.
  GuidanceOptions guidance;
  // Contrastive search replaces sampling: temperature and filters are ignored, biases and penalties
  // apply to the probabilities. Not with beams, contrastive decoding, guidance, a grammar or banned
  // strings. Nothing else is proposed for a request that has it.
  ContrastiveSearchOptions contrastive_search;
  double time_limit_seconds = 0;  // from submission; 0: none
  // What the answer may turn out to be. With speculation it is looked up, which makes the answer
  // faster where they agree; it never changes it.
  std::vector<TokenId> prediction;
  // Reports the log-probability of every prompt token but the first (TokenStream::prompt_logprobs),
  // with sampling.top_logprobs alternatives. The prompt is computed even if it is cached.
  bool prompt_logprobs = false;
  bool generate = true;  // false: ends when the prompt is computed; max_tokens is ignored
  // Control tokens whose text is part of the answer, sorted: markers that someone reads. Others
  // have no text.
  std::vector<TokenId> shown_tokens = {};
  // What the generated text has to be; null: anything. It ends where the grammar lets it end, or is
  // cut short by max_tokens and stop strings. Tokens that have to follow are not sampled: their
  // log-probability is 0.
  std::shared_ptr<const grammar::Grammar> grammar;
  // The grammar begins after this string, once it has been generated; until then any text may come.
  // Empty: at the beginning.
  std::string grammar_after;
  // The string counts only where the text begins, after white space and this tag, if there is one,
  // and belongs to what the grammar describes.
  bool grammar_opens_text = false;
  std::string grammar_tag;
  // The text may begin with reasoning between these markers, or with the rest of it if `begun`. The
  // string above does not count there. Empty: no reasoning.
  struct Reasoning {
    std::string open, close;
    bool begun = false;
  };
  Reasoning grammar_reasoning;
  // Not kNone: nothing is generated, and the end of the stream has the prompt's embedding. The
  // prompt takes part in steps as any other; it shares no cached prefix, whose hidden states are
  // not kept.
  Pooling pooling = Pooling::kNone;
};

enum class FinishReason : uint8_t { kNone, kStop, kLength, kCancelled, kTimeLimit, kError };
std::string_view finish_reason_name(FinishReason reason);  // "stop", "length", ...

// A token that could have been chosen.
struct TopLogprob {
  TokenId id = 0;
  float logprob = 0;
};

// What the model expected at the place of a prompt token, before biases, penalties and filters.
struct PromptLogprob {
  float logprob = 0;
  std::vector<TopLogprob> top;  // the most probable first
};

struct GeneratedToken {
  TokenId id = 0;
  float logprob = 0;
  std::vector<TopLogprob> top;  // the most probable first; at most as many as were requested
  std::string text;             // whole characters that are final; may be empty
};

// Times of a request, in seconds since its submission.
struct GenerationTimes {
  double admitted = 0, first_token = 0, last_token = 0, finished = 0;
};

struct GenerationEnd {
  FinishReason reason = FinishReason::kNone;
  std::string message;                // if the reason is an error
  bool grammar_failed = false;        // the error: the request's grammar is too large or too slow
  std::string text;                   // text that was held back until the end
  std::string stop_string = {};       // the stop string that ended it; empty if none did
  std::vector<float> embedding = {};  // [model width], not normalized; empty unless pooled
  uint32_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  uint32_t proposed_tokens = 0, accepted_tokens = 0;  // by speculation
  std::optional<float> score;                         // of a text that beam search found
  GenerationTimes times;
};

}  // namespace hearth
