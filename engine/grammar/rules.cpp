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
  if (key.count < object.min) return false;
  if (!grammar_.any_order) return object.required_left[key.at] == 0;
  const Seen& seen = seen_[key.at];
  const std::size_t size = object.properties.size();
  for (std::size_t i = 0; i < size + object.demanded.size(); ++i)
    if ((i >= size || object.properties[i].required) && (i >= seen.size() || !seen[i]))
      return false;
  return true;
}

// A key, if its object can still be completed with it: `required` keys have to follow, and
// `optional` ones may.
void RuleStates::add_key(const Key& key, const ObjectRule::Property& property, std::uint32_t at,
                         std::uint32_t required, std::uint32_t optional, RuleExpansion& out) {
  const ObjectRule& object = grammar_.objects[key.part];
  std::uint32_t count = 0;
  if (object.min > 0 || object.max != kUnbounded) {
    count = key.count + 1;
    if (object.max != kUnbounded && count + required > object.max) return;
    if (object.others.empty() && count + required + optional < object.min) return;
    if (object.max == kUnbounded) count = std::min(count, object.min);
  }
  out.edges.push_back({false, property.key,
                       id({.kind = Kind::kObjectColon,
                           .rule = key.rule,
                           .part = key.part,
                           .at = at,
                           .count = count,
                           .more = property.value})});
}

// The keys that may come next. An optional property that is passed over cannot come later.
void RuleStates::add_keys(const Key& key, RuleExpansion& out) {
  if (grammar_.any_order) {
    add_keys_in_any_order(key, out);
    return;
  }
  const ObjectRule& object = grammar_.objects[key.part];
  const auto size = static_cast<std::uint32_t>(object.properties.size());
  const auto positions = static_cast<std::uint32_t>(object.required_left.size() - 1);
  const std::uint32_t last = object.next_required[key.at];
  const auto add = [&](const ObjectRule::Property& property, std::uint32_t at) {
    const std::uint32_t required = object.required_left[at];
    add_key(key, property, at, required, positions - at - required, out);
  };
  for (std::uint32_t i = key.at; i < size && i <= last; ++i) add(object.properties[i], i + 1);
  if (last < size) return;
  const std::uint32_t at = std::max(key.at, size);
  for (const ObjectRule::Property& other : object.others) add(other, at);
  if (at - size < object.demanded.size()) add(object.demanded[at - size], at + 1);
}

std::uint32_t RuleStates::seen_id(Seen seen) {
  const auto [at, added] = seen_ids_.emplace(seen, static_cast<std::uint32_t>(seen_.size()));
  if (added) seen_.push_back(std::move(seen));
  return at->second;
}

// In any order: `at` is the set of keys so far, with the demanded ones after the properties.
void RuleStates::add_keys_in_any_order(const Key& key, RuleExpansion& out) {
  const ObjectRule& object = grammar_.objects[key.part];
  const std::size_t size = object.properties.size(), all = size + object.demanded.size();
  Seen seen = seen_[key.at];
  seen.resize(all);
  std::uint32_t required = 0, optional = 0;
  for (std::size_t i = 0; i < all; ++i)
    if (!seen[i]) ++(i >= size || object.properties[i].required ? required : optional);
  for (std::size_t i = 0; i < all; ++i) {
    if (seen[i]) continue;
    const bool is_required = i >= size || object.properties[i].required;
    Seen next = seen;
    next[i] = true;
    add_key(key, i < size ? object.properties[i] : object.demanded[i - size],
            seen_id(std::move(next)), required - (is_required ? 1 : 0),
            optional - (is_required ? 0 : 1), out);
    if (i >= size) break;  // demands are met one after the other
  }
  for (const ObjectRule::Property& other : object.others)
    add_key(key, other, key.at, required, optional, out);
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
