// Keeps banned strings out of a request's text. Tokens that may become part of one are held back.
// When a banned string is complete, the tokens from its first one on are taken back, and the
// request continues with that first token banned at that place, and nowhere else.
//
// A place is the number of tokens generated before it. Bans at a place add up each time tokens are
// taken back to it. They are forgotten when earlier tokens are taken back, because the text before
// the place has changed. To make sure that a request ends, the number of times that tokens are
// taken back is limited; after that the request stops before the string.
//
// Used by ActiveRequest.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generation.h"
#include "engine/text/banned_strings.h"
#include "engine/text/detokenizer.h"
#include "engine/text/stop_strings.h"

namespace hearth {

class BanGuard {
 public:
  // Most tokens that are banned at one place.
  static constexpr size_t kMostBansPerPlace = 64;

  // `detokenizer` and `stop` are the request's, before its first token. `max_new_tokens` limits how
  // often tokens are taken back.
  BanGuard(std::vector<std::string> banned, const Detokenizer& detokenizer, StopStrings stop,
           uint32_t max_new_tokens);

  // What the request makes of its tokens' text, to be restored when tokens are taken back.
  struct Text {
    std::optional<Detokenizer>& detokenizer;
    StopStrings& stop;
  };
  // Adds a token. `piece` is its part of the text, token.text what stop strings leave of it.
  // Returns whether tokens were taken back: then `text` is as it was before the first of them.
  bool push(GeneratedToken token, std::string_view piece, const Text& text);
  // The tokens that were added and not taken back.
  uint32_t tokens() const { return released_ + static_cast<uint32_t>(held_.size()); }
  // Tokens were taken back too often: the request must end.
  bool gave_up() const { return gave_up_; }

  // Nothing more follows, so that nothing need be held back.
  void finish() { certain_ = held_.size(); }
  // The next token that is not held back; empty if there is none.
  std::optional<GeneratedToken> release();

  // The tokens banned at a place.
  std::span<const TokenId> bans_at(uint32_t place) const;

 private:
  void take_back(size_t first, const Text& text);

  BannedStrings strings_;
  // As of the released tokens.
  Detokenizer detokenizer_;
  StopStrings stop_;
  std::deque<GeneratedToken> held_;
  size_t certain_ = 0;      // of the held tokens: those that can be released
  size_t shown_bytes_ = 0;  // of all tokens' text that stop strings leave
  uint32_t released_ = 0;
  std::map<uint32_t, std::vector<TokenId>> bans_;  // by place
  uint64_t take_backs_left_;
  bool gave_up_ = false;
};

}  // namespace hearth
