#include "tools/commands/check_numbers.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"

namespace hearth {
namespace {

template <class Number>
bool reads_as(std::string_view text, Number& number) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && !text.empty();
}

// To CLI11 an octal one, to everybody else a number with a zero before it.
bool has_leading_zero(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

// `kind` is what CLI11 calls the option's type, and after that what is asked of it.
bool is_number(std::string_view text, std::string_view kind) {
  uint64_t whole = 0;
  int64_t sign = 0;
  double real = 0;
  if (kind.starts_with("UINT"))
    return (reads_as(text, whole) && !has_leading_zero(text)) || text.starts_with("0x");
  if (kind.starts_with("INT")) return reads_as(text, sign) && !has_leading_zero(text);
  if (kind.starts_with("FLOAT")) return reads_as(text, real) && std::isfinite(real);
  return true;
}

}  // namespace

Status check_numbers(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options())
    for (const std::string& text : option->results())
      if (!is_number(text, option->get_type_name()))
        return Error{ErrorKind::kInvalid, fmt::format("{}: {} is not a number that it takes",
                                                      option->get_name(), in_quotes(text))};
  // Groups of options are apps within it, without a name.
  for (const CLI::App* group :
       command.get_subcommands([](const CLI::App* app) { return app->get_name().empty(); }))
    HEARTH_TRY(check_numbers(*group));
  return {};
}

}  // namespace hearth
