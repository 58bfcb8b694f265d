#include "engine/beam_group.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "engine/active_request.h"
#include "engine/text/tokenizer.h"

namespace hearth {
namespace {

bool wants_stops(const GenerationRequest& request) {
  return std::ranges::any_of(request.stop, [](const std::string& stop) { return !stop.empty(); });
}

constexpr uint32_t kNoMember = 0xffffffff;

}  // namespace

BeamGroup::BeamGroup(const GenerationRequest& request, const Place& place)
    : options_(request.beam),
      place_(place),
      ignore_end_(request.ignore_end),
      top_logprobs_(request.sampling.top_logprobs),
      search_(options_, place.max_new_tokens),
      rows_(1),
      members_{0} {
  if (place.tokenizer != nullptr && wants_stops(request))
    readers_.push_back({Detokenizer(*place.tokenizer), StopStrings(request.stop)});
}

bool BeamGroup::take(RequestId member, std::span<const params::TokenLogprob> top) {
  const auto seat = static_cast<uint32_t>(member - place_.first);
  const auto beam = static_cast<size_t>(std::ranges::find(members_, seat) - members_.begin());
  assert(beam < members_.size() && !rows_[beam].taken);
  Row& row = rows_[beam];
  row.taken = true;
  row.top.clear();
  for (const params::TokenLogprob& entry : top)
    // A grammar may allow fewer tokens than there is room for.
    if (entry.id != params::kNoToken && std::isfinite(entry.logprob))
      row.top.push_back({.id = entry.id, .logprob = entry.logprob});
  return std::ranges::all_of(rows_, &Row::taken);
}

bool BeamGroup::ends(uint32_t beam, TokenId token) const {
  if (place_.tokenizer == nullptr) return false;
  if (!ignore_end_ && place_.tokenizer->ends_generation(token)) return true;
  if (readers_.empty()) return false;
  Reader reader = readers_[beam];
  reader.stop.push(reader.detokenizer.push(token));
  return reader.stop.found();
}

void BeamGroup::add_candidates(uint32_t beam) {
  for (const TopLogprob& entry : rows_[beam].top)
    candidates_.push_back(
        {.beam = beam, .token = entry.id, .logprob = entry.logprob, .ends = ends(beam, entry.id)});
}

bool BeamGroup::advance() {
  candidates_.clear();
  for (uint32_t beam = 0; beam < rows_.size(); ++beam) add_candidates(beam);
  const uint32_t nodes_before = search_.nodes();
  std::vector<uint32_t> nodes;  // of the beams so far
  for (const BeamSearch::Beam& beam : search_.running()) nodes.push_back(beam.node);
  const bool continues = search_.advance(candidates_);
  if (top_logprobs_ > 0) keep_top(nodes_before, nodes);
  if (!continues) return false;
  if (!readers_.empty()) {
    std::vector<Reader> readers;
    for (const BeamSearch::Beam& beam : search_.running()) {
      readers.push_back(readers_[beam.parent]);
      Reader& reader = readers.back();
      reader.stop.push(reader.detokenizer.push(search_.node(beam.node).token));
    }
    // A detokenizer cannot be assigned.
    readers_.swap(readers);
  }
  assign_members();
  rows_.resize(search_.running().size());
  for (Row& row : rows_) row.taken = false;
  return true;
}

// Remembers the most probable tokens at the place of each new node. `nodes` are those of the beams
// before.
void BeamGroup::keep_top(uint32_t nodes_before, std::span<const uint32_t> nodes) {
  tops_.resize(search_.nodes());
  for (uint32_t node = nodes_before; node < search_.nodes(); ++node) {
    const auto beam = std::ranges::find(nodes, search_.node(node).before) - nodes.begin();
    std::vector<TopLogprob>& top = tops_[node];
    top = rows_[static_cast<size_t>(beam)].top;
    top.resize(std::min<size_t>(top.size(), top_logprobs_));
  }
}

// The first beam that continues another one takes over its member; the others become forks, in
// the members that are not continued.
void BeamGroup::assign_members() {
  const std::span<const BeamSearch::Beam> running = search_.running();
  std::vector<bool> taken(options_.beams, false);
  std::vector<uint32_t> next(running.size(), kNoMember);
  for (size_t i = 0; i < running.size(); ++i) {
    const uint32_t member = members_[running[i].parent];
    if (taken[member]) continue;
    taken[member] = true;
    next[i] = member;
  }
  forks_.clear();
  tokens_.clear();
  masks_ready_ = 0;
  uint32_t unused = 0;
  for (size_t i = 0; i < running.size(); ++i) {
    if (next[i] == kNoMember) {
      while (taken[unused]) ++unused;
      taken[unused] = true;
      next[i] = unused;
      forks_.push_back({.member = member(unused), .parent = member(members_[running[i].parent])});
    }
    tokens_.push_back({.member = member(next[i]), .token = search_.node(running[i].node).token});
  }
  members_ = std::move(next);
}

std::vector<GeneratedToken> BeamGroup::text(RequestId member) const {
  std::vector<GeneratedToken> tokens;
  uint32_t node = search_.finished()[member - place_.first].node;
  while (node != BeamSearch::kNoNode) {
    const BeamSearch::Node& at = search_.node(node);
    GeneratedToken& token = tokens.emplace_back();
    token.id = at.token;
    token.logprob = at.logprob;
    if (top_logprobs_ > 0) token.top = tops_[node];
    node = at.before;
  }
  std::ranges::reverse(tokens);
  return tokens;
}

float BeamGroup::score(RequestId member) const {
  return static_cast<float>(search_.finished()[member - place_.first].score);
}

void BeamGroup::end(FinishReason reason, std::string message) {
  if (ended()) return;
  reason_ = reason;
  message_ = std::move(message);
}

Result<SamplingOptions> beam_sampling(const GenerationRequest& request,
                                      const Tokenizer* tokenizer) {
  const BeamOptions& beam = request.beam;
  const SamplingOptions& asked = request.sampling;
  if (!(beam.length_penalty >= -100 && beam.length_penalty <= 100))
    return invalid("the length penalty of a beam search must be between -100 and 100");
  if (asked.repetition_penalty != 1 || asked.presence_penalty != 0 || asked.frequency_penalty != 0)
    return invalid(
        "beam search cannot be combined with a repetition, presence or frequency penalty");
  if (request.grammar != nullptr && request.ignore_end)
    return invalid("beam search with a grammar cannot ignore end tokens");
  if (!request.banned_strings.empty())
    return invalid("beam search cannot be combined with banned strings");
  if (request.prompt_logprobs || !request.generate)
    return invalid("beam search does not report the prompt's log-probabilities");
  // Every beam needs as many tokens that do not end the text as there are beams.
  const size_t ending = tokenizer != nullptr && !request.ignore_end
                            ? tokenizer->vocabulary().end_of_generation.size()
                            : 0;
  // A stop string may be completed by many tokens; then the least probable beams may be missed.
  const size_t needed = wants_stops(request) ? kMaxTopLogprobs : beam.beams + ending;
  if (beam.beams + ending > kMaxTopLogprobs)
    return invalid(
        fmt::format("{} beams are more than the {} that fit with the model's {} end tokens",
                    beam.beams, ending < kMaxTopLogprobs ? kMaxTopLogprobs - ending : 0, ending));
  SamplingOptions sampling{.temperature = 0};
  sampling.top_logprobs = std::max(static_cast<uint32_t>(needed), asked.top_logprobs);
  return sampling;
}

Result<std::vector<BeamRequests>> add_beams(std::vector<GenerationRequest>& requests) {
  std::vector<BeamRequests> searches;
  for (size_t first = 0; first < requests.size(); ++first) {
    const uint32_t beams = requests[first].beam.beams;
    if (beams <= 1) continue;
    if (beams > kMaxBeams)
      return invalid(fmt::format("{} beams are more than the limit of {}", beams, kMaxBeams));
    size_t end = first + 1;
    while (end < requests.size() && requests[end].forks_first) ++end;
    const size_t returned = end - first;
    if (returned > beams)
      return invalid(
          fmt::format("{} texts are more than the {} beams of a search", returned, beams));
    searches.push_back(
        {.first = first, .returned = static_cast<uint32_t>(returned), .beams = beams});
    const GenerationRequest copy = requests[first];
    requests.insert(requests.begin() + static_cast<std::ptrdiff_t>(end), beams - returned, copy);
    first += beams - 1;
  }
  return searches;
}

bool is_hidden_beam(std::span<const BeamRequests> searches, size_t index) {
  return std::ranges::any_of(searches, [&](const BeamRequests& search) {
    return index >= search.first + search.returned && index < search.first + search.beams;
  });
}

void join_beams(std::span<const BeamRequests> searches, const Tokenizer* tokenizer,
                std::span<const std::unique_ptr<ActiveRequest>> requests) {
  for (const BeamRequests& search : searches) {
    const ActiveRequest& first = *requests[search.first];
    const auto group = std::make_shared<BeamGroup>(
        first.request(), BeamGroup::Place{.first = first.id(),
                                          .returned = search.returned,
                                          .max_new_tokens = first.max_new_tokens(),
                                          .tokenizer = tokenizer});
    for (uint32_t i = 0; i < search.beams; ++i) requests[search.first + i]->join(group);
  }
}

}  // namespace hearth
