#include "engine/text/jinja/template.h"

#include <algorithm>
#include <new>

#include <fmt/format.h>

#include "engine/text/jinja/from_json.h"
#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/parser.h"
#include "engine/text/utf8.h"

namespace hearth::jinja {
namespace {

// A reason may quote the template or the data: one line of moderate length, no broken characters.
Error error_of(const Failure& failure, std::uint32_t line) {
  std::string reason = failure.reason;
  std::ranges::replace_if(
      reason, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  if (reason.size() > kMaxReasonBytes) reason.resize(kMaxReasonBytes);
  reason.resize(utf8_valid_prefix(reason));
  return {ErrorKind::kInvalid,
          fmt::format("line {}: {}", failure.line != 0 ? failure.line : line, reason)};
}

}  // namespace

Template::Template(std::unique_ptr<const Syntax> syntax) : syntax_(std::move(syntax)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::parse(std::string_view source) {
  try {
    return Template(parse_template(source));
  } catch (const Failure& failure) {
    return error_of(failure, 1);
  }
}

Result<Rendering> Template::render(std::span<const Variable> variables,
                                   const RenderOptions& options) const {
  Budget budget(options.limits, options.cancelled);
  Heap heap(budget);
  std::uint32_t line = 1;
  try {
    Interpreter interpreter(*syntax_, heap, options.now);
    try {
      for (const Variable& variable : variables)
        interpreter.set_variable(variable.name, from_json(heap, *variable.value, variable.origin,
                                                          options.template_words));
      return interpreter.run();
    } catch (const Failure&) {
      line = interpreter.line();
      throw;
    }
  } catch (const Failure& failure) {
    return error_of(failure, line);
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kOutOfMemory,
                 fmt::format("line {}: there is no memory left for the template", line)};
  }
}

}  // namespace hearth::jinja
