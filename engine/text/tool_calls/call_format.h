// A model family's way of writing calls. One file per format (format_*.cpp); reply_format.cpp has
// the list. Plain data and pure functions.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tool_calls/call_reader.h"
#include "engine/text/tool_calls/fixed_text.h"
#include "engine/text/tool_calls/tool.h"

namespace hearth {

struct CallFormat {
  std::string_view name;  // "hermes"
  // The texts that surround calls. Some are control tokens, whose text a reply usually leaves out.
  std::vector<std::string_view> markers;
  // Whether a chat template is of this format.
  bool (*fits)(std::string_view chat_template) = nullptr;
  // REQUIRES: the tools outlive the reader.
  std::unique_ptr<CallReader> (*make_reader)(std::span<const Tool> tools) = nullptr;

  // For grammars: what stands before, between and after the calls of a reply, and a call itself as
  // an expression in Lark's format, which is empty if calls of this tool cannot be enforced.
  std::string_view calls_open = {}, calls_between = {}, calls_close = {};
  std::string (*call_rule)(const Tool& tool, const FixedText& fixed) = nullptr;
  // The marker that calls_open begins with, after which only calls can follow. Empty: there is
  // none.
  std::string_view trigger = {};
  // There is no marker: a reply that begins with `trigger`, or with the tag and that, is a call.
  bool trigger_opens_call = false;
  std::string_view trigger_tag = {};
  // The format has a way to write several calls in one reply.
  bool several = true;
};

// The formats. Hermes is Qwen's, too.
const CallFormat& deepseek_format();
const CallFormat& gemma_format();
const CallFormat& generic_format();
const CallFormat& glm_format();
const CallFormat& harmony_format();
const CallFormat& hermes_format();
const CallFormat& llama3_format();
const CallFormat& mistral_format();
const CallFormat& mistral_list_format();
const CallFormat& phi_format();
const CallFormat& qwen_coder_format();

inline bool mentions(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

}  // namespace hearth
