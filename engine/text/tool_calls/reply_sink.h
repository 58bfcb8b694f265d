// Collects the events of a reply. Joins neighbouring pieces, and drops the white space that models
// write around reasoning and calls. For one reply and one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/text/tool_calls/reply_event.h"

namespace hearth {

class ReplySink {
 public:
  // `calls`: the reply may have calls, so white space waits until it is known what follows.
  explicit ReplySink(bool calls) : calls_(calls) {}

  void content(std::string_view text);
  void reasoning(std::string_view text);
  // Even if there was none: white space after it is not content.
  void end_reasoning();
  // REQUIRES: no call is open.
  void begin_call(std::string_view name);
  // REQUIRES, for both: a call is open.
  void arguments(std::string_view text);
  void end_call(std::string_view warning = {});
  bool in_call() const { return in_call_; }
  // A limit cut the reply. What has been read as the beginning of a marker or of a call is dropped
  // from now on, not made content, if it has at least this many bytes.
  void cut_off(std::size_t shortest_dropped) {
    is_cut_off_ = true;
    shortest_dropped_ = shortest_dropped;
  }
  bool is_cut_off() const { return is_cut_off_; }
  // The reply has ended.
  void finish();

  // The events since the last time.
  std::vector<ReplyEvent> take() { return std::exchange(events_, {}); }

 private:
  void add(ReplyEvent::Kind kind, std::string_view text);
  void add_trimmed(ReplyEvent::Kind kind, std::string_view text);

  const bool calls_;
  std::vector<ReplyEvent> events_;
  std::string space_;  // white space that only counts if text follows
  bool skips_space_ = false, in_reasoning_ = false, in_call_ = false, is_cut_off_ = false;
  bool any_content_ = false;
  std::size_t shortest_dropped_ = 0;
  std::uint32_t begun_calls_ = 0;
};

inline constexpr std::string_view kReplySpace = " \t\r\n";
inline bool is_reply_space(char c) { return kReplySpace.find(c) != std::string_view::npos; }

// What calls whose arguments are not a JSON object end with.
inline constexpr std::string_view kArgumentsNotJson = "the arguments are not a JSON object";
inline constexpr std::string_view kCallCutOff = "the reply ended inside the call";

}  // namespace hearth
