// The ways of speculating, as users name them, and their settings. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

enum class SpeculationMethod : std::uint8_t {
  kNone,
  kNgram,      // what followed the same tokens before
  kLookahead,  // n-grams that the model finds itself, in spare rows of its steps
  kDraft,      // what a smaller model would write
  kTree,       // several continuations at once: the draft model's, or those found in the text
  kAuto,       // text or draft model, and only when measured step times say that it pays off
  kSynthetic,  // proposals accepted at a given rate, whatever the model says: for measuring
};

struct SpeculationOptions {
  SpeculationMethod method = SpeculationMethod::kNone;
  std::uint32_t max_proposed = 0;   // tokens per request and step; 0: what suits the method
  double synthetic_rate = 0;        // with kSynthetic: how likely a proposal is accepted
  std::uint32_t shared_tokens = 0;  // of other requests' output to look up, too; 0: none
  bool draft_model = false;         // whether there is one
  float draft_min_p = 0;            // a draft ends before a token that its model finds less likely
  bool in_place = false;            // see find_verified_rows(); for equality to the last bit
  bool on_cpu = false;              // steps run on a CPU, where rows cost more (row_costs.h)
};

// Reads "ngram", "auto", "synthetic:0.7", "off". An error says what is wrong with the text.
std::optional<std::string> read_method(std::string_view text, SpeculationOptions& options);

// Most tokens per request and step.
std::uint32_t most_proposed(const SpeculationOptions& options);
// Whether the draft model is asked for proposals, if there is one.
bool may_draft(SpeculationMethod method);
// Whether guesses may come from the output of other requests (shared_ngrams.h).
bool may_share(SpeculationMethod method);
// Whether lengths are chosen from measured step times (length_choice.h).
bool weighs_costs(SpeculationMethod method);

}  // namespace hearth
