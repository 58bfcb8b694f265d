// Calls that write each argument on its own between markers, without JSON:
// <function=f><parameter=city>Paris</parameter></function> and the like. The arguments become a
// JSON object here; the tools' schemas say which of them are strings.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/text/tool_calls/call_reader.h"
#include "engine/text/tool_calls/marker_search.h"
#include "engine/text/tool_calls/tool.h"

namespace hearth {

struct ParameterCallsShape {
  std::string_view open, open_end;  // around a function's name
  std::string_view key, key_end;    // around an argument's name
  std::string_view value = {};      // before its value; empty: the value follows at once
  std::string_view value_end;       // after it
  std::string_view close;           // after all arguments
  std::string_view list_open = {}, list_close = {};  // around calls; empty: nothing
};

class ParameterCalls final : public CallReader {
 public:
  ParameterCalls(const ParameterCallsShape& shape, std::span<const Tool> tools);
  void push(char byte, ReplySink& sink) override;
  void finish(ReplySink& sink) override;

 private:
  enum class Place { kText, kName, kArguments, kKey, kBeforeValue, kValue };
  void push_text(char byte, ReplySink& sink);
  void push_name(char byte, ReplySink& sink);
  void next_part(std::size_t part, ReplySink& sink);
  void begin_value(ReplySink& sink);
  void add_to_value(std::string_view text, ReplySink& sink);
  void end_value(ReplySink& sink);

  const ParameterCallsShape shape_;
  const std::span<const Tool> tools_;
  Place place_ = Place::kText;
  MarkerSearch text_, name_end_, parts_, key_end_, value_, value_end_;
  std::string seen_;  // all bytes of a call that has not begun
  std::string name_, key_name_;
  std::string collected_;  // of a value: the bytes that have not been passed on
  ArgumentKind kind_ = ArgumentKind::kEither;
  bool value_begun_ = false, any_argument_ = false;
  std::string warning_;
};

}  // namespace hearth
