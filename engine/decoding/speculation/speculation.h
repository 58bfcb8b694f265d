// Speculation for one request: guesses its next tokens, and learns from what is accepted how many
// are worth guessing. Never changes what is generated: README.md of engine/decoding. Used by the
// engine thread only.
//
// Two ways to decide how many: length(), which depends on the last guesses alone, and acceptance(),
// from which LengthChoice computes what pays off.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/decoding/speculation/acceptance_rate.h"
#include "engine/decoding/speculation/lookahead.h"
#include "engine/decoding/speculation/method.h"
#include "engine/decoding/speculation/ngram.h"
#include "engine/decoding/speculation/proposal.h"
#include "engine/decoding/speculation/shared_ngrams.h"

namespace hearth {

// Guesses of different kinds are right more or less often, so each kind has its own rate.
enum class GuessKind : std::uint8_t {
  kNone,
  kShortMatch,
  kMediumMatch,
  kLongMatch,
  kDraft,
  kSynthetic
};
inline constexpr std::size_t kGuessKinds = 6;
using AcceptanceRates = std::array<AcceptanceRate, kGuessKinds>;
// What all requests have learnt, for Speculation::acceptance().
AcceptanceRates shared_rates();

class Speculation {
 public:
  // `max_tokens`: of the whole sequence. `prediction`: what the answer may turn out to be.
  Speculation(const SpeculationOptions& options, std::span<const std::uint32_t> prompt,
              std::uint32_t max_tokens, std::span<const std::uint32_t> prediction = {});

  // From now on looks up the outputs of other requests of this owner, too. The table outlives this.
  void share(const SharedNgrams& outputs, std::uint32_t owner);

  // Takes in tokens that became final.
  void append(std::span<const std::uint32_t> tokens);

  // Whether there may be anything to propose after the tokens so far.
  bool promising() const;
  // How many tokens to guess in a row, without regard to costs; 0 during a pause.
  std::uint32_t length() const { return pause_ > 0 ? 0 : length_; }
  // How likely the next guess is right, with what all requests have learnt as the prior; 0 if there
  // is nothing to guess from. Chooses between text and draft model. Remembers a guess from the text
  // until the next token, which shows whether it was right. `drafter`: the draft model can be used.
  double acceptance(AcceptanceRates& shared, bool drafter = true);
  // Whether the next guesses are to come from the draft model.
  bool drafts() const { return kind_ == GuessKind::kDraft; }

  // Whether the last guesses came from the output of another request.
  bool from_others() const { return from_others_ && kind_ != GuessKind::kDraft; }

  // Guesses for the next step that need no draft model, up to `length` in a row. Valid until the
  // next call. REQUIRES: !drafts().
  const Proposal& propose(std::uint32_t length);
  // Guesses from the text alone, in a row, whatever the method: for requests with a grammar, which
  // says itself which of them may follow. Valid until the next call.
  std::span<const std::uint32_t> guess_chain();
  // Learns what became of the last guesses. `sampled` has the token of each row, as
  // VerifiedRow counts them.
  void judged(std::uint32_t proposed, std::uint32_t accepted,
              std::span<const std::uint32_t> sampled = {});

 private:
  // Puts up to `length` guesses from the text, or from other requests' outputs where more tokens
  // match, into proposal_.
  GuessKind look_up(std::uint32_t length);
  void observe(std::uint32_t accepted, std::uint32_t tried);

  SpeculationMethod method_;
  bool draft_model_;
  std::uint32_t most_;       // tokens per step
  std::uint32_t longest_;    // tokens in a row
  std::uint32_t length_;     // in a row, next time
  std::uint32_t pause_ = 0;  // tokens to wait before guessing again
  std::uint32_t failures_ = 0;
  NgramProposer ngrams_;
  const SharedNgrams* outputs_ = nullptr;  // null: the request keeps to itself
  std::uint32_t owner_ = 0;
  bool from_others_ = false;
  std::optional<Lookahead> lookahead_;
  Proposal proposal_;

  AcceptanceRates rates_;
  AcceptanceRates* shared_ = nullptr;
  GuessKind kind_ = GuessKind::kNone;  // of the last guess that was looked at or proposed
  bool watching_ = false;              // the next token is compared with watched_
  std::uint32_t watched_ = 0;
};

}  // namespace hearth
