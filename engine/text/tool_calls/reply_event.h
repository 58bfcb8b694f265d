// What a reply consists of, in the order in which the model writes it.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

struct ReplyEvent {
  enum class Kind : std::uint8_t {
    kContent,    // text for the user
    kReasoning,  // text that leads up to it
    kCallBegin,  // text: the function's name
    kArguments,  // text: a piece of the call's arguments, which together are JSON
    kCallEnd,    // text: a warning if the arguments are not a JSON object, otherwise empty
  };
  Kind kind = Kind::kContent;
  std::uint32_t call = 0;  // which call of the reply, from 0
  std::string text;

  bool operator==(const ReplyEvent&) const = default;
};

}  // namespace hearth
