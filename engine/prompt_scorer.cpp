#include "engine/prompt_scorer.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace hearth {
namespace {

GenerationRequest score_request(std::vector<TokenId> ids) {
  GenerationRequest request{.prompt = std::move(ids)};
  request.prompt_logprobs = true;
  request.generate = false;
  return request;
}

Status wait_for_end(TokenStream& stream, const ScoreUntil& until) {
  constexpr auto kGlance = std::chrono::milliseconds(10);
  while (!stream.ended()) {
    static_cast<void>(stream.next(kGlance));
    if (until.cancelled != nullptr && *until.cancelled)
      return Error{ErrorKind::kBusy, "scoring the prompt was cancelled"};
    if (std::chrono::steady_clock::now() >= until.deadline)
      return Error{ErrorKind::kBusy, "the time limit passed while the prompt was scored"};
  }
  const GenerationEnd& end = stream.end();
  if (end.reason != FinishReason::kLength) return Error{ErrorKind::kInternal, end.message};
  return {};
}

// One log-probability per id. A first id without anything before it has none: it counts as certain
// to stay.
Result<std::vector<float>> score_ids(Engine& engine, std::span<const TokenId> ids,
                                     std::optional<TokenId> bos, const ScoreUntil& until) {
  const SchedulerLimits limits = engine.limits();
  // A request leaves room for a token that is sampled, and BOS takes a place.
  const size_t most =
      std::min<size_t>(limits.context, size_t{limits.pool_blocks} * kTokensPerBlock);
  if (most < 4) return Error{ErrorKind::kInvalid, "the context is too short to score a text"};
  const size_t window = most - 2, stride = std::max<size_t>(window / 2, 1);
  std::vector<GenerationRequest> requests;
  std::vector<size_t> firsts;  // of each window
  for (size_t first = 0;; first += stride) {
    const auto part = ids.subspan(first, std::min(window, ids.size() - first));
    std::vector<TokenId> prompt;
    if (bos) prompt.push_back(*bos);
    prompt.insert(prompt.end(), part.begin(), part.end());
    requests.push_back(score_request(std::move(prompt)));
    firsts.push_back(first);
    if (first + part.size() == ids.size()) break;
  }
  std::vector<float> scores(ids.size(), -std::numeric_limits<float>::infinity());
  HEARTH_ASSIGN(std::vector<TokenStream> streams, engine.submit(std::move(requests)));
  for (size_t i = 0; i < streams.size(); ++i) {
    HEARTH_TRY(wait_for_end(streams[i], until));
    const std::vector<PromptLogprob>& logprobs = streams[i].prompt_logprobs();
    // What an earlier window has scored has more context there.
    const size_t known = i == 0 ? 0 : firsts[i - 1] + window;
    const size_t begin = firsts[i] + (bos ? 0 : 1);
    for (size_t j = 0; j < logprobs.size(); ++j)
      if (begin + j >= known) scores[begin + j] = logprobs[j].logprob;
    if (until.scored) until.scored(i + 1, streams.size());
  }
  return scores;
}

}  // namespace

Result<std::vector<ScoredText>> score_texts(Engine& engine, const Tokenizer& tokenizer,
                                            std::span<const std::string> texts,
                                            const ScoreUntil& until) {
  std::vector<TokenId> ids;
  std::vector<std::pair<size_t, size_t>> places;  // of each text's tokens
  for (const std::string& text : texts) {
    const auto append = [&](std::string_view words) {
      const std::vector<TokenId> encoded = tokenizer.encode(words, {.add_bos = false});
      ids.insert(ids.end(), encoded.begin(), encoded.end());
    };
    if (!ids.empty()) append("\n\n");
    const size_t first = ids.size();
    append(text);
    places.emplace_back(first, ids.size());
  }
  std::vector<ScoredText> scored(texts.size());
  if (ids.empty()) return scored;
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  HEARTH_ASSIGN(const std::vector<float> logprobs,
                score_ids(engine, ids, vocabulary.add_bos ? vocabulary.bos : std::nullopt, until));
  for (size_t text = 0; text < texts.size(); ++text) {
    const auto [first, end] = places[text];
    ScoredText& one = scored[text];
    for (size_t i = first; i < end; ++i) {
      std::string piece = tokenizer.piece(ids[i]);
      if (i == first && tokenizer.adds_space_prefix() && piece.starts_with(' ')) piece.erase(0, 1);
      const size_t spaces = piece.find_first_not_of(" \n\t\r");
      one.tokens.push_back({.begin = one.text.size() + (spaces == std::string::npos ? 0 : spaces),
                            .surprisal = -static_cast<double>(logprobs[i])});
      one.text += piece;
    }
  }
  return scored;
}

Result<std::vector<float>> score_answer(Engine& engine, std::span<const TokenId> prompt,
                                        std::span<const TokenId> answer, const ScoreUntil& until) {
  std::vector<TokenId> ids(prompt.begin(), prompt.end());
  ids.insert(ids.end(), answer.begin(), answer.end());
  HEARTH_ASSIGN(TokenStream stream, engine.submit(score_request(std::move(ids))));
  HEARTH_TRY(wait_for_end(stream, until));
  std::vector<float> scores;
  const std::vector<PromptLogprob>& logprobs = stream.prompt_logprobs();
  for (size_t i = logprobs.size() - answer.size(); i < logprobs.size(); ++i)
    scores.push_back(logprobs[i].logprob);
  return scores;
}

}  // namespace hearth
