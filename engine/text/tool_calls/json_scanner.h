// Follows one JSON object that arrives byte by byte, without keeping it. Tells where its members
// begin and end, so that a value can be passed on while it is being written. For one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

class JsonScanner {
 public:
  enum class State : std::uint8_t {
    kOpen,     // the object may continue
    kDone,     // the last byte closed it
    kInvalid,  // the last byte cannot follow; no more bytes are read
  };
  // White space before the object is skipped. REQUIRES: the state is kOpen.
  State push(char byte);
  State state() const { return state_; }

  // Whether all of it is JSON as the standard has it. Models write line breaks into strings; those
  // are read, but make the object unclean.
  bool is_clean() const { return clean_; }

  // The key of the outer object's current member, as written between its quotes.
  const std::string& key() const { return key_; }
  // Whether the last byte is part of the value of a member of the outer object.
  bool in_member() const { return in_member_; }
  // Whether such a value ended with the last byte, or just before it.
  bool member_ended() const { return member_ended_; }

 private:
  enum class Expect : std::uint8_t { kObject, kKeyOrEnd, kKey, kColon, kValue, kValueOrEnd, kNext };
  State string_byte(char byte);
  State structure_byte(char byte);
  State begin_value(char byte);
  State close(char byte);
  void end_value();
  State invalid() { return state_ = State::kInvalid; }

  State state_ = State::kOpen;
  Expect expect_ = Expect::kObject;
  std::vector<char> closers_;  // of the open objects and lists, innermost last
  std::string scalar_;         // a number or word that is being read
  std::string key_;
  std::uint8_t escape_left_ = 0;  // bytes of an escape still to come
  bool hex_ = false;              // they are hexadecimal digits
  bool in_string_ = false, string_is_key_ = false;
  bool clean_ = true, in_member_ = false, member_ended_ = false;
};

// Appends text as it is written inside a JSON string.
void append_json_escaped(std::string& out, std::string_view text);

}  // namespace hearth
