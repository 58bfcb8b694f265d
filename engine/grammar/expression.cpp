#include "engine/grammar/expression.h"

#include <algorithm>
#include <cassert>

#include "engine/grammar/code_points.h"

namespace hearth::grammar {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ull + (hash << 6) + (hash >> 2);
  return hash * 0xBF58476D1CE4E5B9ull;
}

}  // namespace

ExpressionPool::ExpressionPool() {
  intern({.kind = Kind::kNone});
  intern({.kind = Kind::kEmpty, .nullable = true});
  sets_.push_back(CharSet::all());
  // kAnyText is a repetition of the next node, which exists before anyone can look.
  nodes_.push_back({.kind = Kind::kRepeat, .nullable = true, .a = 3, .b = 0, .c = kUnbounded});
  arcs_.emplace_back();
  has_arcs_.push_back(false);
  life_.push_back(Life::kLive);
  any_char_ = intern({.kind = Kind::kClass, .a = 0});
  assert(any_char_ == 3);
}

ExprId ExpressionPool::intern(Node node, const std::vector<ExprId>* children) {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(node.kind), node.c);
  hash = mix(hash, node.d);
  if (children == nullptr) {
    hash = mix(mix(hash, node.a), node.b);
  } else {
    for (const ExprId child : *children) hash = mix(hash, child);
  }
  const auto [begin, end] = ids_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Node& known = nodes_[it->second];
    if (known.kind != node.kind || known.c != node.c || known.d != node.d) continue;
    if (children == nullptr) {
      if (known.a == node.a && known.b == node.b) return it->second;
    } else if (std::equal(children->begin(), children->end(), children_.begin() + known.a,
                          children_.begin() + known.a + known.b)) {
      return it->second;
    }
  }
  if (nodes_.size() + arc_count_ / 4 >= limit_) {
    exhausted_ = true;
    return kNothing;
  }
  if (children != nullptr) {
    node.a = static_cast<std::uint32_t>(children_.size());
    node.b = static_cast<std::uint32_t>(children->size());
    children_.insert(children_.end(), children->begin(), children->end());
  }
  const auto id = static_cast<ExprId>(nodes_.size());
  nodes_.push_back(node);
  arcs_.emplace_back();
  has_arcs_.push_back(false);
  life_.push_back(node.exact ? Life::kLive : Life::kUnknown);
  ids_.emplace(hash, id);
  return id;
}

ExprId ExpressionPool::char_set(const CharSet& set) {
  if (set.empty()) return kNothing;
  const auto found = std::find(sets_.begin(), sets_.end(), set);
  const auto index = static_cast<std::uint32_t>(found - sets_.begin());
  if (found == sets_.end()) sets_.push_back(set);
  return intern({.kind = Kind::kClass, .a = index});
}

ExprId ExpressionPool::text_from(std::uint32_t text, std::uint32_t offset) {
  if (offset == texts_[text].size()) return kEpsilon;
  return intern({.kind = Kind::kLiteral, .a = text, .b = offset});
}

ExprId ExpressionPool::literal(std::u32string_view text) {
  if (text.empty()) return kEpsilon;
  const auto [at, added] =
      text_ids_.emplace(std::u32string(text), static_cast<std::uint32_t>(texts_.size()));
  if (added) texts_.emplace_back(text);
  return text_from(at->second, 0);
}

ExprId ExpressionPool::literal(std::string_view utf8) { return literal(to_code_points(utf8)); }

ExprId ExpressionPool::list_from(std::uint32_t list, std::uint32_t begin, std::uint32_t end,
                                 std::uint32_t offset) {
  if (begin == end) return kNothing;
  const bool ends_here = lists_[list][begin].size() == offset;
  if (ends_here && begin + 1 == end) return kEpsilon;
  return intern(
      {.kind = Kind::kOneOf, .nullable = ends_here, .a = list, .b = begin, .c = end, .d = offset});
}

ExprId ExpressionPool::one_of(std::vector<std::u32string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  if (texts.size() == 1) return literal(texts[0]);
  const auto size = static_cast<std::uint32_t>(texts.size());
  const auto [at, added] = list_ids_.emplace(texts, static_cast<std::uint32_t>(lists_.size()));
  if (added) lists_.push_back(std::move(texts));
  return list_from(at->second, 0, size, 0);
}

ExprId ExpressionPool::digits_from(std::uint32_t automaton, std::uint32_t state) {
  return intern({.kind = Kind::kDigits,
                 .nullable = automata_[automaton].states[state].accepts,
                 .exact = false,
                 .a = automaton,
                 .b = state});
}

ExprId ExpressionPool::digits(DigitAutomaton automaton) {
  automata_.push_back(std::move(automaton));
  return digits_from(static_cast<std::uint32_t>(automata_.size() - 1), 0);
}

ExprId ExpressionPool::concat(ExprId first, ExprId second) {
  if (first == kNothing || second == kNothing) return kNothing;
  if (first == kEpsilon) return second;
  if (second == kEpsilon) return first;
  // Lists of pieces hang to the right, so that equal texts get equal ids.
  if (nodes_[first].kind == Kind::kConcat) {
    std::vector<ExprId> heads;
    while (nodes_[first].kind == Kind::kConcat) {
      heads.push_back(nodes_[first].a);
      first = nodes_[first].b;
    }
    ExprId result = concat(first, second);
    for (auto it = heads.rbegin(); it != heads.rend(); ++it) result = concat(*it, result);
    return result;
  }
  if (first == kAnyText && (second == kAnyText ||
                            (nodes_[second].kind == Kind::kConcat && nodes_[second].a == kAnyText)))
    return second;
  return intern({.kind = Kind::kConcat,
                 .nullable = nodes_[first].nullable && nodes_[second].nullable,
                 .exact = nodes_[first].exact && nodes_[second].exact,
                 .a = first,
                 .b = second});
}

