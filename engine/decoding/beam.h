// Beam search, with the results of transformers' generate(num_beams=...): keeps the `beams` most
// probable unfinished texts, and the best `beams` finished ones. Knows nothing of how the
// log-probabilities are computed.
//
//   BeamSearch search(options, max_new_tokens);
//   while (search.advance(candidates of all running beams)) { continue with search.running() }
//   search.finished()
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/decoding/beam_options.h"
#include "engine/ids.h"

namespace hearth {

class BeamSearch {
 public:
  // REQUIRES: both are at least 1.
  BeamSearch(const BeamOptions& options, std::uint32_t max_new_tokens);

  // A token that may follow a running beam.
  struct Candidate {
    std::uint32_t beam = 0;  // index in running()
    TokenId token = 0;
    float logprob = 0;
    bool ends = false;  // the text is finished with it: an end token, or a stop string
  };
  // A text of at least one token is named by its last token's node; kNoNode is the empty text.
  struct Node {
    std::uint32_t before = kNoNode;
    TokenId token = 0;
    float logprob = 0;
  };
  static constexpr std::uint32_t kNoNode = 0xffffffff;
  struct Beam {
    std::uint32_t parent = 0;  // the beam that it continues: an index in running() before
    std::uint32_t node = kNoNode;
    double sum = 0;  // of log-probabilities
  };
  struct Finished {
    std::uint32_t node = kNoNode;
    double score = 0;
  };

  // Takes one step. `candidates` are those of all running beams; of each beam, at least its `beams`
  // most probable tokens that do not end it, and every more probable one that does. Returns whether
  // the search goes on; then there are exactly `beams` running ones.
  bool advance(std::span<const Candidate> candidates);

  // The unfinished texts, the most probable first. One empty text at the beginning.
  std::span<const Beam> running() const { return running_; }
  // The best first. As many as beams when the search has ended.
  std::span<const Finished> finished() const { return finished_; }
  const Node& node(std::uint32_t index) const { return nodes_[index]; }
  // Nodes are numbered in the order in which they are made.
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(nodes_.size()); }

 private:
  std::uint32_t add_node(const Candidate& candidate);
  double score(double sum, std::uint32_t length) const;
  void finish(std::uint32_t node, double sum);
  bool can_improve() const;

  const BeamOptions options_;
  const std::uint32_t max_new_tokens_;
  std::uint32_t length_ = 0;  // tokens of every running beam
  std::vector<Node> nodes_;
  std::vector<Beam> running_{Beam{}};
  std::vector<Finished> finished_;
  // Scratch space of advance().
  std::vector<double> sums_;
  std::vector<std::uint32_t> order_;
  std::vector<Beam> next_;
};

}  // namespace hearth
