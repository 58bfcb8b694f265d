#include "engine/grammar/matcher.h"

#include <cassert>

#include "engine/grammar/workspace.h"

namespace hearth::grammar {

struct Matcher::Step {
  ParseState state;
  bool ended = false;
  std::size_t index = 0;
  std::shared_ptr<const Step> before;

  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  // A long text is a long chain; releasing it must not recurse.
  ~Step() {
    while (before && before.use_count() == 1) {
      std::shared_ptr<const Step> next = std::move(const_cast<Step&>(*before).before);
      before = std::move(next);
    }
  }
};

Matcher::Matcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie)
    : grammar_(std::move(grammar)), workspace_(grammar_->workspace(trie)) {
  auto first = std::make_shared<Step>();
  {
    const std::lock_guard lock(workspace_->mutex);
    first->state = workspace_->automaton.start();
  }
  last_ = std::move(first);
}

Matcher::~Matcher() = default;
Matcher::Matcher(const Matcher&) = default;
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher other) {
  std::swap(grammar_, other.grammar_);
  std::swap(workspace_, other.workspace_);
  std::swap(last_, other.last_);
  return *this;
}

void Matcher::push(std::shared_ptr<Step> step) {
  step->index = last_->index + 1;
  step->before = last_;
  last_ = std::move(step);
}

void Matcher::mask(MaskSpan bits) {
  assert(bits.size() == workspace_->trie->mask_words());
  if (last_->ended || last_->state.dead()) {
    std::fill(bits.begin(), bits.end(), 0);
    return;
  }
  const std::lock_guard lock(workspace_->mutex);
  workspace_->masks.compute(last_->state, bits);
}

bool Matcher::accept(TokenId token) {
  if (last_->ended) return false;
  if (workspace_->trie->is_end(token)) {
    if (!last_->state.may_end) return false;
    auto step = std::make_shared<Step>();
    step->state = last_->state;
    step->ended = true;
    push(std::move(step));
    return true;
  }
  return accept_bytes(workspace_->trie->bytes(token));
}

bool Matcher::accept_bytes(std::string_view bytes) {
  if (bytes.empty() || last_->ended) return false;
  auto step = std::make_shared<Step>();
  {
    const std::lock_guard lock(workspace_->mutex);
    ParseState from = last_->state;
    for (const char byte : bytes) {
      workspace_->automaton.step(from, static_cast<std::uint8_t>(byte), step->state);
      if (step->state.dead()) return false;
      std::swap(from, step->state);
    }
    step->state = std::move(from);
  }
  push(std::move(step));
  return true;
}

bool Matcher::allows(TokenId token) {
  Matcher probe = *this;
  return probe.accept(token);
}

void Matcher::rollback(std::size_t count) {
  assert(count <= last_->index);
  for (; count > 0 && last_->before; --count) {
    std::shared_ptr<const Step> before = last_->before;
    last_ = std::move(before);
  }
}

std::size_t Matcher::accepted() const { return last_->index; }
bool Matcher::may_end() const { return last_->state.may_end && !last_->ended; }
bool Matcher::ended() const { return last_->ended; }

bool Matcher::failed() const {
  const std::lock_guard lock(workspace_->mutex);
  return workspace_->automaton.exhausted();
}

std::string Matcher::forced(std::size_t limit) {
  std::string result;
  if (last_->ended) return result;
  const std::lock_guard lock(workspace_->mutex);
  Automaton& automaton = workspace_->automaton;
  ParseState at = last_->state, next;
  while (result.size() < limit) {
    const int byte = automaton.only_byte(at);
    if (byte < 0) break;
    result.push_back(static_cast<char>(byte));
    automaton.step(at, static_cast<std::uint8_t>(byte), next);
    std::swap(at, next);
  }
  // Half of a control token cannot be written.
  const std::size_t mark = result.rfind(kTokenMark);
  if (mark != result.npos && result.find(']', mark) == result.npos) result.resize(mark);
  return result;
}

std::vector<TokenId> Matcher::forced_tokens(
    const std::function<std::vector<TokenId>(std::string_view)>& encode) {
  const std::string bytes = forced();
  if (bytes.empty()) return {};
  std::vector<TokenId> tokens = encode(bytes);
  // The tokens must spell the bytes; a tokenizer that adds or normalizes is of no use here.
  std::size_t spelt = 0;
  for (const TokenId token : tokens) {
    const std::string_view text = workspace_->trie->bytes(token);
    if (text.empty() || bytes.compare(spelt, text.size(), text) != 0) return {};
    spelt += text.size();
  }
  if (spelt != bytes.size()) return {};
  // A last token that could have become a longer one with what follows is left to the model.
  const FlatTrie& trie = workspace_->trie->trie();
  while (!tokens.empty()) {
    Matcher probe = *this;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) probe.accept(tokens[i]);
    const std::string_view last = workspace_->trie->bytes(tokens.back());
    bool longer = false;
    std::uint32_t node = 0;
    for (const char byte : last) {
      std::uint32_t child = node + 1;
      while (child < trie.nodes[node].end &&
             trie.nodes[child].byte != static_cast<std::uint8_t>(byte))
        child = trie.nodes[child].end;
      node = child;
    }
    const std::uint32_t end = trie.subtree_tokens_end(node);
    for (std::uint32_t k = trie.tokens_end(node); k < end && !longer; ++k)
      longer = probe.allows(trie.tokens[k]);
    if (!longer) break;
    tokens.pop_back();
  }
  return tokens;
}

}  // namespace hearth::grammar
