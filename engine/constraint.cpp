#include "engine/constraint.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include <fmt/format.h>

#include "engine/scheduling/batch_plan.h"
#include "engine/text/tokenizer.h"
#include "runtime/rounding.h"

namespace hearth {
namespace {

// Processor time of this thread: waiting for a lock or for a processor does not count.
double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

Constraint::Constraint(const Options& options)
    : tokenizer_(*options.tokenizer),
      trie_(options.trie),
      mask_words_(options.vocabulary != 0 ? divide_up(size_t{options.vocabulary}, 32)
                                          : options.trie->mask_words()),
      ignore_end_(options.ignore_end),
      forces_(options.forces),
      most_seconds_(options.most_seconds),
      matcher_(options.grammar, options.trie),
      bits_(std::max(mask_words_, options.trie->mask_words())) {
  if (!options.after.text.empty()) trigger_.emplace(options.after, *trie_, tokenizer_);
  advance();
}

void Constraint::take(std::span<const TokenId> tokens, std::span<const TokenId> guesses,
                      std::span<const uint32_t> parents) {
  taken_.assign(tokens.begin(), tokens.end());
  guesses_.assign(guesses.begin(), guesses.end());
  parents_.assign(parents.begin(), parents.end());
}

void Constraint::fork_from(const Constraint& other) {
  matcher_ = other.matcher_;
  trigger_ = other.trigger_;
  fault_ = other.fault_;
}

void Constraint::advance() {
  const double begin = thread_seconds();
  follow();
  seconds_ = thread_seconds() - begin;
  if (seconds_ > most_seconds_ && !fault_)
    fault_ = "the grammar is too complex: finding the tokens that may follow takes too long";
}

void Constraint::follow() {
  masks_.clear();
  forced_.clear();
  complete_ = false;
  for (const TokenId token : taken_) {
    if (trigger_) {
      const std::optional<std::string> rest = trigger_->push(token);
      if (!rest) continue;
      trigger_.reset();
      if (rest->empty() || matcher_.accept_bytes(*rest)) continue;
    } else if (matcher_.accept(token)) {
      continue;
    }
    fault_ = matcher_.failed() ? "the grammar needs more states than it may have"
                               : fmt::format("token {} is outside the grammar", token);
    return;
  }
  trigger_ ? advance_before_trigger() : advance_grammar();
}

void Constraint::advance_grammar() {
  if (forces_) follow_forced();
  if (!add_mask(matcher_)) {
    guesses_.clear();
    parents_.clear();
    const bool can_end = matcher_.may_end();
    if (can_end && !forces_ && !ignore_end_) return;  // the mask has the end tokens
    complete_ = can_end;
    if (!complete_)
      fault_ = matcher_.failed()
                   ? "the grammar needs more states than it may have"
                   : "the grammar requires characters that no token of this model has";
    // A step may have been planned already; what it samples is not used.
    std::fill_n(masks_.begin(), mask_words_, ~0u);
    return;
  }
  follow_guesses();
}

// Nothing is forced, and guesses are kept as long as they do not complete the trigger.
void Constraint::advance_before_trigger() {
  add_mask(*trigger_);
  keep_guesses(*trigger_, [this](GrammarTrigger& state, TokenId guess) {
    if (state.push(guess)) return false;
    add_mask(state);
    return true;
  });
}

void Constraint::follow_forced() {
  forced_ = matcher_.forced_tokens([this](std::string_view text) { return encode(text); });
  for (const TokenId token : forced_) matcher_.accept(token);
  if (forced_.empty() || guesses_.empty()) return;
  // A chain that guessed the forced tokens right continues after them. A tree is not worth it.
  const bool agrees = parents_.empty() && guesses_.size() > forced_.size() &&
                      std::equal(forced_.begin(), forced_.end(), guesses_.begin());
  guesses_.erase(
      guesses_.begin(),
      agrees ? guesses_.begin() + static_cast<std::ptrdiff_t>(forced_.size()) : guesses_.end());
  parents_.clear();
}

void Constraint::follow_guesses() {
  keep_guesses(matcher_, [this](grammar::Matcher& state, TokenId guess) {
    if (!state.accept(guess)) return false;
    if (add_mask(state)) return true;
    // The text would be complete, which no row needs to sample.
    masks_.resize(masks_.size() - mask_words_);
    return false;
  });
}

// Keeps the guesses that follow what is kept, starting from the state `begin`. `follow(state,
// guess)` changes a state, adds the mask for what comes next and returns true, or does neither. End
// tokens are not kept: nothing follows them.
template <class State, class Follow>
void Constraint::keep_guesses(const State& begin, Follow follow) {
  std::vector<State> states;                                 // after each guess that is kept
  std::vector<uint32_t> places(guesses_.size(), kNoParent);  // among those that are kept
  std::vector<uint32_t> kept_parents;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < guesses_.size(); ++i) {
    const uint32_t parent = parents_.empty() ? (i == 0 ? kNoParent : i - 1) : parents_[i];
    const uint32_t from = parent == kNoParent ? kNoParent : places[parent];
    if (parent != kNoParent && from == kNoParent) continue;  // its parent was cut
    if (trie_->is_end(guesses_[i])) continue;
    State state = parent == kNoParent ? begin : states[from];
    if (!follow(state, guesses_[i])) continue;
    places[i] = kept;
    kept_parents.push_back(from);
    guesses_[kept++] = guesses_[i];
    states.push_back(std::move(state));
  }
  guesses_.resize(kept);
  if (!parents_.empty()) parents_ = std::move(kept_parents);
}

void Constraint::add_mask(const GrammarTrigger& trigger) {
  masks_.resize(masks_.size() + mask_words_, ~0u);
  trigger.mask(matcher_, std::span(masks_).last(mask_words_));
}

bool Constraint::add_mask(grammar::Matcher& matcher) {
  std::fill(bits_.begin(), bits_.end(), 0);
  matcher.mask(grammar::MaskSpan(bits_).first(trie_->mask_words()));
  masks_.insert(masks_.end(), bits_.begin(),
                bits_.begin() + static_cast<std::ptrdiff_t>(mask_words_));
  const std::span<uint32_t> mask = std::span(masks_).last(mask_words_);
  const auto set_end_tokens = [&](auto change) {
    for (const TokenId id : trie_->end_tokens())
      if (id / 32 < mask_words_) change(mask, id);
  };
  set_end_tokens(grammar::clear_bit);
  const bool goes_on = std::ranges::any_of(mask, [](uint32_t word) { return word != 0; });
  if (matcher.may_end() && !ignore_end_) set_end_tokens(grammar::set_bit);
  return goes_on;
}

std::vector<TokenId> Constraint::encode(std::string_view bytes) const {
  std::vector<TokenId> ids;
  while (!bytes.empty()) {
    const size_t mark = std::min(bytes.find(grammar::kTokenMark), bytes.size());
    const std::vector<TokenId> text = encode_text(bytes.substr(0, mark));
    ids.insert(ids.end(), text.begin(), text.end());
    bytes.remove_prefix(mark);
    if (bytes.empty()) break;
    // kTokenMark, then "[17]".
    const size_t end = bytes.find(']');
    TokenId id = 0;
    if (end == bytes.npos ||
        std::from_chars(bytes.data() + 2, bytes.data() + end, id).ec != std::errc())
      return {};
    ids.push_back(id);
    bytes.remove_prefix(end + 1);
  }
  return ids;
}

// The tokens of a text that follows others. Some tokenizers put a space before the first word of a
// text: it goes with the line break that is put before it here.
std::vector<TokenId> Constraint::encode_text(std::string_view text) const {
  if (text.empty()) return {};
  if (!tokenizer_.adds_space_prefix()) return tokenizer_.encode(text, {.add_bos = false});
  constexpr std::string_view kBefore = "\n";
  const std::vector<TokenId> ids =
      tokenizer_.encode(std::string(kBefore) + std::string(text), {.add_bos = false});
  std::string before;
  for (size_t i = 0; i < ids.size(); ++i) {
    before += tokenizer_.piece(ids[i]);
    if (before.ends_with(kBefore))
      return {ids.begin() + static_cast<std::ptrdiff_t>(i + 1), ids.end()};
  }
  return {};
}

}  // namespace hearth
