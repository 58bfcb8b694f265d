// The vocabulary as a trie over bytes, in the order of a depth-first walk: a subtree is a range of
// nodes, and its tokens are a range of a list. Immutable after creation; any thread may use it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/rounding.h"

namespace hearth::grammar {

using TokenId = std::uint32_t;

// Nodes [i + 1, end) are below node i. Node 0 is the root.
struct TrieNode {
  std::uint8_t byte = 0;
  std::uint16_t depth = 0;
  std::uint32_t end = 0;
  std::uint32_t tokens = 0;  // index of the first token at or below this node in a trie's list
};

// The nodes of a trie and its tokens in the same order. The tokens of node i itself are those from
// nodes[i].tokens to nodes[i + 1].tokens.
struct FlatTrie {
  struct Entry {
    std::string_view bytes;
    TokenId token = 0;
    std::uint32_t label = 0;
  };
  std::vector<TrieNode> nodes;
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> labels;  // of each token; empty if none were given

  static FlatTrie make(std::vector<Entry> entries, bool with_labels);
  std::uint32_t tokens_end(std::size_t node) const {
    return node + 1 < nodes.size() ? nodes[node + 1].tokens
                                   : static_cast<std::uint32_t>(tokens.size());
  }
  std::uint32_t subtree_tokens_end(std::size_t node) const {
    return nodes[node].end < nodes.size() ? nodes[nodes[node].end].tokens
                                          : static_cast<std::uint32_t>(tokens.size());
  }
};

// Bits by token id, 32 per word.
using MaskSpan = std::span<std::uint32_t>;
inline void set_bit(MaskSpan mask, TokenId id) { mask[id / 32] |= 1u << (id % 32); }
inline void clear_bit(MaskSpan mask, TokenId id) { mask[id / 32] &= ~(1u << (id % 32)); }

// Control tokens are no text: a grammar has to name them (`<[17]>` in GBNF and Lark's format). In a
// trie and in a matcher's text they are this byte, which UTF-8 does not have, and "[17]".
inline constexpr char kTokenMark = '\xFF';
std::string token_reference(TokenId id);

class TokenTrie {
 public:
  // `bytes` by token id: text, or token_reference(id) of a control token that grammars may name.
  // Others (unused ids) are empty. `end_tokens` may come where the text may end, and only there.
  static std::shared_ptr<const TokenTrie> create(std::vector<std::string> bytes,
                                                 std::vector<TokenId> end_tokens);

  std::size_t vocabulary_size() const { return bytes_.size(); }
  std::size_t mask_words() const { return divide_up(bytes_.size(), 32); }
  std::string_view bytes(TokenId id) const {
    return id < bytes_.size() ? std::string_view(bytes_[id]) : std::string_view();
  }
  bool is_end(TokenId id) const;
  std::span<const TokenId> end_tokens() const { return end_tokens_; }
  const FlatTrie& trie() const { return trie_; }
  // The most bytes of a token.
  std::uint32_t longest() const { return longest_; }

  // Tokens inside a JSON string of any content, between two characters: computed once, because most
  // masks of JSON are of this kind.
  struct StringTables {
    std::vector<std::uint32_t> inside;  // mask: the token keeps the string open
    // The tokens of `inside` by the number of characters that begin in them, most first.
    struct Sized {
      std::uint32_t characters = 0;
      TokenId token = 0;
    };
    std::vector<Sized> by_size;
    // Tokens that close the string: what follows the quote, labelled with the characters before it.
    FlatTrie closing;
    // Where in trie() a quote closes the string, by the string's text up to there.
    std::unordered_map<std::u32string, std::vector<std::uint32_t>> quotes;
  };
  const StringTables& strings() const { return strings_; }

 private:
  TokenTrie() = default;
  void make_string_tables();

  std::vector<std::string> bytes_;
  std::vector<TokenId> end_tokens_;
  FlatTrie trie_;
  StringTables strings_;
  std::uint32_t longest_ = 0;
};

}  // namespace hearth::grammar
