// Removes rules that no value satisfies.
#include <algorithm>

#include "engine/grammar/schema_compiler.h"

namespace hearth::grammar {

// Rules that no value can satisfy would lead generation into dead ends. What remains: the least set
// of rules, objects and arrays of which each needs only members of the set.
void SchemaCompiler::remove_empty_rules() {
  std::vector<bool> good(data_.values.size(), false);
  const auto usable = [&](RuleId rule) { return rule != kNoRule && good[rule]; };
  const auto object_good = [&](const ObjectRule& object) {
    std::size_t possible = 0, required = 0;
    for (const auto& property : object.properties) {
      possible += usable(property.value);
      required += property.required;
      if (property.required && !usable(property.value)) return false;
    }
    const bool more = std::any_of(object.others.begin(), object.others.end(),
                                  [&](const auto& other) { return usable(other.value); });
    for (const auto& property : object.demanded) {
      if (!usable(property.value)) return false;
      ++possible, ++required;
    }
    return required <= object.max && (more || possible >= object.min) && object.min <= object.max;
  };
  const auto array_good = [&](const ArrayRule& array) {
    if (array.min > array.max) return false;
    if (!array.unique_values.empty() || array.max == 0) {
      std::size_t possible = 0;
      for (const RuleId value : array.unique_values) possible += usable(value);
      return possible >= array.min && (!array.has_contains || array.min_contains == 0);
    }
    // Several `contains`: there may be dead ends if they compete for the first items.
    std::uint32_t sets = 0;
    for (const ArrayRule::Matching& matching : array.sets) {
      bool any = usable(matching.rest);
      for (const RuleId rule : matching.first) any = any || usable(rule);
      if (any) sets |= matching.set;
    }
    if (sets != array.all_sets) return false;
    // How long it can get, and how many items can count.
    std::size_t length = 0, matching = 0, only_matching = 0;
    const auto item = [&](RuleId plain, RuleId match) {
      const bool a = usable(plain), b = array.has_contains && usable(match);
      if (!a && !b) return false;
      matching += b;
      only_matching += b && !a;
      ++length;
      return true;
    };
    bool goes_on = true;
    for (std::size_t i = 0; i < array.first.size() && goes_on; ++i)
      goes_on = item(array.first[i], array.has_contains ? array.first_matching[i] : kNoRule);
    const bool rest = usable(array.rest),
               rest_match = array.has_contains && usable(array.rest_matching);
    if (goes_on && array.max > array.first.size() && (rest || rest_match)) {
      if (array.has_contains && !rest && array.max_contains != kUnbounded) {
        const std::size_t room =
            array.max_contains > only_matching ? array.max_contains - only_matching : 0;
        length += room;
        matching += room;
      } else {
        length = kUnbounded;
        if (rest_match) matching = kUnbounded;
      }
    }
    length = std::min<std::size_t>(length, array.max);
    if (length < array.min) return false;
    return !array.has_contains || std::min(matching, length) >= array.min_contains;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < data_.values.size(); ++i) {
      if (good[i]) continue;
      spend(data_.values[i].objects.size());
      const ValueRule& value = data_.values[i];
      good[i] = !value.scalars.empty() ||
                std::any_of(value.objects.begin(), value.objects.end(),
                            [&](std::uint32_t o) { return object_good(data_.objects[o]); }) ||
                std::any_of(value.arrays.begin(), value.arrays.end(),
                            [&](std::uint32_t a) { return array_good(data_.arrays[a]); });
      changed = changed || good[i];
    }
  }
  for (ValueRule& value : data_.values) {
    std::erase_if(value.objects, [&](std::uint32_t o) { return !object_good(data_.objects[o]); });
    std::erase_if(value.arrays, [&](std::uint32_t a) { return !array_good(data_.arrays[a]); });
  }
  for (ObjectRule& object : data_.objects) {
    std::erase_if(object.properties, [&](const auto& p) { return !usable(p.value); });
    std::erase_if(object.others, [&](const auto& p) { return !usable(p.value); });
    object.finish();
  }
  for (ArrayRule& array : data_.arrays) {
    for (auto* const list : {&array.first, &array.first_matching})
      for (RuleId& rule : *list)
        if (!usable(rule)) rule = kNoRule;
    for (RuleId* const rule : {&array.rest, &array.rest_matching})
      if (!usable(*rule)) *rule = kNoRule;
    for (ArrayRule::Matching& matching : array.sets) {
      if (!usable(matching.rest)) matching.rest = kNoRule;
      for (RuleId& rule : matching.first)
        if (!usable(rule)) rule = kNoRule;
    }
  }
}

}  // namespace hearth::grammar
