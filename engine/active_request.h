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
#include <vector>

#include "engine/decoding/speculation/speculation.h"
#include "engine/generation.h"
#include "engine/scheduling/scheduler.h"
#include "engine/text/detokenizer.h"
#include "engine/text/stop_strings.h"
#include "engine/time_source.h"
#include "engine/token_channel.h"
#include "params/sampling.h"
#include "runtime/result.h"

namespace hearth {

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

  // Sampling parameters for the token at `position` of the sequence in `slot`.
  params::SamplingRow sampling_row(uint32_t slot, uint32_t position) const;

  // Null if nothing is proposed for the request.
  Speculation* speculation() const { return speculation_.get(); }
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

  // From now on tokens are held back, because the request is a member of this batch.
  void hold(uint64_t batch) { batch_ = batch; }
  uint64_t batch() const { return batch_; }  // 0: none
  bool held() const { return batch_ != 0; }

  // Adds the text to a sampled token, and delivers it unless it is held back. Returns the reason to
  // end now, or kNone.
  FinishReason accept(GeneratedToken token, EngineClock::time_point now);
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
  void deliver(GeneratedToken token, EngineClock::time_point now);

  GenerationRequest request_;
  const Tokenizer* tokenizer_;
  params::SamplingRow sampling_;
  uint32_t max_new_tokens_;
  std::shared_ptr<TokenChannel> channel_;
  EngineClock::time_point submitted_;
  std::vector<TokenId> tokens_;
  std::optional<Detokenizer> detokenizer_;
  StopStrings stop_;
  GenerationTimes times_;
  std::optional<double> token_gap_;
  SpeculationOptions speculation_options_;
  std::unique_ptr<Speculation> speculation_;
  uint32_t uncounted_ = 0;
  uint32_t proposed_tokens_ = 0, accepted_tokens_ = 0;
  uint64_t batch_ = 0;
  std::deque<GeneratedToken> held_tokens_;
  uint32_t delivered_tokens_ = 0;
  uint32_t cached_tokens_ = 0;
  bool admitted_ = false;
};

}  // namespace hearth
