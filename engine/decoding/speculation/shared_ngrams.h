// Recent outputs of requests that have ended, for prompt lookup across requests: an answer that
// repeats part of an earlier one is guessed from there.
//
// Every output belongs to an owner, and is found only by requests of the same owner: whether a
// guess is right shows in the time that an answer takes, so a client could otherwise test what
// others were told. Memory is allocated once, 24 bytes per token rounded up to a power of two; the
// oldest output is forgotten when new output needs its room. Used by the engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

class SharedNgrams {
 public:
  struct Options {
    std::uint32_t tokens = 1 << 16;  // kept, at least; rounded up to a power of two
    // Shortest match, in tokens, that is trusted. More than within one text: among many texts,
    // short matches are chance.
    std::uint32_t min_match = 4;
    std::uint32_t max_match = 32;  // matches are not compared beyond this
  };

  explicit SharedNgrams(const Options& options);

  // Takes in the output of a request. Of one that is longer than the table, the end.
  void add(std::uint32_t owner, std::span<const std::uint32_t> output);

  // A place in an output after which something follows, and how many tokens before it match.
  struct Match {
    std::uint64_t place = 0;
    std::uint32_t length = 0;  // 0: there is no such place
  };
  // The place with the most tokens that `text` ends with, too; of equally good ones the latest.
  Match find(std::uint32_t owner, std::span<const std::uint32_t> text) const;
  // Appends up to `most` tokens that follow there. REQUIRES: nothing was added since find().
  void follow(const Match& match, std::uint32_t most, std::vector<std::uint32_t>& tokens) const;

  std::size_t capacity() const { return entries_.size(); }

 private:
  static constexpr std::uint32_t kMaxCandidates = 16;
  static constexpr std::uint32_t kBreak = 0xffffffff;  // between two outputs; no token's id

  // Tokens are numbered in the order in which they are written. A place is the number of the token
  // that follows it; 0 is none.
  struct Entry {
    std::uint32_t token = kBreak, owner = 0;
    std::uint64_t previous =
        0;  // the place before, with the same hash, of the one after this token
  };

  const Entry& entry(std::uint64_t number) const { return entries_[number & (capacity() - 1)]; }
  bool kept(std::uint64_t number) const { return number + capacity() >= written_; }
  void write(std::uint32_t owner, std::uint32_t token);
  std::size_t bucket(std::uint32_t owner, std::span<const std::uint32_t> tokens) const;
  std::uint32_t match_length(std::uint64_t place, std::span<const std::uint32_t> text) const;

  const Options options_;
  std::vector<Entry> entries_;        // a ring
  std::vector<std::uint64_t> heads_;  // the latest place by hash of the min_match tokens before it
  std::uint64_t written_ = 0;
};

}  // namespace hearth
