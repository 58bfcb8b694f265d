#include "engine/text/jinja/loop.h"

#include <vector>

#include "engine/text/jinja/compare.h"

namespace hearth::jinja {

void Loop::look_ahead(Interpreter& in) {
  const bool filters = statement_.condition != nullptr && !is_filtered_;
  while (!next_.given() && !items_.empty()) {
    const Value candidate = items_.front();
    items_ = items_.subspan(1);
    if (!filters || in.accepts(statement_, surroundings_, candidate)) next_ = candidate;
  }
}

bool Loop::advance(Interpreter& in) {
  look_ahead(in);
  previous_ = current_;
  current_ = next_;
  next_ = Value();
  ++index_;
  return current_.given();
}

std::int64_t Loop::length(Interpreter& in) {
  if (statement_.condition != nullptr && !is_filtered_) {
    std::vector<Value> accepted;
    for (const Value& item : items_)
      if (in.accepts(statement_, surroundings_, item)) accepted.push_back(item);
    items_ = in.heap().list(accepted).list->all();
    is_filtered_ = true;
  }
  return index_ + 1 + (next_.given() ? 1 : 0) + static_cast<std::int64_t>(items_.size());
}

Value Loop::attribute(Interpreter& in, const Value& self, std::string_view name) {
  using Why = Undefined::Why;
  if (name == "index") return Value::of(index_ + 1);
  if (name == "index0") return Value::of(index_);
  if (name == "first") return Value::of(index_ == 0);
  if (name == "length") return Value::of(length(in));
  if (name == "revindex") return Value::of(length(in) - index_);
  if (name == "revindex0") return Value::of(length(in) - index_ - 1);
  if (name == "depth") return Value::of(std::int64_t{depth_} + 1);
  if (name == "depth0") return Value::of(std::int64_t{depth_});
  if (name == "last" || name == "nextitem") {
    look_ahead(in);
    if (name == "last") return Value::of(!next_.given());
    return next_.given() ? next_ : in.heap().undefined(Why::kHint, "there is no next item");
  }
  if (name == "previtem")
    return index_ > 0 ? previous_ : in.heap().undefined(Why::kHint, "there is no previous item");
  static constexpr Builtin kCycle = {
      "cycle",
      [](Interpreter& i, const Value& s, const Arguments& a) { return s.loop->cycle(i, a); }};
  static constexpr Builtin kChanged = {
      "changed",
      [](Interpreter& i, const Value& s, const Arguments& a) { return s.loop->changed(i, a); }};
  if (name == "cycle") return in.method(kCycle, self);
  if (name == "changed") return in.method(kChanged, self);
  return {};
}

Value Loop::repeat(Interpreter& in, const Arguments& arguments) {
  if (!statement_.is_recursive) fail("the loop cannot be called: it has to be marked 'recursive'");
  const Bound<1> given = bind("loop", arguments, {"iterable"}, 1);
  return in.repeat_loop(statement_, surroundings_, given[0], depth_ + 1);
}

Value Loop::cycle(Interpreter&, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("loop.cycle() needs items to cycle through");
  const auto count = static_cast<std::int64_t>(arguments.positional.size());
  return arguments.positional[static_cast<std::size_t>(index_ % count)];
}

Value Loop::changed(Interpreter& in, const Arguments& arguments) {
  const Value now = in.heap().tuple(arguments.positional);
  const bool same = last_changed_.given() && equal(in.heap(), last_changed_, now);
  last_changed_ = now;
  return Value::of(!same);
}

}  // namespace hearth::jinja
