#include "engine/decoding/contrastive.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace hearth {

void ContrastiveSearch::set_candidates(std::span<const Token> top) {
  assert(!top.empty());
  top_.assign(top.begin(), top.end());
  candidates_.assign(std::min<std::size_t>(top_.size(), options_.top_k), {});
  ids_.clear();
  for (std::size_t i = 0; i < candidates_.size(); ++i) ids_.push_back(top_[i].id);
  judged_ = 0;
}

void ContrastiveSearch::judge(float similarity, std::span<const Token> next) {
  assert(judged_ < candidates_.size());
  Candidate& candidate = candidates_[judged_];
  candidate.score =
      (1 - options_.alpha) * std::exp(top_[judged_].logprob) - options_.alpha * similarity;
  candidate.next.assign(next.begin(), next.end());
  ++judged_;
}

ContrastiveSearch::Choice ContrastiveSearch::choose() {
  assert(complete());
  const auto best = std::max_element(
      candidates_.begin(), candidates_.end(),
      [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
  const auto index = static_cast<std::size_t>(best - candidates_.begin());
  Choice choice{.token = top_[index], .index = index, .top = std::move(top_), .score = best->score};
  const std::vector<Token> next = std::move(best->next);
  candidates_.clear();
  ids_.clear();
  judged_ = 0;
  if (!next.empty()) set_candidates(next);
  return choice;
}

}  // namespace hearth
