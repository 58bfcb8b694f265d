// KV blocks: the pool, block by block, and how it would look under reservation.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ui/data/axis.h"
#include "ui/data/block_map.h"
#include "ui/data/settings.h"
#include "ui/draw/cells.h"
#include "ui/draw/legend.h"
#include "ui/draw/plot.h"
#include "ui/draw/tiles.h"
#include "ui/panel.h"
#include "ui/panels/kv_block_tooltip.h"
#include "ui/panels/kv_host_blocks.h"
#include "ui/panels/kv_tree.h"
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr PanelInfo kKvBlocksInfo{
    .name = "KV blocks",
    .key = "kv",
    .region = Region::kMiddle,
    .order = 0,
    .description = "Every KV block of the pool and the sequence that owns it."};

constexpr float kFrame = 2;  // thickness around a shared block, at scale 1
constexpr const char* kTree = "Sharing as a tree";
constexpr const char* kCompare = "If reserved";

class KvBlocksPanel : public Panel {
 public:
  KvBlocksPanel() : Panel(kKvBlocksInfo) {}

  void update(const PanelContext& context) override {
    data_.update(context.view);
    if (settings_read_) return;
    settings_read_ = true;
    reservation_ = context.settings.get("kv.reservation", false);
  }

  void draw(const PanelContext& context) override {
    const Theme& theme = context.theme;
    draw_numbers(context);
    if (data_.has_snapshot()) {
      same_line_if_fits(checkbox_width(kCompare), theme.px(18));
      if (outlined_checkbox(kCompare, &reservation_))
        context.settings.set("kv.reservation", reservation_);
      ImGui::SetItemTooltip(
          "Also show how the same requests would fill the pool if each reserved blocks for its\n"
          "longest possible answer at admission, as engines without paging do.");
    }
    if (data_.has_snapshot()) {
      same_line_if_fits(checkbox_width(kTree), theme.px(18));
      outlined_checkbox(kTree, &tree_);
      ImGui::SetItemTooltip(
          "Show the sequences that share blocks as a tree: the branches of a beam search, or\n"
          "requests with a common prefix. A block that several share is drawn once.");
    }
    draw_pool_legend(theme, context.view.counts.blocks_reserved > 0);
    if (data_.stats().blocks == 0) {
      ImGui::TextDisabled("No engine is running yet.");
      return;
    }
    if (const char* words = no_cache_words(context.view)) ImGui::TextDisabled("%s", words);
    draw_host_blocks(context);
    ImVec2 room = ImGui::GetContentRegionAvail();
    room.y = std::max(room.y, theme.px(40));
    if (!data_.has_snapshot()) {
      ImGui::TextDisabled("This server reports only counts, so blocks are grouped by state.");
      draw_counts(theme);
    } else if (tree_) {
      draw_block_tree(context);
    } else if (!reservation_) {
      draw_pool(context, {0, room.y});
    } else if (room.x > 2.2f * room.y) {
      const float half = (room.x - theme.px(16)) / 2;
      ImGui::BeginGroup();
      draw_title(theme, "now", data_.stats());
      draw_pool(context, {half, room.y - ImGui::GetTextLineHeightWithSpacing()});
      ImGui::EndGroup();
      ImGui::SameLine(0, theme.px(16));
      ImGui::BeginGroup();
      draw_title(theme, "reserved", data_.reserved_stats());
      draw_reservation(context, {half, room.y - ImGui::GetTextLineHeightWithSpacing()});
      ImGui::EndGroup();
    } else {
      draw_title(theme, "now", data_.stats());
      draw_pool(context, {0, std::max((ImGui::GetContentRegionAvail().y -
                                       2 * ImGui::GetTextLineHeightWithSpacing()) /
                                          2,
                                      theme.px(40))});
      draw_title(theme, "reserved", data_.reserved_stats());
      draw_reservation(context, {0, std::max(ImGui::GetContentRegionAvail().y, theme.px(40))});
    }
  }

  void report(ValueSink& values) const override {
    const PoolStats& stats = data_.stats();
    values.set("blocks", stats.blocks);
    values.set("free", stats.free);
    values.set("cached", stats.cached);
    values.set("owned", stats.owned);
    values.set("shared", stats.shared);
    values.set("withheld", stats.withheld);
    values.set("tokens", static_cast<double>(stats.tokens));
    values.set("wasted_slots", static_cast<double>(stats.wasted_slots));
    values.set("wasted_share", stats.wasted_share());
    values.set("saved_blocks", static_cast<double>(stats.saved_blocks));
    values.set("copies", static_cast<double>(data_.copies()));
    values.set("snapshot", data_.has_snapshot() ? "yes" : "no");
    values.set("reservation", reservation_ ? "yes" : "no");
    values.set("reserved_blocks", data_.reserved_stats().owned);
    values.set("reserved_wasted_share", data_.reserved_stats().wasted_share());
    values.set("would_wait", data_.would_wait());
  }

