#include "engine/text/template_limits.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>

namespace hearth {
namespace {

using minja::ArgumentsValue;
using minja::Context;
using minja::Value;
using Clock = std::chrono::steady_clock;

constexpr auto kMaxTime = std::chrono::seconds(2);
constexpr std::size_t kMaxStackBytes = 1 << 20;
constexpr int kMaxListDepth = 32;
constexpr std::size_t kMaxNodes = 1 << 22;       // values looked at, over the whole run
constexpr std::size_t kMaxTextBytes = 64 << 20;  // per megabyte of input
constexpr std::int64_t kMaxInteger = std::int64_t{1} << 40;
constexpr std::int64_t kMaxRange = 10'000;
constexpr std::int64_t kMaxIndent = 64;

[[noreturn]] void refuse(const char* what) { throw std::runtime_error(what); }

class Limiter {
 public:
  explicit Limiter(const TemplateLimits& limits)
      : limits_(limits),
        deadline_(Clock::now() + kMaxTime),
        stack_(here()),
        text_left_(kMaxTextBytes * (limits.input_bytes / (1 << 20) + 1)) {}

  void tick() {
    if (Clock::now() > deadline_) refuse("the template runs for too long");
    const std::uintptr_t now = here();
    if ((now > stack_ ? now - stack_ : stack_ - now) > kMaxStackBytes)
      refuse("the template calls itself too often");
  }

  // Containers hold no functions: those of a loop do not outlive it.
  void check(const Value& value, int depth = 0) {
    if (nodes_++ > kMaxNodes) refuse("the template handles too many values");
    if (depth > kMaxListDepth) refuse("the template makes a list in a list too often");
    if (value.is_callable()) {
      if (depth > 0) refuse("the template keeps a function");
    } else if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) check(value.at(i), depth + 1);
    } else if (value.is_object()) {
      for (const Value& key : Value(value).keys()) check(value.at(key), depth + 1);
    } else if (value.is_string()) {
      spend(value.size());
    } else if (value.is_number_integer() && std::abs(value.get<std::int64_t>()) > kMaxInteger) {
      refuse("the template handles a number that is too large");
    }
  }

  // Every turn of a loop may write all of the template's own text.
  void check_items(const Value& value) {
    check(value);
    if (value.is_array() || value.is_object() || value.is_string())
      spend(value.size() * limits_.template_bytes / 8);
  }

  Value copy(const Value& value) {
    check(value);
    return copied(value);
  }

 private:
  static std::uintptr_t here() {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  }

  void spend(std::size_t bytes) {
    if (bytes > text_left_) refuse("the template makes too much text");
    text_left_ -= bytes;
  }

  static Value copied(const Value& value) {
    if (value.is_array()) {
      Value result = Value::array();
      for (std::size_t i = 0; i < value.size(); ++i) result.push_back(copied(value.at(i)));
      return result;
    }
    if (value.is_object() && !value.is_callable()) {
      Value result = Value::object();
      for (const Value& key : Value(value).keys()) result.set(key, copied(value.at(key)));
      return result;
    }
    return value;
  }

  TemplateLimits limits_;
  Clock::time_point deadline_;
  std::uintptr_t stack_;
  std::size_t text_left_;
  std::size_t nodes_ = 0;
};

Value range(ArgumentsValue& arguments) {
  std::array<std::int64_t, 3> numbers = {0, 0, 1};  // start, end, step
  if (!arguments.kwargs.empty() || arguments.args.empty() || arguments.args.size() > 3)
    refuse("range() takes one to three numbers");
  for (std::size_t i = 0; i < arguments.args.size(); ++i)
    numbers[arguments.args.size() == 1 ? 1 : i] = arguments.args[i].get<std::int64_t>();
  const auto [start, end, step] = numbers;
  for (const std::int64_t number : numbers)
    if (number < -kMaxInteger || number > kMaxInteger) refuse("range() of a number too large");
  if (step == 0) refuse("range() with a step of 0");
  if ((end - start) / step > kMaxRange) refuse("range() is too long");
  Value result = Value::array();
  for (std::int64_t i = start; step > 0 ? i < end : i > end; i += step) result.push_back(Value(i));
  return result;
}

