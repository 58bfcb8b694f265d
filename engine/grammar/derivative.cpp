// Derivatives of expressions, and the search for a text that matches.
#include <algorithm>

#include "engine/grammar/expression.h"

namespace hearth::grammar {

// Splits the code points where either list has a border; `combine` gets the two targets.
template <class Combine>
std::vector<Arc> ExpressionPool::merged(const std::vector<Arc>& a, const std::vector<Arc>& b,
                                        Combine combine) {
  std::vector<Arc> result;
  const auto add = [&](char32_t low, char32_t high, ExprId target) {
    if (target == kNothing) return;
    if (!result.empty() && result.back().target == target && result.back().high + 1 == low)
      result.back().high = high;
    else
      result.push_back({low, high, target});
  };
  std::size_t i = 0, j = 0;
  char32_t at = 0;
  while (at <= kLastCodePoint) {
    while (i < a.size() && a[i].high < at) ++i;
    while (j < b.size() && b[j].high < at) ++j;
    char32_t high = kLastCodePoint;
    ExprId left = kNothing, right = kNothing;
    const auto look = [&](const std::vector<Arc>& arcs, std::size_t k, ExprId& target) {
      if (k == arcs.size()) return;
      if (arcs[k].low <= at) {
        target = arcs[k].target;
        high = std::min(high, arcs[k].high);
      } else {
        high = std::min<char32_t>(high, arcs[k].low - 1);
      }
    };
    look(a, i, left);
    look(b, j, right);
    add(at, high, combine(left, right));
    at = high + 1;
  }
  return result;
}

std::vector<Arc> ExpressionPool::mapped(std::vector<Arc> arcs, ExprId tail) {
  for (Arc& arc : arcs) arc.target = concat(arc.target, tail);
  return arcs;
}

std::vector<Arc> ExpressionPool::make_arcs(ExprId id) {
  const Node node = nodes_[id];
  std::vector<Arc> result;
  switch (node.kind) {
    case Kind::kNone:
    case Kind::kEmpty:
      break;
    case Kind::kClass:
      for (const CharRange& range : sets_[node.a].ranges())
        result.push_back({range.low, range.high, kEpsilon});
      break;
    case Kind::kLiteral: {
      const char32_t c = texts_[node.a][node.b];
      result.push_back({c, c, text_from(node.a, node.b + 1)});
      break;
    }
    case Kind::kOneOf: {
      const auto& list = lists_[node.a];
      std::uint32_t begin = node.b;
      if (list[begin].size() == node.d) ++begin;
      while (begin < node.c) {
        const char32_t c = list[begin][node.d];
        const auto end =
            std::partition_point(list.begin() + begin, list.begin() + node.c,
                                 [&](const std::u32string& text) { return text[node.d] == c; });
        const auto next = static_cast<std::uint32_t>(end - list.begin());
        result.push_back({c, c, list_from(node.a, begin, next, node.d + 1)});
        begin = next;
      }
      break;
    }
    case Kind::kConcat: {
      result = mapped(arcs(node.a), node.b);
      if (nodes_[node.a].nullable) {
        const std::vector<Arc> second = arcs(node.b);
        result = merged(result, second, [&](ExprId x, ExprId y) { return either(x, y); });
      }
      break;
    }
    case Kind::kEither:
      for (std::uint32_t i = 0; i < node.b; ++i) {
        const std::vector<Arc> part = arcs(children_[node.a + i]);
        result =
            i == 0 ? part : merged(result, part, [&](ExprId x, ExprId y) { return either(x, y); });
      }
      break;
    case Kind::kBoth:
      for (std::uint32_t i = 0; i < node.b; ++i) {
        const std::vector<Arc> part = arcs(children_[node.a + i]);
        result =
            i == 0 ? part : merged(result, part, [&](ExprId x, ExprId y) { return both(x, y); });
      }
      break;
    case Kind::kNot: {
      const std::vector<Arc> part = arcs(node.a);
      result = merged(part, {}, [&](ExprId x, ExprId) { return complement(x); });
      break;
    }
    case Kind::kRepeat: {
      const std::uint32_t min = node.b == 0 ? 0 : node.b - 1;
      const std::uint32_t max = node.c == kUnbounded ? kUnbounded : node.c - 1;
      const ExprId tail = repeat(node.a, min, max);
      result = mapped(arcs(node.a), tail);
      break;
    }
    case Kind::kDigits: {
      static constexpr char32_t kCharacters[] = U"0123456789-.";
      std::vector<Arc> unsorted;
      for (int symbol = 0; symbol < DigitAutomaton::kSymbols; ++symbol) {
        const std::int32_t next = automata_[node.a].states[node.b].next[symbol];
        if (next != DigitAutomaton::kDead)
          unsorted.push_back({kCharacters[symbol], kCharacters[symbol],
                              digits_from(node.a, static_cast<std::uint32_t>(next))});
      }
      std::sort(unsorted.begin(), unsorted.end(),
                [](const Arc& x, const Arc& y) { return x.low < y.low; });
      result = merged(unsorted, {}, [](ExprId x, ExprId) { return x; });
      break;
    }
  }
  return result;
}

const std::vector<Arc>& ExpressionPool::arcs(ExprId id) {
  if (!has_arcs_[id]) {
    std::vector<Arc> made = make_arcs(id);
    arc_count_ += made.size();
    arcs_[id] = std::move(made);
    has_arcs_[id] = true;
  }
  return arcs_[id];
}

ExprId ExpressionPool::derivative(ExprId id, char32_t c) {
  const std::vector<Arc>& all = arcs(id);
  const auto after = std::upper_bound(all.begin(), all.end(), c,
                                      [](char32_t x, const Arc& arc) { return x < arc.low; });
  if (after == all.begin() || c > std::prev(after)->high) return kNothing;
  return std::prev(after)->target;
}

bool ExpressionPool::matches(ExprId id, std::u32string_view text) {
  for (const char32_t c : text) {
    id = derivative(id, c);
    if (id == kNothing) return false;
  }
  return nullable(id);
}

bool ExpressionPool::few_texts(ExprId id, std::size_t most, std::vector<std::u32string>* texts) {
  struct Prefix {
    ExprId rest;
    std::u32string text;
  };
  std::vector<Prefix> pending = {{id, {}}};
  std::size_t steps = 0;
  while (!pending.empty()) {
    const Prefix at = std::move(pending.back());
    pending.pop_back();
    if (nullable(at.rest)) texts->push_back(at.text);
    if (texts->size() > most || ++steps > 100 * most || at.text.size() > 10'000) return false;
    for (const Arc arc : std::vector<Arc>(arcs(at.rest))) {
      if (!is_live(arc.target)) continue;
      if (arc.high - arc.low >= most) return false;
      for (char32_t c = arc.low; c <= arc.high; ++c) pending.push_back({arc.target, at.text + c});
    }
  }
  return true;
}

bool ExpressionPool::is_live(ExprId id, std::size_t budget) {
  if (id == kNothing) return false;
  if (nodes_[id].nullable || life_[id] == Life::kLive) return true;
  if (life_[id] == Life::kDead) return false;
  // Depth first, so that a text is found quickly where there are many; everything on the way to a
  // live expression is live, and if the search ends without one, all it saw is dead.
  const std::size_t most_nodes = nodes_.size() + 3 * budget;
  std::vector<ExprId> seen = {id}, pending = {id};
  std::unordered_map<ExprId, ExprId> parent = {{id, id}};
  while (!pending.empty()) {
    const ExprId at = pending.back();
    pending.pop_back();
    if (exhausted_ || seen.size() > budget || nodes_.size() > most_nodes) {
      gave_up_ = true;
      return true;
    }
    for (const Arc arc : std::vector<Arc>(arcs(at))) {
      if (life_[arc.target] == Life::kDead || !parent.emplace(arc.target, at).second) continue;
      if (nodes_[arc.target].nullable || life_[arc.target] == Life::kLive) {
        life_[arc.target] = Life::kLive;
        for (ExprId up = at;; up = parent[up]) {
          life_[up] = Life::kLive;
          if (parent[up] == up) break;
        }
        return true;
      }
      seen.push_back(arc.target);
      pending.push_back(arc.target);
    }
  }
  for (const ExprId dead : seen) life_[dead] = Life::kDead;
  return false;
}

}  // namespace hearth::grammar