 private:
  void draw_numbers(const PanelContext& context) {
    const PoolStats& stats = data_.stats();
    std::vector<NamedNumber> tiles = {
        {"used", fmt::format("{} of {}", stats.owned, stats.blocks),
         fmt::format("Blocks owned by sequences: {} of the pool. A block holds {} tokens.",
                     format_value(stats.used_share(), Unit::kShare), kTokensPerBlock),
         true},
        {"cached", std::to_string(stats.cached),
         "Blocks of ended requests, kept in the prefix cache for prompts with the same prefix."},
        {"free", std::to_string(stats.free),
         data_.has_snapshot() ? fmt::format("Free blocks, in {} runs; the longest has {} blocks. "
                                            "Paging needs no contiguous space.",
                                            stats.free_runs, stats.longest_free_run)
                              : std::string()},
        {"shared", std::to_string(stats.shared),
         fmt::format("Blocks used by more than one sequence. Sharing saves {} blocks.",
                     stats.saved_blocks)},
        {"KV waste",
         fmt::format("{} ({})", stats.wasted_slots,
                     format_value(stats.wasted_share(), Unit::kShare)),
         "Token places in used blocks that hold no token: internal fragmentation."},
        {"copied", fmt::format("{}", data_.copies()),
         "Blocks copied because a sequence wrote to a block it shared (copy-on-write)."},
    };
    if (stats.withheld > 0)
      tiles.push_back({"withheld", std::to_string(stats.withheld),
                       "Blocks outside the pool because its size limit was lowered."});
    draw_tiles(context.theme, tiles);
  }

  void draw_pool_legend(const Theme& theme, bool some_are_empty) {
    using Mark = LegendEntry::Mark;
    std::vector<LegendEntry> entries = {
        {"free", theme.phase_color(PhaseColor::kFree)},
        {"cached", theme.phase_color(PhaseColor::kCached)},
        {"owned, in its sequence's colour", theme.sequence_color(1)},
        {"shared by N sequences", theme.phase_color(PhaseColor::kSharedPrefix), Mark::kFrame, '2'},
        {"recently copied", theme.warning_color(), Mark::kFrame, 0},
    };
    if (!data_.has_snapshot()) {
      entries[2].text = "owned";
      entries.resize(3);
    }
    if (data_.has_snapshot() && some_are_empty)
      entries.push_back({"owned, no token yet", faded(theme.sequence_color(1), 0.3f)});
    if (reservation_ && data_.has_snapshot())
      entries.push_back({"reserved, no token yet", theme.text_color(), Mark::kHatched, 0});
    if (data_.stats().withheld > 0)
      entries.push_back({"withheld", faded(theme.text_color(), 0.3f), Mark::kFrame, 'x'});
    draw_legend(theme, entries);
  }

  void draw_title(const Theme& theme, const char* name, const PoolStats& stats) {
    std::string text = fmt::format("{}: {} of {}, {} wasted", name, stats.owned, stats.blocks,
                                   format_value(stats.wasted_share(), Unit::kShare));
    if (&stats == &data_.reserved_stats() && data_.would_wait() > 0)
      text += fmt::format(", {} of {} would wait", data_.would_wait(), data_.running());
    ImGui::PushStyleColor(ImGuiCol_Text, faded(theme.text_color(), 0.8f));
    ImGui::TextUnformatted(text.c_str());
    ImGui::PopStyleColor();
  }