Value time_text(ArgumentsValue& arguments, std::time_t now) {
  if (arguments.args.size() != 1 || !arguments.args[0].is_string())
    refuse("strftime_now() takes a format");
  const auto format = arguments.args[0].get<std::string>();
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 256> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), format.c_str(), &parts);
  return std::string(text.data(), size);
}

// What Python's str.strip() takes away; minja knows only some of it.
std::string_view stripped(std::string_view text) {
  constexpr std::array<std::string_view, 29> kSpaces = {
      " ",      "\n",     "\t",     "\r",     "\v",     "\f",     "\x1c",   "\x1d",
      "\x1e",   "\x1f",   "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002",
      "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
      "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  const auto strip_one = [&] {
    for (const std::string_view space : kSpaces) {
      if (text.starts_with(space)) return text.remove_prefix(space.size()), true;
      if (text.ends_with(space)) return text.remove_suffix(space.size()), true;
    }
    return false;
  };
  while (strip_one()) continue;
  return text;
}

Value trim(ArgumentsValue& arguments) {
  if (arguments.args.size() != 1 || !arguments.kwargs.empty()) refuse("trim takes one text");
  if (arguments.args[0].is_null()) return Value("");
  return std::string(stripped(arguments.args[0].to_str()));
}

// What templates of thinking models take of what comes before "</think>".
Value first(ArgumentsValue& arguments) {
  if (arguments.args.size() != 1 || !arguments.kwargs.empty() || !arguments.args[0].is_array())
    refuse("first takes one list");
  return arguments.args[0].empty() ? Value() : arguments.args[0].at(0);
}

// The function of that name, which is only called with small numbers.
void bound_numbers(Context& context, const char* name) {
  const Value inner = context.get(Value(name));
  context.set(name, Value::callable([inner](const std::shared_ptr<Context>& caller,
                                            ArgumentsValue& arguments) {
                const auto check = [](const Value& value) {
                  if (value.is_number() &&
                      (value.get<double>() > double{kMaxIndent} || value.get<double>() < 0))
                    refuse("an indentation that is too large");
                };
                for (std::size_t i = 1; i < arguments.args.size(); ++i) check(arguments.args[i]);
                for (const auto& [key, value] : arguments.kwargs) check(value);
                return inner.call(caller, arguments);
              }));
}

}  // namespace

std::shared_ptr<Context> limited_context(const TemplateLimits& limits, std::time_t now) {
  auto limiter = std::make_shared<Limiter>(limits);
  auto context = Context::builtins();
  const auto add = [&](const char* name, auto function) {
    context->set(name, Value::callable([function](const std::shared_ptr<Context>&,
                                                  ArgumentsValue& arguments) -> Value {
                   return function(arguments);
                 }));
  };
  const auto second = [](ArgumentsValue& arguments) -> Value& { return arguments.args.at(1); };
  add("hearth_tick", [limiter](ArgumentsValue&) { return limiter->tick(), Value(); });
  add("hearth_check", [=](ArgumentsValue& arguments) {
    limiter->check(second(arguments));
    return second(arguments);
  });
  add("hearth_items", [=](ArgumentsValue& arguments) {
    limiter->check_items(second(arguments));
    return second(arguments);
  });
  add("hearth_kept", [=](ArgumentsValue& arguments) { return limiter->copy(second(arguments)); });
  add("hearth_copy",
      [=](ArgumentsValue& arguments) { return limiter->copy(arguments.args.at(0)); });
  add("range", [](ArgumentsValue& arguments) { return range(arguments); });
  add("trim", [](ArgumentsValue& arguments) { return trim(arguments); });
  add("first", [](ArgumentsValue& arguments) { return first(arguments); });
  add("strftime_now", [now](ArgumentsValue& arguments) { return time_text(arguments, now); });
  bound_numbers(*context, "tojson");
  bound_numbers(*context, "indent");
  return context;
}

}  // namespace hearth
