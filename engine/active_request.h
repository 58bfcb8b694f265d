// An accepted request: turns sampled ids into text and decides when to stop. Used by the engine
// thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/generation.h"
#include "engine/text/detokenizer.h"
#include "engine/text/stop_strings.h"
#include "engine/time_source.h"
#include "engine/token_stream.h"
#include "params/sampling.h"

namespace hearth {

class Tokenizer;

class ActiveRequest {
 public:
  // Without a tokenizer (null) there is no text, and the request ends only by its length.
  ActiveRequest(GenerationRequest request, const Tokenizer* tokenizer, params::SamplingRow sampling,
                uint32_t max_new_tokens, std::shared_ptr<TokenStream> stream,
                EngineClock::time_point submitted);

  const GenerationRequest& request() const { return request_; }
  RequestId id() const { return stream_->request(); }
  const std::shared_ptr<TokenStream>& stream() const { return stream_; }
  uint32_t max_new_tokens() const { return max_new_tokens_; }
  EngineClock::time_point submitted() const { return submitted_; }
  // The known tokens: the prompt and the generated tokens that have been read back.
  const std::vector<TokenId>& tokens() const { return tokens_; }
  uint32_t prompt_tokens() const { return static_cast<uint32_t>(request_.prompt.size()); }
  uint32_t generated_tokens() const {
    return static_cast<uint32_t>(tokens_.size()) - prompt_tokens();
  }
  bool uses_history() const;

  // Sampling parameters for the token at `position` of the sequence in `slot`.
  params::SamplingRow sampling_row(uint32_t slot, uint32_t position) const;

  void admit(EngineClock::time_point now);
  void add_cached_tokens(uint32_t tokens) { cached_tokens_ += tokens; }
  bool expired(EngineClock::time_point now) const;
  // Whether all readers have released the stream.
  bool abandoned() const { return stream_.use_count() == 1; }

  // Delivers a sampled token to the stream. Returns the reason to end now, or kNone.
  FinishReason accept(const params::SamplingResult& sampled,
                      std::span<const params::TokenLogprob> top, EngineClock::time_point now);
  void stop_clock(EngineClock::time_point now) { times_.finished = since_submission(now); }
  // Closes the stream.
  void finish(FinishReason reason, std::string message);

  // Seconds since submission.
  const GenerationTimes& times() const { return times_; }
  // Seconds between the last two tokens; empty before the second one.
  std::optional<double> token_gap() const { return token_gap_; }
  bool admitted_before() const { return admitted_; }

 private:
  double since_submission(EngineClock::time_point now) const {
    return std::chrono::duration<double>(now - submitted_).count();
  }

  GenerationRequest request_;
  const Tokenizer* tokenizer_;
  params::SamplingRow sampling_;
  uint32_t max_new_tokens_;
  std::shared_ptr<TokenStream> stream_;
  EngineClock::time_point submitted_;
  std::vector<TokenId> tokens_;
  std::optional<Detokenizer> detokenizer_;
  StopStrings stop_;
  GenerationTimes times_;
  std::optional<double> token_gap_;
  uint32_t cached_tokens_ = 0;
  bool admitted_ = false;
};

}  // namespace hearth