  // A child window that scrolls if there are too many cells, and the range of visible ones.
  struct GridView {
    CellGrid grid;
    ImVec2 corner;
    size_t first = 0, end = 0;
    size_t hovered = 0;  // grid.cells if none
    bool clicked = false;
    ImDrawList* draw = nullptr;
  };
  GridView begin_grid(const Theme& theme, const char* id, ImVec2 size, size_t cells) {
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
    ImGui::BeginChild(id, size, 0, ImGuiWindowFlags_NoMove);
    ImGui::PopStyleVar();
    GridView view;
    view.grid = CellGrid::fit(cells, ImGui::GetContentRegionAvail(), theme.px(2), theme.px(48));
    view.corner = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton(fmt::format("{} cells", id).c_str(),
                           {std::max(view.grid.width(), 1.0f), std::max(view.grid.height(), 1.0f)});
    const ImVec2 mouse = ImGui::GetMousePos();
    view.hovered = ImGui::IsItemHovered()
                       ? view.grid.at({mouse.x - view.corner.x, mouse.y - view.corner.y})
                       : view.grid.cells;
    view.clicked = ImGui::IsItemClicked() && view.hovered < cells;
    view.draw = ImGui::GetWindowDrawList();
    const float top = ImGui::GetWindowPos().y - view.corner.y;
    std::tie(view.first, view.end) = view.grid.visible(top, top + ImGui::GetWindowHeight());
    return view;
  }
  void end_grid(GridView& view) {
    if (view.hovered < view.grid.cells) outline(view, view.hovered, hover_color_, 2);
    ImGui::EndChild();
  }
  static ImVec2 corner_of(const GridView& view, size_t cell) {
    const ImVec2 at = view.grid.corner(cell);
    return {view.corner.x + at.x, view.corner.y + at.y};
  }
  static void outline(const GridView& view, size_t cell, ImU32 color, float thickness) {
    const ImVec2 at = corner_of(view, cell);
    const float end = view.grid.pitch - (view.grid.gaps ? 1.0f : 0.0f);
    view.draw->AddRect(at, {at.x + end, at.y + end}, color, 0, 0, thickness);
  }
  // Only if it covers no more than half of the cell's frame.
  static void draw_cell_text(const Theme& theme, const GridView& view, size_t cell, ImU32 color,
                             const std::string& text) {
    const float side = view.grid.pitch - 1, room = side - theme.px(kFrame);
    if (room < small_text_size() / 2) return;
    const ImVec2 at = corner_of(view, cell), extent = small_text_extent(text.c_str());
    if (extent.x > room) return;
    draw_small_text(*view.draw, {at.x + (side - extent.x) / 2, at.y + (side - extent.y) / 2}, color,
                    text.c_str());
  }

  // The marked request if it owns blocks; otherwise 0, so that nothing is dimmed.
  static RequestId marked_owner(const PanelContext& context) {
    const RequestId marked = context.selection.marked();
    for (const SequenceView& sequence : context.view.sequences)
      if (sequence.id == marked && sequence.state == SequenceState::kRunning) return marked;
    return 0;
  }

  void draw_pool(const PanelContext& context, ImVec2 size) {
    const Theme& theme = context.theme;
    const std::vector<BlockView>& cells = context.view.blocks;
    GridView view = begin_grid(theme, "pool", size, cells.size());
    hover_color_ = theme.text_color();
    const RequestId marked = marked_owner(context);
    const auto owner_color = [&](RequestId owner) {
      const ImU32 color = theme.sequence_color(owner);
      return marked != 0 && owner != marked ? faded(color, 0.35f) : color;
    };
    const bool frames = view.grid.pitch >= theme.px(6);
    {
      CellPainter painter(view.grid, *view.draw, view.corner);
      for (size_t i = view.first; i < view.end; ++i) {
        const BlockView& cell = cells[i];
        ImU32 color = 0;
        if (cell.state == BlockState::kFree) color = theme.phase_color(PhaseColor::kFree);
        if (cell.state == BlockState::kCached) color = theme.phase_color(PhaseColor::kCached);
        if (cell.state == BlockState::kOwned) {
          color = owner_color(cell.owner);
          if (cell.filled < kTokensPerBlock) color = faded(color, 0.3f);
          if (cell.references > 1 && !frames) color = theme.phase_color(PhaseColor::kSharedPrefix);
        }
        painter.add(i, color);
      }
    }
    // Partly filled blocks are drawn as bars from the bottom.
    for (size_t i = view.first; i < view.end; ++i) {
      const BlockView& cell = cells[i];
      if (cell.state != BlockState::kOwned || cell.filled == 0 || cell.filled >= kTokensPerBlock)
        continue;
      const ImVec2 at = corner_of(view, i);
      const float bar_height =
          view.grid.pitch * static_cast<float>(cell.filled) / static_cast<float>(kTokensPerBlock);
      view.draw->AddRectFilled({at.x, at.y + view.grid.pitch - bar_height},
                               {at.x + view.grid.pitch, at.y + view.grid.pitch},
                               owner_color(cell.owner));
    }
    draw_cell_gaps(view.grid, *view.draw, view.corner, view.first, view.end,
                   ImGui::GetColorU32(ImGuiCol_ChildBg));
    if (frames) draw_frames(context, view, marked);
    if (view.hovered < cells.size()) hover_block(context, view, cells[view.hovered]);
    end_grid(view);
  }

