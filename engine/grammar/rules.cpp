#include "engine/grammar/rules.h"

#include <algorithm>

namespace hearth::grammar {

void ObjectRule::finish() {
  const auto size = static_cast<std::uint32_t>(properties.size());
  const auto last = static_cast<std::uint32_t>(size + demanded.size());
  next_required.assign(last + 1, last);
  required_left.assign(last + 1, 0);
  for (std::uint32_t i = last; i-- > 0;) {
    const bool required = i >= size || properties[i].required;
    next_required[i] = required ? i : next_required[i + 1];
    required_left[i] = required_left[i + 1] + (required ? 1 : 0);
  }
}

std::size_t RuleStates::Hash::operator()(const Key& key) const {
  std::uint64_t hash = static_cast<std::uint64_t>(key.kind);
  for (const std::uint64_t part : {key.rule, key.part, key.at, key.count, key.more})
    hash = (hash ^ part) * 0x9E3779B97F4A7C15ull, hash ^= hash >> 31;
  return hash;
}

RuleState RuleStates::id(const Key& key) {
  const auto [at, added] = ids_.emplace(key, static_cast<RuleState>(keys_.size()));
  if (added) {
    keys_.push_back(key);
    expansions_.emplace_back();
    expanded_.push_back(false);
  }
  return at->second;
}

RuleState RuleStates::start(RuleId rule) {
  if ((rule & 0x80000000u) != 0)
    return id({.kind = Kind::kSequence, .rule = rule, .part = 0xFFFFFFFF});
  return id({.kind = Kind::kValue, .rule = rule});
}

const RuleExpansion& RuleStates::expansion(RuleState state) {
  if (!expanded_[state]) {
    RuleExpansion made = expand(keys_[state]);
    expansions_[state] = std::move(made);
    expanded_[state] = true;
  }
  return expansions_[state];
}

RuleExpansion RuleStates::expand(const Key& given) {
  const Key key = given;  // id() may move the keys
  RuleExpansion out{.rule = key.rule};
  switch (key.kind) {
    case Kind::kValue:
      expand_value(key, out);
      break;
    case Kind::kEnd:
      out.accepts = true;
      break;
    case Kind::kObjectOpen:
    case Kind::kObjectKey:
    case Kind::kObjectColon:
    case Kind::kObjectValue:
    case Kind::kObjectNext:
      expand_object(key, out);
      break;
    case Kind::kArrayOpen:
    case Kind::kArrayItem:
    case Kind::kArrayNext:
      expand_array(key, out);
      break;
    case Kind::kSequence: {
      const auto& alternatives = grammar_.sequences[key.rule & 0x7FFFFFFFu].alternatives;
      const auto add = [&](std::uint32_t alternative, std::uint32_t dot) {
        if (dot == alternatives[alternative].size()) {
          out.accepts = true;
          return;
        }
        const SequenceRule::Symbol symbol = alternatives[alternative][dot];
        out.edges.push_back(
            {symbol.is_rule, symbol.id,
             id({.kind = Kind::kSequence, .rule = key.rule, .part = alternative, .at = dot + 1})});
      };
      if (key.part == 0xFFFFFFFF) {
        for (std::uint32_t i = 0; i < alternatives.size(); ++i) add(i, 0);
      } else {
        add(key.part, key.at);
      }
      break;
    }
  }
  return out;
}

void RuleStates::expand_value(const Key& key, RuleExpansion& out) {
  const ValueRule& value = grammar_.values[key.rule];
  const RuleState end = id({.kind = Kind::kEnd, .rule = key.rule});
  for (const LexemeId lexeme : value.scalars) out.edges.push_back({false, lexeme, end});
  for (const std::uint32_t object : value.objects)
    out.edges.push_back({false, grammar_.open_object,
                         id({.kind = Kind::kObjectOpen, .rule = key.rule, .part = object})});
  for (const std::uint32_t array : value.arrays)
    out.edges.push_back({false, grammar_.open_array,
                         id({.kind = Kind::kArrayOpen, .rule = key.rule, .part = array})});
}

bool RuleStates::may_close(const Key& key) const {
  const ObjectRule& object = grammar_.objects[key.part];
  return object.required_left[key.at] == 0 && key.count >= object.min;
}

// The keys that may come next. An optional property that is passed over cannot come later.
void RuleStates::add_keys(const Key& key, RuleExpansion& out) {
  const ObjectRule& object = grammar_.objects[key.part];
  const auto size = static_cast<std::uint32_t>(object.properties.size());
  const bool counts = object.min > 0 || object.max != kUnbounded;
  const std::uint32_t count = counts ? key.count + 1 : 0;
  const std::uint32_t last = object.next_required[key.at];
  const auto add = [&](const ObjectRule::Property& property, std::uint32_t rest) {
    // Whatever is required must still fit, and the minimum must be in reach.
    if (counts) {
      if (object.max != kUnbounded && count + object.required_left[rest] > object.max) return;
      const auto positions = static_cast<std::uint32_t>(object.next_required.size() - 1);
      if (object.others.empty() && count + (positions - rest) < object.min) return;
    }
    const std::uint32_t capped =
        counts && object.max == kUnbounded ? std::min(count, object.min) : count;
    out.edges.push_back({false, property.key,
                         id({.kind = Kind::kObjectColon,
                             .rule = key.rule,
                             .part = key.part,
                             .at = rest,
                             .count = capped,
                             .more = property.value})});
  };
  for (std::uint32_t i = key.at; i < size && i <= last; ++i) add(object.properties[i], i + 1);
  if (last < size) return;
  const std::uint32_t at = std::max(key.at, size);
  for (const ObjectRule::Property& other : object.others) add(other, at);
  if (at - size < object.demanded.size()) add(object.demanded[at - size], at + 1);
}

void RuleStates::expand_object(const Key& key, RuleExpansion& out) {
  Key next = key;
  switch (key.kind) {
    case Kind::kObjectOpen:
    case Kind::kObjectKey:
      add_keys(key, out);
      if (key.kind == Kind::kObjectOpen && may_close(key))
        out.edges.push_back(
            {false, grammar_.close_object, id({.kind = Kind::kEnd, .rule = key.rule})});
      break;
    case Kind::kObjectColon:
      next.kind = Kind::kObjectValue;
      out.edges.push_back({false, grammar_.colon, id(next)});
      break;
    case Kind::kObjectValue: {
      next.kind = Kind::kObjectNext;
      next.more = 0;
      out.edges.push_back({true, key.more, id(next)});
      break;
    }
    default: {
      RuleExpansion keys;
      add_keys(key, keys);
      if (!keys.edges.empty()) {
        next.kind = Kind::kObjectKey;
        out.edges.push_back({false, grammar_.comma, id(next)});
      }
      if (may_close(key))
        out.edges.push_back(
            {false, grammar_.close_object, id({.kind = Kind::kEnd, .rule = key.rule})});
      break;
    }
  }
}

// Arrays: `at` items have been read, `count` of them count for contains; for uniqueItems `count`
// and `more` are the values that are used up.
bool RuleStates::may_close_array(const Key& key) const {
  const ArrayRule& array = grammar_.arrays[key.part];
  return key.at >= array.min && (!array.has_contains || key.count >= array.min_contains) &&
         (array.sets.empty() || key.count == array.all_sets);
}

RuleState RuleStates::next_item(const Key& key, std::uint32_t contains) {
  const ArrayRule& array = grammar_.arrays[key.part];
  Key next = key;
  next.kind = Kind::kArrayNext;
  next.at = key.at + 1;
  const auto first = static_cast<std::uint32_t>(array.first.size());
  // Beyond all that has to be told apart, counting stops, so that states repeat.
  if (array.max == kUnbounded) next.at = std::min(next.at, std::max(first, array.min));
  next.count = contains;
  if (array.has_contains && array.max_contains == kUnbounded)
    next.count = std::min(contains, array.min_contains);
  return id(next);
}

void RuleStates::add_item(const Key& key, RuleId value, std::uint32_t contains,
                          RuleExpansion& out) {
  if (value == kNoRule) return;
  const ArrayRule& array = grammar_.arrays[key.part];
  if (array.has_contains) {
    if (contains > array.max_contains) return;
    if (array.max != kUnbounded && contains + (array.max - key.at - 1) < array.min_contains) return;
  }
  out.edges.push_back({true, value, next_item(key, contains)});
}

void RuleStates::add_items(const Key& key, RuleExpansion& out) {
  const ArrayRule& array = grammar_.arrays[key.part];
  if (key.at >= array.max) return;
  if (!array.unique_values.empty()) {
    std::uint64_t used = static_cast<std::uint64_t>(key.more) << 32 | key.count;
    for (std::size_t i = 0; i < array.unique_values.size(); ++i) {
      if ((used >> i & 1) != 0) continue;
      const std::uint64_t now = used | 1ull << i;
      Key next = key;
      next.kind = Kind::kArrayNext;
      next.at = key.at + 1;
      next.count = static_cast<std::uint32_t>(now);
      next.more = static_cast<std::uint32_t>(now >> 32);
      out.edges.push_back({true, array.unique_values[i], id(next)});
    }
    return;
  }
  const bool first = key.at < array.first.size();
  for (const ArrayRule::Matching& matching : array.sets)
    add_item(key, first ? matching.first[key.at] : matching.rest, key.count | matching.set, out);
  add_item(key, first ? array.first[key.at] : array.rest, key.count, out);
  if (array.has_contains)
    add_item(key, first ? array.first_matching[key.at] : array.rest_matching, key.count + 1, out);
}

void RuleStates::expand_array(const Key& key, RuleExpansion& out) {
  const RuleState end = id({.kind = Kind::kEnd, .rule = key.rule});
  if (key.kind != Kind::kArrayNext) {
    add_items(key, out);
    if (key.kind == Kind::kArrayOpen && may_close_array(key))
      out.edges.push_back({false, grammar_.close_array, end});
    return;
  }
  RuleExpansion items;
  add_items(key, items);
  if (!items.edges.empty()) {
    Key next = key;
    next.kind = Kind::kArrayItem;
    out.edges.push_back({false, grammar_.comma, id(next)});
  }
  if (may_close_array(key)) out.edges.push_back({false, grammar_.close_array, end});
}

}  // namespace hearth::grammar
