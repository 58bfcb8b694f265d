// An accepted request: turns sampled ids into text and decides when to stop. Built by the thread
// that submits it; from then on used by the engine thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/ban_guard.h"
#include "engine/constraint.h"
#include "engine/decoding/contrastive.h"
#include "engine/decoding/speculation/speculation.h"
#include "engine/generation.h"
#include "engine/pooling.h"
#include "engine/sampling/request_samplers.h"
#include "engine/scheduling/scheduler.h"
#include "engine/text/detokenizer.h"
#include "engine/text/stop_strings.h"
#include "engine/time_source.h"
#include "engine/token_channel.h"
#include "params/sampling.h"
#include "runtime/result.h"

namespace hearth {

class BeamGroup;
class Tokenizer;

class ActiveRequest {
 public:
  struct Place {
    RequestId id = 0;
    EngineClock::time_point submitted;
    SchedulerLimits limits;
    uint32_t vocabulary = 0;               // 0: not known
    const Tokenizer* tokenizer = nullptr;  // null: no text; the request ends only by its length
    SpeculationOptions speculation;
    const SharedNgrams* outputs = nullptr;  // of other requests, to guess from; null: none
    std::shared_ptr<const grammar::TokenTrie> trie = {};  // of the tokenizer; only for grammars
    std::optional<ContrastOptions> contrast;              // empty: there is no amateur model
    bool keeps_hidden = true;                             // for contrastive search
  };
  // An error says what is wrong with the request, or which limit it exceeds.
  static Result<std::unique_ptr<ActiveRequest>> create(GenerationRequest request,
                                                       const Place& place);
  ActiveRequest(const ActiveRequest&) = delete;
  ActiveRequest& operator=(const ActiveRequest&) = delete;

  const GenerationRequest& request() const { return request_; }
  RequestId id() const { return channel_->request(); }
  const std::shared_ptr<TokenChannel>& channel() const { return channel_; }
  uint32_t max_new_tokens() const { return max_new_tokens_; }
  EngineClock::time_point submitted() const { return submitted_; }
  // When its time limit passes; empty if it has none.
  std::optional<EngineClock::time_point> deadline() const;
  // The known tokens: the prompt and the generated tokens that have been read back.
  const std::vector<TokenId>& tokens() const { return tokens_; }
  uint32_t prompt_tokens() const { return static_cast<uint32_t>(request_.prompt.size()); }
  uint32_t generated_tokens() const {
    return static_cast<uint32_t>(tokens_.size()) - prompt_tokens();
  }
  bool uses_history() const;
  // Whether sampling after a proposed token needs its id on the host when the step is built: for
  // penalties, DRY or a grammar.
  bool needs_proposed_ids() const {
    return uses_history() || samplers_.need_host() || constraint_ != nullptr;
  }
  // Whether every prompt token gets a log-probability. There is nothing to score in a single token.
  bool scores_prompt() const { return request_.prompt_logprobs && request_.prompt.size() > 1; }
  // The position of the prompt token whose log-probability comes next.
  size_t next_scored() const { return prompt_logprobs_.size() + 1; }
  // Adds it; the reader sees them once all are there.
  void add_prompt_logprob(PromptLogprob logprob);

  // Sampling parameters for the token at `position` of the sequence in `slot`.
  params::SamplingRow sampling_row(uint32_t slot, uint32_t position) const;

  // Null if the request wants no embedding.
  PoolingState* pooling() const { return pooling_.get(); }
  // How many of the most probable tokens its steps report: more than it asks for, in beam search.
  uint32_t reported_tokens() const { return sampling_.top_logprobs; }

  // Null if the request has no contrastive search.
  ContrastiveSearch* contrastive() const { return contrastive_.get(); }
  // Why hidden states cannot be kept for it; empty: they can.
  const std::string& hidden_fault() const { return hidden_fault_; }
  void set_hidden_fault(std::string fault) { hidden_fault_ = std::move(fault); }
  // Where the hidden state of the newest token is kept if the next step has to copy it to its place
  // in the text; 0: it is there, or will be computed.
  uint32_t staged_hidden() const { return staged_hidden_; }
  void set_staged_hidden(uint32_t position) { staged_hidden_ = position; }

  // The beam search that the request is a part of; null: none.
  const std::shared_ptr<BeamGroup>& beams() const { return beams_; }
  void join(std::shared_ptr<BeamGroup> beams) { beams_ = std::move(beams); }
  // Its stream has no reader: a beam that returns no text.
  bool hidden() const;
  void set_score(float score) { score_ = score; }

  const RequestSamplers& samplers() const { return samplers_; }
  void set_mirostat(float mu) { samplers_.set_mirostat(mu); }

