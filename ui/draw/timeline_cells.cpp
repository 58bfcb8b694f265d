#include "ui/draw/timeline_cells.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "ui/draw/plot.h"

namespace hearth {
namespace {

PhaseColor phase_of(CellState state) {
  switch (state) {
    case CellState::kPrefill:
      return PhaseColor::kPrefill;
    case CellState::kDecode:
      return PhaseColor::kDecode;
    case CellState::kPreempted:
      return PhaseColor::kPreempted;
    case CellState::kSwapped:
      return PhaseColor::kSwapped;
    case CellState::kPadding:
      return PhaseColor::kPadding;
    default:
      return PhaseColor::kWaiting;
  }
}

ImU32 forced_color(const Theme& theme) { return theme.series_color(6); }

// Tokens gained by a step that judged guesses: "3".
std::string letters_of(const TimelineCell& cell) {
  if (cell.prefix_tokens > 0) return "S";
  if (cell.forced > 0) return "F";
  if (cell.proposed > 0) return cell.accepted < 9 ? std::to_string(cell.accepted + 1) : "+";
  if (cell.recomputed > 0) return "R";
  const char letter = cell_state_letter(cell.state);
  return letter == 0 ? std::string() : std::string(1, letter);
}

void draw_letters(const Theme& theme, ImDrawList& draw, const TimelineCell& cell, ImU32 behind,
                  const CellPlace& place) {
  const std::string text = letters_of(cell);
  if (text.empty()) return;
  const ImVec2 extent = small_text_extent(text.c_str());
  if (cell.prefix_tokens > 0) behind = theme.phase_color(PhaseColor::kSharedPrefix);
  const ImU32 ink = faded(readable_on(behind), 0.75f);
  const float middle = (place.from.y + place.to.y) / 2;
  for (uint64_t i = 0; i < place.columns; ++i)
    draw_small_text(
        draw,
        {place.first_x + static_cast<float>(i) * place.pitch + (place.pitch - extent.x) / 2,
         middle - extent.y / 2},
        ink, text.c_str());
}

float share_of(uint32_t part, uint32_t whole) {
  return whole == 0 ? 0 : static_cast<float>(part) / static_cast<float>(whole);
}

// Work that gains nothing: padding, and tokens that are computed again.
void draw_hatched(const Theme& theme, ImDrawList& draw, ImVec2 from, ImVec2 to, ImU32 color) {
  draw.AddRectFilled(from, to, faded(color, 0.4f));
  draw_hatching(draw, from, to, color, theme.px(4));
}

}  // namespace

void draw_timeline_run(const Theme& theme, ImDrawList& draw, const TimelineCell& cell,
                       const CellPlace& place) {
  if (cell.state == CellState::kNone) return;
  const ImVec2 a = place.from, b = place.to;
  const float height = b.y - a.y, middle = (a.y + b.y) / 2;
  if (cell.state == CellState::kIdle) {
    draw.AddLine({a.x, middle}, {b.x, middle}, faded(theme.text_color(), 0.4f), theme.px(1.5f));
    return;
  }
  const ImU32 color = theme.phase_color(phase_of(cell.state));
  const bool runs = cell.state == CellState::kPrefill || cell.state == CellState::kDecode ||
                    cell.state == CellState::kPadding;
  // Cells that are not running are lower: a second cue besides colour.
  const float inset = runs ? std::min(theme.px(1), height / 8) : std::round(height * 0.25f);
  ImVec2 low(a.x, a.y + inset);
  const ImVec2 high(b.x, b.y - inset);
  if (cell.state == CellState::kPadding) {
    draw_hatched(theme, draw, low, high, color);
    return;
  }
  // Padding is the upper part of its row, in proportion to the row's tokens.
  if (const float share = share_of(cell.padding, cell.padding + cell.tokens); share > 0) {
    const float split = low.y + (high.y - low.y) * share;
    draw_hatched(theme, draw, low, {high.x, split}, theme.phase_color(PhaseColor::kPadding));
    low.y = split;
  }
  // So are rejected guesses, which were computed for nothing.
  if (const float share = share_of(cell.rejected(), cell.tokens); share > 0) {
    const float split = low.y + (high.y - low.y) * std::min(share, 0.8f);
    draw.AddRectFilled(low, {high.x, split}, faded(theme.warning_color(), 0.35f));
    low.y = split;
  }
  // Stripes over the colour of the phase would look grey.
  const float again = high.y - (high.y - low.y) * share_of(cell.recomputed, cell.tokens);
  draw.AddRectFilled(low, {high.x, again}, color);
  if (again < high.y)
    draw_hatched(theme, draw, {low.x, again}, high, theme.phase_color(PhaseColor::kPreempted));
  if (cell.state == CellState::kPreempted || cell.state == CellState::kSwapped)
    draw_hatching(draw, low, high, faded(readable_on(color), 0.45f), theme.px(5));
  if (const float share = share_of(cell.forced, cell.tokens); share > 0)
    draw.AddRectFilled({low.x, high.y - (high.y - low.y) * share}, high, forced_color(theme));
  if (cell.prefix_tokens > 0) {
    const float share = share_of(cell.prefix_tokens, cell.prefix_tokens + cell.tokens);
    const float from_y = high.y - std::max((high.y - low.y) * share, theme.px(3));
    draw.AddRectFilled({low.x, from_y}, high, theme.phase_color(PhaseColor::kSharedPrefix));
  }
  if (place.pitch >= theme.px(11) && height >= small_text_size() * 0.9f)
    draw_letters(theme, draw, cell, cell.forced > 0 ? forced_color(theme) : color, place);
}

std::vector<LegendEntry> timeline_legend(const Theme& theme, const TimelineData::Marks& marks) {
  using Mark = LegendEntry::Mark;
  const auto phase = [&](PhaseColor color, Mark mark, char letter) {
    return LegendEntry{phase_name(color), theme.phase_color(color), mark, letter};
  };
  std::vector<LegendEntry> entries = {
      phase(PhaseColor::kPrefill, Mark::kSquare, 'P'),
      phase(PhaseColor::kDecode, Mark::kSquare, 'D'),
      phase(PhaseColor::kSharedPrefix, Mark::kSquare, 'S'),
      phase(PhaseColor::kWaiting, Mark::kSquare, 'w'),
      phase(PhaseColor::kPreempted, Mark::kSquare, 'x'),
      phase(PhaseColor::kSwapped, Mark::kSquare, 's'),
      {"idle", faded(theme.text_color(), 0.5f), Mark::kLine, 0},
      phase(PhaseColor::kPadding, Mark::kHatched, 0),
  };
  if (marks.recomputed)
    entries.push_back({"recomputed", theme.phase_color(PhaseColor::kPreempted), Mark::kHatched, 0});
  if (marks.rejected)
    entries.push_back({"rejected guesses", faded(theme.warning_color(), 0.35f), Mark::kSquare, 0});
  if (marks.forced)
    entries.push_back({"forced by a grammar", forced_color(theme), Mark::kSquare, 'F'});
  return entries;
}

}  // namespace hearth