ExprId ExpressionPool::either(std::vector<ExprId> parts) {
  std::vector<ExprId> flat;
  for (const ExprId part : parts) {
    if (nodes_[part].kind == Kind::kEither)
      flat.insert(flat.end(), children_.begin() + nodes_[part].a,
                  children_.begin() + nodes_[part].a + nodes_[part].b);
    else if (part != kNothing)
      flat.push_back(part);
  }
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  bool nullable = false, exact = true;
  for (const ExprId part : flat) {
    if (part == kAnyText) return kAnyText;
    if (part != kEpsilon) nullable = nullable || nodes_[part].nullable;
    exact = exact && nodes_[part].exact;
  }
  if (nullable) flat.erase(std::remove(flat.begin(), flat.end(), kEpsilon), flat.end());
  for (const ExprId part : flat) {
    if (nodes_[part].kind == Kind::kNot &&
        std::binary_search(flat.begin(), flat.end(), nodes_[part].a))
      return kAnyText;
  }
  if (flat.empty()) return kNothing;
  if (flat.size() == 1) return flat[0];
  nullable = nullable || flat[0] == kEpsilon;
  return intern({.kind = Kind::kEither, .nullable = nullable, .exact = exact}, &flat);
}

ExprId ExpressionPool::both(std::vector<ExprId> parts) {
  std::vector<ExprId> flat;
  for (const ExprId part : parts) {
    if (part == kNothing) return kNothing;
    if (nodes_[part].kind == Kind::kBoth)
      flat.insert(flat.end(), children_.begin() + nodes_[part].a,
                  children_.begin() + nodes_[part].a + nodes_[part].b);
    else if (part != kAnyText)
      flat.push_back(part);
  }
  std::sort(flat.begin(), flat.end());
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  bool nullable = true;
  for (const ExprId part : flat) {
    nullable = nullable && nodes_[part].nullable;
    if (nodes_[part].kind == Kind::kNot &&
        std::binary_search(flat.begin(), flat.end(), nodes_[part].a))
      return kNothing;
  }
  if (flat.empty()) return kAnyText;
  if (flat.size() == 1) return flat[0];
  if (flat[0] == kEpsilon) return nullable ? kEpsilon : kNothing;
  return intern({.kind = Kind::kBoth, .nullable = nullable, .exact = false}, &flat);
}

ExprId ExpressionPool::complement(ExprId part) {
  if (part == kNothing) return kAnyText;
  if (part == kAnyText) return kNothing;
  if (nodes_[part].kind == Kind::kNot) return nodes_[part].a;
  return intern(
      {.kind = Kind::kNot, .nullable = !nodes_[part].nullable, .exact = false, .a = part});
}

ExprId ExpressionPool::repeat(ExprId part, std::uint32_t min, std::uint32_t max) {
  if (max == 0 || part == kEpsilon) return kEpsilon;
  if (part == kNothing) return min == 0 ? kEpsilon : kNothing;
  if (min == 1 && max == 1) return part;
  if (nodes_[part].nullable) min = 0;
  if (part == any_char_ && min == 0 && max == kUnbounded) return kAnyText;
  if (part == kAnyText) return part;
  if (nodes_[part].kind == Kind::kRepeat && nodes_[part].b == 0 && nodes_[part].c == kUnbounded)
    return part;
  return intern({.kind = Kind::kRepeat,
                 .nullable = min == 0,
                 .exact = nodes_[part].exact,
                 .a = part,
                 .b = min,
                 .c = max});
}

bool ExpressionPool::is_any_of_length(ExprId id, std::uint32_t* min, std::uint32_t* max) const {
  if (nodes_[id].kind != Kind::kRepeat || nodes_[id].a != any_char_) return false;
  *min = nodes_[id].b;
  *max = nodes_[id].c;
  return true;
}

bool ExpressionPool::excludes_few(ExprId id) const {
  if (id == kAnyText) return true;
  if (nodes_[id].kind != Kind::kNot) return false;
  const Kind inner = nodes_[nodes_[id].a].kind;
  return inner == Kind::kEmpty || inner == Kind::kLiteral || inner == Kind::kOneOf;
}

bool ExpressionPool::excludes_few(ExprId id, std::vector<std::u32string>* rest) const {
  rest->clear();
  if (!excludes_few(id)) return false;
  if (id == kAnyText) return true;
  const Node& inner = nodes_[nodes_[id].a];
  if (inner.kind == Kind::kEmpty) {
    rest->emplace_back();
    return true;
  }
  if (inner.kind == Kind::kLiteral) {
    rest->push_back(texts_[inner.a].substr(inner.b));
    return true;
  }
  for (std::uint32_t i = inner.b; i < inner.c; ++i)
    rest->push_back(lists_[inner.a][i].substr(inner.d));
  return true;
}

bool ExpressionPool::only_text(ExprId id, std::u32string* text) const {
  text->clear();
  if (id == kEpsilon) return true;
  if (nodes_[id].kind != Kind::kLiteral) return false;
  *text = texts_[nodes_[id].a].substr(nodes_[id].b);
  return true;
}

}  // namespace hearth::grammar
