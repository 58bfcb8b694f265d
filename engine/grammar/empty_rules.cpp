// Removes rules that no value satisfies.
#include <algorithm>
#include <vector>

#include "engine/grammar/schema_compiler.h"

namespace hearth::grammar {
namespace {

// The rules that some value satisfies, as far as they are known.
class UsableRules {
 public:
  explicit UsableRules(const GrammarData& data) : data_(data), usable_(data.values.size(), false) {}

  bool has(RuleId rule) const { return rule != kNoRule && usable_[rule]; }
  // Whether the members of the set are enough to satisfy these.
  bool satisfy_object(std::uint32_t index) const { return satisfy(data_.objects[index]); }
  bool satisfy_array(std::uint32_t index) const { return satisfy(data_.arrays[index]); }
  bool satisfy(const ValueRule& value) const {
    return !value.scalars.empty() ||
           std::any_of(value.objects.begin(), value.objects.end(),
                       [&](std::uint32_t object) { return satisfy_object(object); }) ||
           std::any_of(value.arrays.begin(), value.arrays.end(),
                       [&](std::uint32_t array) { return satisfy_array(array); });
  }
  void add(RuleId rule) { usable_[rule] = true; }

 private:
  // How many items an array can have, and how many of them can match its `contains`.
  struct Reach {
    std::size_t length = 0, matching = 0;
  };
  bool satisfy(const ObjectRule& object) const;
  bool satisfy(const ArrayRule& array) const;
  bool match_every_contains(const ArrayRule& array) const;
  Reach reach(const ArrayRule& array) const;

  const GrammarData& data_;
  std::vector<bool> usable_;
};

bool UsableRules::satisfy(const ObjectRule& object) const {
  std::size_t possible = 0, required = 0;
  for (const auto& property : object.properties) {
    possible += has(property.value);
    required += property.required;
    if (property.required && !has(property.value)) return false;
  }
  const bool more = std::any_of(object.others.begin(), object.others.end(),
                                [&](const auto& other) { return has(other.value); });
  for (const auto& property : object.demanded) {
    if (!has(property.value)) return false;
    ++possible, ++required;
  }
  return required <= object.max && (more || possible >= object.min) && object.min <= object.max;
}

bool UsableRules::satisfy(const ArrayRule& array) const {
  if (array.min > array.max) return false;
  if (!array.unique_values.empty() || array.max == 0) {
    std::size_t possible = 0;
    for (const RuleId value : array.unique_values) possible += has(value);
    return possible >= array.min && (!array.has_contains || array.min_contains == 0);
  }
  if (!match_every_contains(array)) return false;
  const Reach most = reach(array);
  const std::size_t length = std::min<std::size_t>(most.length, array.max);
  if (length < array.min) return false;
  return !array.has_contains || std::min(most.matching, length) >= array.min_contains;
}

// Several `contains`: there may be dead ends if they compete for the first items.
bool UsableRules::match_every_contains(const ArrayRule& array) const {
  std::uint32_t sets = 0;
  for (const ArrayRule::Matching& matching : array.sets) {
    bool any = has(matching.rest);
    for (const RuleId rule : matching.first) any = any || has(rule);
    if (any) sets |= matching.set;
  }
  return sets == array.all_sets;
}

UsableRules::Reach UsableRules::reach(const ArrayRule& array) const {
  Reach most;
  std::size_t only_matching = 0;
  const auto item = [&](RuleId plain, RuleId match) {
    const bool a = has(plain), b = array.has_contains && has(match);
    if (!a && !b) return false;
    most.matching += b;
    only_matching += b && !a;
    ++most.length;
    return true;
  };
  for (std::size_t i = 0; i < array.first.size(); ++i)
    if (!item(array.first[i], array.has_contains ? array.first_matching[i] : kNoRule)) return most;
  const bool rest = has(array.rest), rest_match = array.has_contains && has(array.rest_matching);
  if (array.max <= array.first.size() || (!rest && !rest_match)) return most;
  if (array.has_contains && !rest && array.max_contains != kUnbounded) {
    const std::size_t room =
        array.max_contains > only_matching ? array.max_contains - only_matching : 0;
    most.length += room;
    most.matching += room;
  } else {
    most.length = kUnbounded;
    if (rest_match) most.matching = kUnbounded;
  }
  return most;
}

}  // namespace

// Rules that no value can satisfy would lead generation into dead ends. What remains: the least set
// of rules, objects and arrays of which each needs only members of the set.
void SchemaCompiler::remove_empty_rules() {
  UsableRules usable(data_);
  for (bool changed = true; changed;) {
    changed = false;
    for (RuleId rule = 0; rule < data_.values.size(); ++rule) {
      if (usable.has(rule)) continue;
      spend(data_.values[rule].objects.size());
      if (!usable.satisfy(data_.values[rule])) continue;
      usable.add(rule);
      changed = true;
    }
  }
  const auto drop = [&](RuleId& rule) {
    if (!usable.has(rule)) rule = kNoRule;
  };
  for (ValueRule& value : data_.values) {
    std::erase_if(value.objects, [&](std::uint32_t o) { return !usable.satisfy_object(o); });
    std::erase_if(value.arrays, [&](std::uint32_t a) { return !usable.satisfy_array(a); });
  }
  for (ObjectRule& object : data_.objects) {
    std::erase_if(object.properties, [&](const auto& p) { return !usable.has(p.value); });
    std::erase_if(object.others, [&](const auto& p) { return !usable.has(p.value); });
    object.finish();
  }
  for (ArrayRule& array : data_.arrays) {
    std::ranges::for_each(array.first, drop);
    std::ranges::for_each(array.first_matching, drop);
    drop(array.rest);
    drop(array.rest_matching);
    for (ArrayRule::Matching& matching : array.sets) {
      drop(matching.rest);
      std::ranges::for_each(matching.first, drop);
    }
  }
}

}  // namespace hearth::grammar
