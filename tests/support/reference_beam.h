// Beam search written plainly from the description of transformers' generate(): every step looks at
// all continuations of all beams, with a score of -1e9 for what does not count. Recomputes
// everything, shares nothing with the engine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/decoding/beam_options.h"

namespace hearth::testing {

struct ReferenceText {
  std::vector<uint32_t> tokens;  // without the prompt
  double score = 0;
};

struct ReferenceBeamSearch {
  static constexpr double kNothing = -1e9;
  struct Text {
    std::vector<uint32_t> tokens;
    double score = kNothing;
    bool finished = false;
  };

  BeamOptions options;
  uint32_t max_new_tokens = 1;
  uint32_t end_tokens = 0;  // how many different ones there are

  // logprobs(tokens): pairs of token and log-probability, for all tokens. ends(generated): whether
  // the text is finished. Returns the texts, the best first.
  template <class Logprobs, class Ends>
  std::vector<ReferenceText> run(const std::vector<uint32_t>& prompt, Logprobs logprobs,
                                 Ends ends) const {
    const size_t beams = options.beams;
    const size_t keep = std::max(2u, 1 + end_tokens) * beams;
    const auto best_first = [](const Text& a, const Text& b) { return a.score > b.score; };
    std::vector<Text> running(beams), done(beams);
    running[0].score = 0;
    for (uint32_t length = 1;; ++length) {
      std::vector<Text> all;
      for (const Text& text : running) {
        std::vector<uint32_t> tokens = prompt;
        tokens.insert(tokens.end(), text.tokens.begin(), text.tokens.end());
        for (const auto& [token, logprob] : logprobs(tokens)) {
          all.push_back({text.tokens, text.score + logprob});
          all.back().tokens.push_back(token);
        }
      }
      std::stable_sort(all.begin(), all.end(), best_first);
      all.resize(std::min(all.size(), keep));
      for (Text& text : all) text.finished = length == max_new_tokens || ends(text.tokens);

      running = all;
      for (Text& text : running)
        if (text.finished) text.score += kNothing;
      std::stable_sort(running.begin(), running.end(), best_first);
      running.resize(beams);

      const auto normalized = [&](double score, uint32_t tokens) {
        return score / std::pow(tokens, options.length_penalty);
      };
      for (size_t i = 0; i < std::min(beams, all.size()); ++i) {
        if (!all[i].finished) continue;
        done.push_back(all[i]);
        done.back().score = normalized(all[i].score, length);
      }
      std::stable_sort(done.begin(), done.end(), best_first);
      done.resize(beams);

      const bool full =
          std::all_of(done.begin(), done.end(), [](const Text& t) { return t.finished; });
      const bool never = options.early_stopping == EarlyStopping::kNever;
      const uint32_t reached = never && options.length_penalty > 0 ? max_new_tokens : length;
      const bool better = normalized(running[0].score, reached) > done.back().score;
      const bool over =
          std::all_of(all.begin(), all.end(), [](const Text& t) { return t.finished; });
      if ((full && (options.early_stopping == EarlyStopping::kOn || !better)) || over) break;
      for (Text& text : running) text.finished = false;
    }
    std::vector<ReferenceText> texts;
    for (Text& text : done)
      if (text.finished) texts.push_back({std::move(text.tokens), text.score});
    return texts;
  }
};

}  // namespace hearth::testing