  // Null if nothing is proposed for the request.
  Speculation* speculation() const { return speculation_.get(); }
  // Null if the request has no grammar.
  const std::shared_ptr<Constraint>& constraint() const { return constraint_; }
  // Final tokens that the history in the request's slot does not count yet.
  std::span<const TokenId> uncounted() const {
    return std::span<const TokenId>(tokens_).last(uncounted_);
  }
  void add_uncounted(uint32_t tokens) { uncounted_ += tokens; }
  void all_counted() { uncounted_ = 0; }
  // Proposals of one step that were judged, and how many of them were accepted.
  void count_judged(uint32_t proposed, uint32_t accepted) {
    proposed_tokens_ += proposed;
    accepted_tokens_ += accepted;
  }

  void admit(EngineClock::time_point now);  // the first time only
  bool admitted_before() const { return admitted_; }
  void add_cached_tokens(uint32_t tokens) { cached_tokens_ += tokens; }
  void set_grammar_failed() { grammar_failed_ = true; }

  // From now on tokens are held back, because the request is a member of this batch.
  void hold(uint64_t batch) { batch_ = batch; }
  uint64_t batch() const { return batch_; }  // 0: none
  bool held() const { return batch_ != 0; }

  // The biases for the request's next draw: its own, and what banned strings forbid at this place.
  std::vector<LogitBias> next_biases() const;
  // Its slot has been written, with next_biases().
  void slot_written() { slot_has_bans_ = bans_next(); }
  // The biases in its slot are for one draw only.
  bool slot_has_bans() const { return slot_has_bans_; }

  // The request ends when the step that it was just admitted to is done; kNone: it does not.
  void end_after_step(FinishReason reason) { early_end_ = reason; }
  FinishReason early_end() const { return early_end_; }

  // Adds the text to a new token, and delivers it unless it is held back. Returns the reason to
  // end now, or kNone. With banned strings, release_certain() delivers.
  FinishReason accept(GeneratedToken token, EngineClock::time_point now);
  bool has_banned_strings() const { return bans_ != nullptr; }
  // Whether accept() has taken tokens back that the scheduler still has.
  bool takes_back() const { return takes_back_; }
  void took_back() { takes_back_ = false; }
  // Delivers the oldest token that can no longer become part of a banned string. False if there is
  // none.
  bool release_certain(EngineClock::time_point now);
  // Nothing follows: all tokens are certain.
  void stop_guarding() {
    if (bans_ != nullptr) bans_->finish();
  }

  // Delivers the oldest token that is held back. False if there is none; later tokens are delivered
  // at once then.
  bool release_token(EngineClock::time_point now);
  void stop_clock(EngineClock::time_point now) { times_.finished = since_submission(now); }
  // Closes the channel.
  void finish(FinishReason reason, std::string message);

  uint32_t delivered_tokens() const { return delivered_tokens_; }
  // Seconds since submission.
  const GenerationTimes& times() const { return times_; }
  // Seconds between the last two delivered tokens; empty before the second one.
  std::optional<double> token_gap() const { return token_gap_; }

 private:
  ActiveRequest(GenerationRequest request, const Place& place, params::SamplingRow sampling,
                uint32_t max_new_tokens);
  double since_submission(EngineClock::time_point now) const {
    return std::chrono::duration<double>(now - submitted_).count();
  }
  bool bans_next() const;  // a token may not come next, because it began a banned string
  void deliver(GeneratedToken token, EngineClock::time_point now);
  void deliver_or_hold(GeneratedToken token, EngineClock::time_point now);

  GenerationRequest request_;
  const Tokenizer* tokenizer_;
  params::SamplingRow sampling_;
  RequestSamplers samplers_;
  uint32_t max_new_tokens_;
  std::shared_ptr<TokenChannel> channel_;
  EngineClock::time_point submitted_;
  std::vector<TokenId> tokens_;
  std::optional<Detokenizer> detokenizer_;
  StopStrings stop_;
  std::unique_ptr<BanGuard> bans_;  // null: no banned strings
  bool takes_back_ = false, slot_has_bans_ = false;
  GenerationTimes times_;
  std::optional<double> token_gap_;
  SpeculationOptions speculation_options_;
  const SharedNgrams* outputs_;
  std::unique_ptr<Speculation> speculation_;
  std::unique_ptr<PoolingState> pooling_;
  std::unique_ptr<ContrastiveSearch> contrastive_;
  std::string hidden_fault_;
  uint32_t staged_hidden_ = 0;
  std::shared_ptr<BeamGroup> beams_;
  std::optional<float> score_;
  std::vector<PromptLogprob> prompt_logprobs_;
  std::shared_ptr<Constraint> constraint_;
  uint32_t uncounted_ = 0;
  uint32_t proposed_tokens_ = 0, accepted_tokens_ = 0;
  uint64_t batch_ = 0;
  std::deque<GeneratedToken> held_tokens_;
  uint32_t delivered_tokens_ = 0;
  uint32_t cached_tokens_ = 0;
  bool grammar_failed_ = false;  // see GenerationEnd
  bool admitted_ = false;
  FinishReason early_end_ = FinishReason::kNone;
};

}  // namespace hearth
