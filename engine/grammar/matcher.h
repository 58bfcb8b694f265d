// Follows one text through a grammar, token by token. Copying one takes constant time and shares
// everything with the copy; so does taking tokens back.
//
// A matcher belongs to one thread at a time. Matchers of the same grammar lock what they share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/grammar.h"
#include "engine/grammar/token_trie.h"

namespace hearth::grammar {

class Matcher {
 public:
  Matcher(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie);
  ~Matcher();
  Matcher(const Matcher&);
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher);

  // Which tokens may follow: one bit per id. No bit is set if the text has ended, or failed().
  // REQUIRES: bits.size() == trie->mask_words().
  void mask(MaskSpan bits);
  // Takes a token; false, and nothing changes, if it may not follow.
  bool accept(TokenId token);
  // The same for bytes, which count as one token for rollback().
  bool accept_bytes(std::string_view bytes);
  // Whether accept() would take the token; by its bytes alone, without a mask.
  bool allows(TokenId token);
  // Takes back the last tokens. REQUIRES: count <= accepted().
  void rollback(std::size_t count);
  std::size_t accepted() const;
  // Whether the text is complete here. It may still continue.
  bool may_end() const;
  // Whether an end token has been accepted.
  bool ended() const;
  // The bytes that have to come next, as far as there is no choice; at most `limit`.
  std::string forced(std::size_t limit = 4096);
  // The tokens that have to come next: `encode` of the forced bytes, up to where a longer token
  // could also fit what may follow.
  std::vector<TokenId> forced_tokens(
      const std::function<std::vector<TokenId>(std::string_view)>& encode);
  // Whether the grammar needed more states than there may be. Nothing is accepted any more.
  bool failed() const;

 private:
  struct Step;
  void push(std::shared_ptr<Step> step);

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<Workspace> workspace_;
  std::shared_ptr<const Step> last_;
};

}  // namespace hearth::grammar
