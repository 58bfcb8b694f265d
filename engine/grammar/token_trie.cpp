#include "engine/grammar/token_trie.h"

#include <algorithm>

#include "engine/grammar/string_scan.h"

namespace hearth::grammar {

std::string token_reference(TokenId id) {
  return std::string(1, kTokenMark) + "[" + std::to_string(id) + "]";
}

FlatTrie FlatTrie::make(std::vector<Entry> entries, bool with_labels) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.token < b.token;
  });
  FlatTrie trie;
  trie.nodes.push_back({});
  std::vector<std::uint32_t> path = {0};  // the open nodes
  std::string_view last;
  for (const Entry& entry : entries) {
    const std::string_view bytes = entry.bytes;
    const auto shared = static_cast<std::size_t>(
        std::mismatch(last.begin(), last.end(), bytes.begin(), bytes.end()).first - last.begin());
    while (path.size() > shared + 1) {
      trie.nodes[path.back()].end = static_cast<std::uint32_t>(trie.nodes.size());
      path.pop_back();
    }
    for (std::size_t i = shared; i < bytes.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(trie.nodes.size()));
      trie.nodes.push_back({.byte = static_cast<std::uint8_t>(bytes[i]),
                            .depth = static_cast<std::uint16_t>(i + 1),
                            .end = 0,
                            .tokens = static_cast<std::uint32_t>(trie.tokens.size())});
    }
    trie.tokens.push_back(entry.token);
    if (with_labels) trie.labels.push_back(entry.label);
    last = bytes;
  }
  for (const std::uint32_t open : path)
    trie.nodes[open].end = static_cast<std::uint32_t>(trie.nodes.size());
  return trie;
}

std::shared_ptr<const TokenTrie> TokenTrie::create(std::vector<std::string> bytes,
                                                   std::vector<TokenId> end_tokens) {
  auto result = std::shared_ptr<TokenTrie>(new TokenTrie());
  // No text has the mark's byte in it, and tokens of single bytes must not spell a control token.
  for (TokenId id = 0; id < bytes.size(); ++id)
    if (bytes[id].find(kTokenMark) != std::string::npos && bytes[id] != token_reference(id))
      bytes[id].clear();
  result->bytes_ = std::move(bytes);
  std::sort(end_tokens.begin(), end_tokens.end());
  result->end_tokens_ = std::move(end_tokens);
  std::vector<FlatTrie::Entry> entries;
  for (TokenId id = 0; id < result->bytes_.size(); ++id) {
    const std::string& text = result->bytes_[id];
    // No token of a published vocabulary is near this long; a trie's depth has 16 bits.
    if (text.empty() || text.size() > 4096 || result->is_end(id)) continue;
    entries.push_back({text, id});
    result->longest_ = std::max(result->longest_, static_cast<std::uint32_t>(text.size()));
  }
  result->trie_ = FlatTrie::make(std::move(entries), false);
  result->make_string_tables();
  return result;
}

bool TokenTrie::is_end(TokenId id) const {
  return std::binary_search(end_tokens_.begin(), end_tokens_.end(), id);
}

void TokenTrie::make_string_tables() {
  strings_.inside.assign(mask_words(), 0);
  std::vector<FlatTrie::Entry> closing;
  for (TokenId id = 0; id < bytes_.size(); ++id) {
    const std::string_view text = bytes_[id];
    if (text.empty() || text.size() > 4096 || is_end(id)) continue;
    const StringScan scan = scan_string(text);
    if (scan.kind == StringScan::Kind::kOpen) {
      set_bit(strings_.inside, id);
      strings_.by_size.push_back({scan.characters, id});
    } else if (scan.kind == StringScan::Kind::kClosed) {
      closing.push_back({text.substr(scan.bytes), id, scan.characters});
    }
  }
  std::sort(strings_.by_size.begin(), strings_.by_size.end(), [](const auto& a, const auto& b) {
    return a.characters != b.characters ? a.characters > b.characters : a.token < b.token;
  });
  strings_.closing = FlatTrie::make(std::move(closing), true);
  // The same quotes as nodes of the trie. A node is found by any token below it.
  const std::vector<TrieNode>& nodes = trie_.nodes;
  for (std::uint32_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].byte != '"') continue;
    const std::string_view text = bytes_[trie_.tokens[nodes[i].tokens]];
    const StringScan scan = scan_string(text);
    if (scan.kind == StringScan::Kind::kClosed && scan.bytes == nodes[i].depth)
      strings_.quotes[scan.text].push_back(i);
  }
}

}  // namespace hearth::grammar
