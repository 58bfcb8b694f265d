// What matchers of one grammar and one vocabulary share: the states and masks found so far.
#pragma once

#include <memory>
#include <mutex>

#include "engine/grammar/automaton.h"
#include "engine/grammar/token_mask.h"
#include "engine/grammar/token_trie.h"

namespace hearth::grammar {

struct Workspace {
  Workspace(std::shared_ptr<const GrammarData> data, std::shared_ptr<const TokenTrie> vocabulary)
      : trie(std::move(vocabulary)), automaton(std::move(data)), masks(trie, automaton) {}

  std::mutex mutex;  // protects what follows
  std::shared_ptr<const TokenTrie> trie;
  Automaton automaton;
  TokenMasks masks;
};

}  // namespace hearth::grammar