  // Frames and figures, if the cells are large enough.
  void draw_frames(const PanelContext& context, const GridView& view, RequestId marked) {
    const Theme& theme = context.theme;
    const std::vector<BlockView>& cells = context.view.blocks;
    for (size_t i = view.first; i < view.end; ++i) {
      const BlockView& cell = cells[i];
      if (cell.state == BlockState::kWithheld) {
        outline(view, i, faded(theme.text_color(), 0.3f), 1);
        draw_cell_text(theme, view, i, faded(theme.text_color(), 0.3f), "x");
      }
      if (cell.state != BlockState::kOwned) continue;
      if (cell.references > 1) {
        outline(view, i, theme.phase_color(PhaseColor::kSharedPrefix), theme.px(kFrame));
        draw_cell_text(theme, view, i, readable_on(theme.sequence_color(cell.owner)),
                       cell.references < 100 ? std::to_string(cell.references) : "+");
      }
      if (marked != 0 && cell.owner == marked) outline(view, i, theme.text_color(), theme.px(1));
      if (data_.recently_copied(static_cast<uint32_t>(i)))
        outline(view, i, theme.warning_color(), theme.px(2));
    }
  }

  void hover_block(const PanelContext& context, const GridView& view, const BlockView& cell) {
    if (cell.state == BlockState::kOwned) {
      context.selection.next_hovered = cell.owner;
      if (view.clicked)
        context.selection.pinned = context.selection.pinned == cell.owner ? 0 : cell.owner;
    }
    draw_block_tooltip(context.view, data_, view.hovered);
  }

  void draw_reservation(const PanelContext& context, ImVec2 size) {
    const Theme& theme = context.theme;
    const PoolStats& stats = data_.reserved_stats();
    GridView view = begin_grid(theme, "reserved pool", size, stats.blocks);
    hover_color_ = theme.text_color();
    const RequestId marked = marked_owner(context);
    {
      CellPainter painter(view.grid, *view.draw, view.corner);
      for (size_t i = view.first; i < view.end; ++i) {
        const BlockMap::Reservation* in = data_.reservation_at(i);
        ImU32 color = i + stats.withheld < stats.blocks ? theme.phase_color(PhaseColor::kFree) : 0;
        if (in) {
          color = theme.sequence_color(in->request);
          if (marked != 0 && in->request != marked) color = faded(color, 0.35f);
          if (i >= in->first + in->filled) color = faded(color, 0.3f);
        }
        painter.add(i, color);
      }
    }
    hatch_reserved(theme, view);
    draw_cell_gaps(view.grid, *view.draw, view.corner, view.first, view.end,
                   ImGui::GetColorU32(ImGuiCol_ChildBg));
    if (const BlockMap::Reservation* in =
            view.hovered < view.grid.cells ? data_.reservation_at(view.hovered) : nullptr) {
      context.selection.next_hovered = in->request;
      if (view.clicked)
        context.selection.pinned = context.selection.pinned == in->request ? 0 : in->request;
      if (ImGui::BeginTooltip()) {
        ImGui::Text("Reserved for request #%llu", static_cast<unsigned long long>(in->request));
        ImGui::Text("%u blocks, of which %u hold its %u tokens", in->blocks, in->filled,
                    in->tokens);
        ImGui::EndTooltip();
      }
    }
    end_grid(view);
  }

  // Stripes over blocks reserved for tokens that may never come.
  void hatch_reserved(const Theme& theme, const GridView& view) {
    const size_t columns = view.grid.columns;
    for (const BlockMap::Reservation& in : data_.reservations()) {
      const size_t end = std::min<size_t>(size_t{in.first} + in.blocks, view.end);
      for (size_t i = std::max<size_t>(in.first + in.filled, view.first); i < end;) {
        const size_t row_end = std::min(end, (i / columns + 1) * columns);
        const ImVec2 from = corner_of(view, i);
        const ImVec2 to(from.x + static_cast<float>(row_end - i) * view.grid.pitch,
                        from.y + view.grid.pitch - (view.grid.gaps ? 2 : 0));
        draw_hatching(*view.draw, from, to, faded(theme.sequence_color(in.request), 0.8f),
                      theme.px(6));
        i = row_end;
      }
    }
  }

  void draw_counts(const Theme& theme) {
    const PoolStats& stats = data_.stats();
    GridView view = begin_grid(theme, "pool counts", {0, 0}, stats.blocks);
    hover_color_ = 0;
    {
      CellPainter painter(view.grid, *view.draw, view.corner);
      for (size_t i = view.first; i < view.end; ++i)
        painter.add(i, i < stats.owned                  ? theme.sequence_color(1)
                       : i < stats.owned + stats.cached ? theme.phase_color(PhaseColor::kCached)
                                                        : theme.phase_color(PhaseColor::kFree));
    }
    draw_cell_gaps(view.grid, *view.draw, view.corner, view.first, view.end,
                   ImGui::GetColorU32(ImGuiCol_ChildBg));
    end_grid(view);
  }

  BlockMap data_;
  bool reservation_ = false, settings_read_ = false, tree_ = false;
  ImU32 hover_color_ = 0;
};

const PanelRegistration kKvBlocksRegistration([] { return std::make_unique<KvBlocksPanel>(); });

}  // namespace
}  // namespace hearth
