// Contrastive search (Su et al. 2022, arXiv 2202.06417) for one request. At each place the model's
// `top_k` most probable tokens are candidates. A step computes the model after each of them, and
// the search takes the one with the largest
//
//   (1 - alpha) * probability - alpha * similarity
//
// where `similarity` is the largest cosine similarity of the candidate's hidden state to those of
// all tokens before it. What the model finds probable after the winner is known then: these are the
// candidates for the next place. Pure; deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/decoding/contrastive_options.h"
#include "engine/ids.h"

namespace hearth {

class ContrastiveSearch {
 public:
  struct Token {
    TokenId id = 0;
    float logprob = 0;
  };

  explicit ContrastiveSearch(const ContrastiveSearchOptions& options) : options_(options) {}

  // Whether the model's most probable tokens at the present place are still unknown, as at the
  // beginning.
  bool needs_candidates() const { return candidates_.empty(); }
  // `top` are the most probable tokens, the most probable first. REQUIRES: needs_candidates(), and
  // there is one.
  void set_candidates(std::span<const Token> top);

  // The candidates that have not been judged yet, the most probable first. A step may compute only
  // the first of them.
  std::span<const TokenId> unjudged() const {
    return std::span(ids_).subspan(judged_, ids_.size() - judged_);
  }
  // Judges the first of them. `next` are the most probable tokens after it.
  void judge(float similarity, std::span<const Token> next);
  // REQUIRES: no candidate is left to be judged, and there are some.
  bool complete() const { return !ids_.empty() && judged_ == ids_.size(); }
  // Candidates that have been judged at the present place.
  std::size_t judged() const { return judged_; }

  struct Choice {
    Token token;
    std::size_t index = 0;   // among the candidates
    std::vector<Token> top;  // what was most probable at its place
    float score = 0;
  };
  // The best candidate; the first of several that are equally good. Its most probable successors
  // are the candidates from now on. REQUIRES: complete().
  Choice choose();

 private:
  struct Candidate {
    float score = 0;
    std::vector<Token> next;
  };

  const ContrastiveSearchOptions options_;
  std::vector<Token> top_;  // at the present place; the first `top_k` are the candidates
  std::vector<TokenId> ids_;
  std::vector<Candidate> candidates_;
  std::size_t judged_ = 0;
};

}  // namespace hearth
