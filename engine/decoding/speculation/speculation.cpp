#include "engine/decoding/speculation/speculation.h"

#include <algorithm>

namespace hearth {
namespace {

// A failed guess pauses guessing for 2 tokens. Each further failure in a row doubles the pause, up
// to 2 to the power of this.
constexpr std::uint32_t kMaxPauseExponent = 5;
// How often guesses are right before anything is known.
constexpr double kFirstPrior = 0.5;
// Trees are as long as chains are by default; the rest of their tokens is for branches.
constexpr std::uint32_t kTreeLength = 8;
// Each guess of a request with a grammar needs a mask.
constexpr std::uint32_t kGrammarLength = 8;
constexpr std::uint32_t kMatchTokens = NgramProposer::Options{}.min_match;

GuessKind match_kind(std::uint32_t length) {
  if (length == 0) return GuessKind::kNone;
  if (length < 4) return GuessKind::kShortMatch;
  return length < 8 ? GuessKind::kMediumMatch : GuessKind::kLongMatch;
}

std::uint32_t longest_chain(const SpeculationOptions& options) {
  const std::uint32_t most = most_proposed(options);
  return options.method == SpeculationMethod::kTree ? std::min(most, kTreeLength) : most;
}

}  // namespace

AcceptanceRates shared_rates() {
  AcceptanceRates rates;
  rates.fill(AcceptanceRate(AcceptanceRate::Of::kAllRequests));
  return rates;
}

// The prediction comes before the prompt, after a copy of the prompt's end: so the answer's first
// tokens are looked up in it, too.
Speculation::Speculation(const SpeculationOptions& options, std::span<const std::uint32_t> prompt,
                         std::uint32_t max_tokens, std::span<const std::uint32_t> prediction)
    : method_(options.method),
      draft_model_(options.draft_model && may_draft(options.method)),
      most_(most_proposed(options)),
      longest_(longest_chain(options)),
      length_(longest_),
      ngrams_(max_tokens + static_cast<std::uint32_t>(prediction.size()) + kMatchTokens, {}) {
  if (!prediction.empty()) {
    ngrams_.append(prompt.last(std::min<std::size_t>(prompt.size(), kMatchTokens)));
    ngrams_.append(prediction);
  }
  ngrams_.append(prompt);
  if (method_ == SpeculationMethod::kLookahead) lookahead_.emplace(prompt);
  if (draft_model_) kind_ = GuessKind::kDraft;
  proposal_.tokens.reserve(most_);
  proposal_.parents.reserve(most_);
}

void Speculation::share(const SharedNgrams& outputs, std::uint32_t owner) {
  outputs_ = &outputs;
  owner_ = owner;
}

void Speculation::append(std::span<const std::uint32_t> tokens) {
  if (watching_ && !tokens.empty()) {
    watching_ = false;
    observe(tokens.front() == watched_ ? 1 : 0, 1);
  }
  ngrams_.append(tokens);
  if (lookahead_) lookahead_->append(tokens);
  pause_ -= std::min(pause_, static_cast<std::uint32_t>(tokens.size()));
}

bool Speculation::promising() const {
  if (method_ == SpeculationMethod::kSynthetic || lookahead_) return true;
  if (pause_ > 0) return false;
  return draft_model_ || ngrams_.matches() ||
         (outputs_ != nullptr && outputs_->find(owner_, ngrams_.tokens()).length > 0);
}

GuessKind Speculation::look_up(std::uint32_t length) {
  proposal_.clear();
  std::uint32_t match = ngrams_.propose(length, proposal_.tokens);
  from_others_ = false;
  if (outputs_ == nullptr) return match_kind(match);
  // Matches in the request's own text say more than equally long ones elsewhere.
  if (const SharedNgrams::Match other = outputs_->find(owner_, ngrams_.tokens());
      other.length > match) {
    proposal_.clear();
    outputs_->follow(other, length, proposal_.tokens);
    match = other.length;
    from_others_ = true;
  }
  return match_kind(match);
}

double Speculation::acceptance(AcceptanceRates& shared, bool drafter) {
  shared_ = &shared;
  watching_ = false;
  const auto rate = [&](GuessKind kind) {
    const auto index = static_cast<std::size_t>(kind);
    return rates_[index].value(shared[index].value(kFirstPrior));
  };
  if (method_ == SpeculationMethod::kSynthetic) {
    kind_ = GuessKind::kSynthetic;
    return rate(kind_);
  }
  kind_ = look_up(1);
  const double from_text = kind_ == GuessKind::kNone ? 0 : rate(kind_);
  if (draft_model_ && drafter && rate(GuessKind::kDraft) > from_text) {
    kind_ = GuessKind::kDraft;
    // Nothing is learnt about drafts that are not made.
    rates_[static_cast<std::size_t>(kind_)].idle();
    shared[static_cast<std::size_t>(kind_)].idle();
    return rate(kind_);
  }
  if (kind_ == GuessKind::kNone) return 0;
  watching_ = true;
  watched_ = proposal_.tokens.front();
  return from_text;
}

const Proposal& Speculation::propose(std::uint32_t length) {
  watching_ = false;
  from_others_ = false;
  proposal_.clear();
  length = std::min(length, longest_);
  if (lookahead_) {
    lookahead_->propose(most_, proposal_);
  } else if (method_ == SpeculationMethod::kSynthetic) {
    ngrams_.repeat(length, proposal_.tokens);
  } else if (method_ == SpeculationMethod::kTree && length > 0) {
    ngrams_.propose_tree(length, most_, proposal_);
  } else if (length > 0) {
    kind_ = look_up(length);
  }
  return proposal_;
}

std::span<const std::uint32_t> Speculation::guess_chain() {
  watching_ = false;
  proposal_.clear();
  const std::uint32_t length = std::min(length_, kGrammarLength);
  if (pause_ == 0) kind_ = look_up(length);
  return proposal_.tokens;
}

void Speculation::observe(std::uint32_t accepted, std::uint32_t tried) {
  const auto kind = static_cast<std::size_t>(kind_);
  rates_[kind].add(accepted, tried);
  if (shared_ != nullptr) (*shared_)[kind].add(accepted, tried);
}

void Speculation::judged(std::uint32_t proposed, std::uint32_t accepted,
                         std::span<const std::uint32_t> sampled) {
  if (lookahead_) lookahead_->observe(sampled);
  if (proposed == 0) return;
  observe(accepted, std::min(proposed, accepted + 1));
  if (accepted >= std::min(proposed, length_))
    length_ = std::min(2 * length_, longest_);
  else
    length_ = std::clamp(accepted + 1, 1u, longest_);
  if (accepted > 0) {
    failures_ = 0;
  } else {
    failures_ = std::min(failures_ + 1, kMaxPauseExponent);
    pause_ = 1u << failures_;
  }
}

}  // namespace hearth
