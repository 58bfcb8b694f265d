#include "engine/compress/compress.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace hearth {
namespace {

struct RatedUnit {
  TextUnit unit;
  uint32_t tokens = 0;
  double surprisal = 0;  // mean of its tokens
  bool kept = false;
};

std::string_view text_of(std::string_view text, const TextUnit& unit) {
  return text.substr(unit.begin, unit.end - unit.begin);
}

std::vector<RatedUnit> rate_units(std::string_view text, std::span<const ScoredToken> tokens,
                                  CompressUnit unit) {
  std::vector<size_t> begins;
  for (const ScoredToken& token : tokens) begins.push_back(token.begin);
  std::vector<RatedUnit> rated;
  auto token = tokens.begin();
  for (const TextUnit& one : divide_text(text, unit, begins)) {
    RatedUnit& rating = rated.emplace_back(RatedUnit{.unit = one});
    for (; token != tokens.end() && token->begin < one.end; ++token) {
      ++rating.tokens;
      rating.surprisal += token->surprisal;
    }
    if (rating.tokens > 0) rating.surprisal /= rating.tokens;
  }
  return rated;
}

void choose(std::vector<RatedUnit>& units, uint32_t budget) {
  uint32_t kept = 0;
  for (RatedUnit& unit : units) {
    // White space that belongs to another unit's token costs nothing.
    unit.kept = unit.unit.must_stay || unit.tokens == 0;
    if (unit.kept) kept += unit.tokens;
  }
  std::vector<size_t> order(units.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return units[a].surprisal > units[b].surprisal; });
  for (const size_t i : order) {
    RatedUnit& unit = units[i];
    if (unit.kept || kept + unit.tokens > budget) continue;
    unit.kept = true;
    kept += unit.tokens;
  }
  if (kept > 0) return;
  // No unit is small enough: something is left of a text in any case.
  const auto first = std::ranges::find_if(order, [&](size_t i) { return units[i].tokens > 0; });
  if (first != order.end()) units[*first].kept = true;
}

void trim_end(std::string& text, std::string_view what) {
  while (!text.empty() && what.find(text.back()) != std::string_view::npos) text.pop_back();
}

// The full stop and the white space that a sentence ends with.
std::string_view ending(std::string_view sentence) {
  size_t end = sentence.size();
  while (end > 0 && std::string_view(" \n\t\r").find(sentence[end - 1]) != std::string_view::npos)
    --end;
  while (end > 0 && std::string_view(".!").find(sentence[end - 1]) != std::string_view::npos) --end;
  return sentence.substr(end);
}

// Joins what is kept. A sentence that has lost its end gets its full stop back, and a paragraph its
// line break.
std::string join(std::string_view text, std::span<const RatedUnit> units, bool whole_words) {
  std::string joined;
  bool any_of_sentence = false;
  for (size_t i = 0; i < units.size(); ++i) {
    const std::string_view words = text_of(text, units[i].unit);
    if (units[i].kept) {
      joined += words;
      any_of_sentence = true;
    }
    const bool ends = i + 1 == units.size() || units[i + 1].unit.sentence != units[i].unit.sentence;
    if (!ends) continue;
    if (!units[i].kept && whole_words) {
      const std::string_view end = ending(words);
      const bool new_line = end.find('\n') != std::string_view::npos;
      if (any_of_sentence) {
        trim_end(joined, " ,;:");
        joined += end;
      } else if (new_line && !joined.empty() && joined.back() != '\n') {
        trim_end(joined, " ");
        joined += end.substr(end.find('\n'));
      }
    }
    any_of_sentence = false;
  }
  return joined;
}

}  // namespace

bool is_compression_ratio(double ratio) { return ratio > 0 && ratio <= 1; }

std::string wrong_ratio(double ratio) {
  return fmt::format(
      "a compression ratio is the share of tokens to keep: above 0 and at most 1, "
      "not {:g}",
      ratio);
}

std::vector<CompressedPart> compress_parts(std::string_view text,
                                           std::span<const ScoredToken> tokens,
                                           std::span<const CompressPart> parts, CompressUnit unit) {
  std::vector<CompressedPart> compressed;
  for (const CompressPart& part : parts) {
    const auto first = std::ranges::lower_bound(tokens, part.begin, {}, &ScoredToken::begin);
    const auto last = std::ranges::lower_bound(tokens, part.end, {}, &ScoredToken::begin);
    std::vector<ScoredToken> own(first, last);
    for (ScoredToken& token : own) token.begin -= part.begin;
    const std::string_view words = text.substr(part.begin, part.end - part.begin);
    CompressedPart& result = compressed.emplace_back();
    result.tokens = static_cast<uint32_t>(own.size());
    if (part.ratio >= 1) {
      result.text = words;
      result.kept_tokens = result.tokens;
      continue;
    }
    std::vector<RatedUnit> units = rate_units(words, own, unit);
    choose(units, static_cast<uint32_t>(std::floor(part.ratio * result.tokens)));
    for (const RatedUnit& one : units) result.kept_tokens += one.kept ? one.tokens : 0;
    result.text = join(words, units, unit != CompressUnit::kToken);
  }
  return compressed;
}

}  // namespace hearth
