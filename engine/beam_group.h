// The beams of one request, as sequences of one group. Members are requests with consecutive ids:
// the first computes the prompt, the others are forks of it. The texts that the first `returned`
// members deliver are known when the search has ended.
//
// In every round, take() gets what the model says about each running beam; after the last one,
// advance() decides which beams continue: which members become forks of which (forks()), and the
// token that each is continued with (tokens()). Built by the thread that submits the request; from
// then on used by the engine thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/decoding/beam.h"
#include "engine/generation.h"
#include "engine/text/detokenizer.h"
#include "engine/text/stop_strings.h"
#include "params/sampling.h"
#include "runtime/result.h"

namespace hearth {

class ActiveRequest;
class Tokenizer;

class BeamGroup {
 public:
  struct Place {
    RequestId first = 0;
    uint32_t returned = 1;  // texts, at most as many as beams
    uint32_t max_new_tokens = 1;
    const Tokenizer* tokenizer = nullptr;  // null: a text ends only by its length
  };
  BeamGroup(const GenerationRequest& request, const Place& place);

  uint32_t size() const { return options_.beams; }
  RequestId first() const { return place_.first; }
  RequestId member(uint32_t index) const { return place_.first + index; }
  bool is_returned(RequestId member) const { return member - place_.first < place_.returned; }

  // The most probable tokens after a member, the most probable first. True if this was the last
  // running member of the round.
  bool take(RequestId member, std::span<const params::TokenLogprob> top);
  // False: the search has ended.
  bool advance();

  struct Fork {
    RequestId member = 0, parent = 0;
  };
  struct Next {
    RequestId member = 0;
    TokenId token = 0;
  };
  // After advance(): forks are independent of each other, and come before the tokens.
  std::span<const Fork> forks() const { return forks_; }
  std::span<const Next> tokens() const { return tokens_; }
  // With a grammar: the mask for what follows one of the tokens is known. True if it was the last.
  bool mask_ready() { return ++masks_ready_ == tokens_.size(); }

  // After the end: whether a member delivers a text, the text's tokens, and its score.
  bool has_text(RequestId member) const {
    return is_returned(member) && member - place_.first < search_.finished().size();
  }
  std::vector<GeneratedToken> text(RequestId member) const;
  float score(RequestId member) const;

  // Set when the members end, together and for whatever reason.
  bool ended() const { return reason_ != FinishReason::kNone; }
  void end(FinishReason reason, std::string message);
  FinishReason reason() const { return reason_; }
  const std::string& message() const { return message_; }

 private:
  // What has been read of a beam's text, to find stop strings. Copied from beam to beam.
  struct Reader {
    Detokenizer detokenizer;
    StopStrings stop;
  };
  struct Row {
    bool taken = false;
    std::vector<TopLogprob> top;
  };

  bool ends(uint32_t beam, TokenId token) const;
  void add_candidates(uint32_t beam);
  void keep_top(uint32_t nodes_before, std::span<const uint32_t> nodes);
  void assign_members();

  const BeamOptions options_;
  const Place place_;
  const bool ignore_end_;
  const uint32_t top_logprobs_;  // that the request wants for each token
  BeamSearch search_;
  std::vector<Row> rows_;          // of this round, by beam
  std::vector<uint32_t> members_;  // of the running beams
  std::vector<Reader> readers_;    // of the running beams; none without stop strings
  std::vector<BeamSearch::Candidate> candidates_;
  std::vector<std::vector<TopLogprob>> tops_;  // by node, if wanted
  std::vector<Fork> forks_;
  std::vector<Next> tokens_;
  size_t masks_ready_ = 0;  // of tokens_
  FinishReason reason_ = FinishReason::kNone;
  std::string message_;
};

// Which sampling a member of a group needs: greedy, with enough of the most probable tokens. An
// error says which of the request's settings do not go together with beam search.
Result<SamplingOptions> beam_sampling(const GenerationRequest& request, const Tokenizer* tokenizer);

// Requests for beam search, in a list of requests that are submitted together: a request with beams
// and those after it with forks_first are one search, which returns as many texts.
struct BeamRequests {
  size_t first = 0;
  uint32_t returned = 1, beams = 1;
};
// Inserts a copy for every beam that returns no text, so that each search has as many requests as
// beams. An error says what does not fit together.
Result<std::vector<BeamRequests>> add_beams(std::vector<GenerationRequest>& requests);
// Whether the request at `index` of that list is a beam that returns no text.
bool is_hidden_beam(std::span<const BeamRequests> searches, size_t index);
// Makes the requests that were built from that list parts of their searches.
void join_beams(std::span<const BeamRequests> searches, const Tokenizer* tokenizer,
                std::span<const std::unique_ptr<ActiveRequest>> requests);

}  // namespace hearth
