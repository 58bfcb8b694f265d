// KV blocks: the pool, block by block, and as it would look under reservation.
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
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr PanelInfo kKvBlocksInfo{.name = "KV blocks",
                          .key = "kv",
                          .region = Region::kMiddle,
                          .order = 0,
                          .about = "every block of the KV cache, and who has it"};

class KvBlocksPanel : public Panel {
 public:
  KvBlocksPanel() : Panel(kKvBlocksInfo) {}

  void update(const PanelContext& context) override {
    data_.update(context.view);
    if (asked_) return;
    asked_ = true;
    reservation_ = context.settings.get("kv.reservation", false);
  }

  void draw(const PanelContext& context) override {
    const Theme& theme = context.theme;
    draw_numbers(context);
    if (data_.has_details()) {
      same_line_if_room(checkbox_width("Under reservation"), theme.px(18));
      if (ImGui::Checkbox("Under reservation", &reservation_))
        context.settings.set("kv.reservation", reservation_);
      ImGui::SetItemTooltip(
          "The same requests if each had the blocks of its longest possible answer\n"
          "set aside from the start, as engines without paging do");
    }
    draw_key(theme);
    if (data_.numbers().blocks == 0) {
      ImGui::TextDisabled("There is no pool yet.");
      return;
    }
    ImVec2 room = ImGui::GetContentRegionAvail();
    room.y = std::max(room.y, theme.px(64));
    if (!data_.has_details()) {
      ImGui::TextDisabled(
          "This engine tells counts only: cells are in order of use, not of place.");
      draw_counts(theme);
    } else if (!reservation_) {
      draw_pool(context, {0, room.y});
    } else if (room.x > 2.2f * room.y) {
      const float half = (room.x - theme.px(16)) / 2;
      ImGui::BeginGroup();
      draw_title(theme, "as it is", data_.numbers());
      draw_pool(context, {half, room.y - ImGui::GetTextLineHeightWithSpacing()});
      ImGui::EndGroup();
      ImGui::SameLine(0, theme.px(16));
      ImGui::BeginGroup();
      draw_title(theme, "under reservation", data_.reserved_numbers());
      draw_reservation(context, {half, room.y - ImGui::GetTextLineHeightWithSpacing()});
      ImGui::EndGroup();
    } else {
      draw_title(theme, "as it is", data_.numbers());
      draw_pool(context, {0, std::max((ImGui::GetContentRegionAvail().y -
                                       2 * ImGui::GetTextLineHeightWithSpacing()) /
                                          2,
                                      theme.px(40))});
      draw_title(theme, "under reservation", data_.reserved_numbers());
      draw_reservation(context, {0, std::max(ImGui::GetContentRegionAvail().y, theme.px(40))});
    }
  }

  void report(ValueSink& values) const override {
    const PoolNumbers& numbers = data_.numbers();
    values.set("blocks", numbers.blocks);
    values.set("free", numbers.free);
    values.set("cached", numbers.cached);
    values.set("owned", numbers.owned);
    values.set("shared", numbers.shared);
    values.set("withheld", numbers.withheld);
    values.set("tokens", static_cast<double>(numbers.tokens));
    values.set("wasted", static_cast<double>(numbers.wasted));
    values.set("wasted_share", numbers.wasted_share());
    values.set("saved", static_cast<double>(numbers.saved_blocks));
    values.set("copies", static_cast<double>(data_.copies()));
    values.set("details", data_.has_details() ? "yes" : "no");
    values.set("reservation", reservation_ ? "yes" : "no");
    values.set("reserved_blocks", data_.reserved_numbers().owned);
    values.set("reserved_wasted_share", data_.reserved_numbers().wasted_share());
    values.set("left_out", data_.left_out());
  }

 private:
  void draw_numbers(const PanelContext& context) {
    const PoolNumbers& numbers = data_.numbers();
    std::vector<Tile> tiles = {
        {"used", fmt::format("{} of {}", numbers.owned, numbers.blocks),
         fmt::format("blocks that sequences hold: {}, of {} tokens each",
                     format_value(numbers.used_share(), Unit::kShare), kTokensPerBlock)},
        {"cached", std::to_string(numbers.cached),
         "blocks of ended requests, kept for prompts that begin the same"},
        {"free", std::to_string(numbers.free),
         data_.has_details() ? fmt::format("in {} stretches, the longest {} blocks: it does not "
                                           "matter where they are",
                                           numbers.free_stretches, numbers.longest_free)
                             : std::string()},
        {"shared", std::to_string(numbers.shared),
         fmt::format("blocks in use by more than one sequence; {} more would be needed without",
                     numbers.saved_blocks)},
        {"wasted places",
         fmt::format("{} ({})", numbers.wasted, format_value(numbers.wasted_share(), Unit::kShare)),
         "token places in used blocks that no token is in: internal fragmentation"},
        {"copied", fmt::format("{}", data_.copies()),
         "blocks copied because a sequence wrote into one it shared"},
    };
    if (numbers.withheld > 0)
      tiles.push_back({"withheld", std::to_string(numbers.withheld),
                       "blocks beyond the pool size that was set"});
    draw_tiles(context.theme, tiles);
  }

  void draw_key(const Theme& theme) {
    using Mark = LegendEntry::Mark;
    std::vector<LegendEntry> entries = {
        {"free", theme.phase_color(PhaseColor::kFree)},
        {"cached", theme.phase_color(PhaseColor::kCached)},
        {"owned, colour of its sequence", theme.sequence_color(1)},
        {"shared, by so many", theme.phase_color(PhaseColor::kSharedPrefix), Mark::kFrame, '2'},
        {"copied just now", theme.warning_color(), Mark::kFrame, 0},
    };
    if (!data_.has_details()) {
      entries[2].text = "owned";
      entries.resize(3);
    }
    if (reservation_ && data_.has_details())
      entries.push_back({"set aside, no token yet", theme.text_color(), Mark::kHatched, 0});
    if (data_.numbers().withheld > 0)
      entries.push_back({"withheld", faded(theme.text_color(), 0.3f), Mark::kFrame, 'x'});
    draw_legend(theme, entries);
  }

  void draw_title(const Theme& theme, const char* name, const PoolNumbers& numbers) {
    std::string text = fmt::format("{}: {} of {}, {} wasted", name, numbers.owned, numbers.blocks,
                                   format_value(numbers.wasted_share(), Unit::kShare));
    if (&numbers == &data_.reserved_numbers() && data_.left_out() > 0)
      text += fmt::format(", {} of {} running would wait", data_.left_out(), data_.running());
    ImGui::PushStyleColor(ImGuiCol_Text, faded(theme.text_color(), 0.8f));
    ImGui::TextUnformatted(text.c_str());
    ImGui::PopStyleColor();
  }

  // A child that scrolls where the cells are too many, and what of them is seen.
  struct Sheet {
    CellGrid grid;
    ImVec2 corner;
    size_t first = 0, end = 0;
    size_t hovered = 0;  // grid.cells: none
    bool clicked = false;
    ImDrawList* draw = nullptr;
  };
  Sheet begin_sheet(const Theme& theme, const char* id, ImVec2 size, size_t cells) {
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
    ImGui::BeginChild(id, size, 0, ImGuiWindowFlags_NoMove);
    ImGui::PopStyleVar();
    Sheet sheet;
    const ImVec2 room = ImGui::GetContentRegionAvail();
    sheet.grid = CellGrid::fit(cells, room, theme.px(2), theme.px(24));
    sheet.corner = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton(
        fmt::format("{} cells", id).c_str(),
        {std::max(sheet.grid.width(), 1.0f), std::max(sheet.grid.height(), 1.0f)});
    const ImVec2 mouse = ImGui::GetMousePos();
    sheet.hovered = ImGui::IsItemHovered()
                        ? sheet.grid.at({mouse.x - sheet.corner.x, mouse.y - sheet.corner.y})
                        : sheet.grid.cells;
    sheet.clicked = ImGui::IsItemClicked() && sheet.hovered < cells;
    sheet.draw = ImGui::GetWindowDrawList();
    const float top = ImGui::GetWindowPos().y - sheet.corner.y;
    std::tie(sheet.first, sheet.end) = sheet.grid.visible(top, top + ImGui::GetWindowHeight());
    return sheet;
  }
  void end_sheet(Sheet& sheet) {
    if (sheet.hovered < sheet.grid.cells) outline(sheet, sheet.hovered, hover_color_, 2);
    ImGui::EndChild();
  }
  static ImVec2 corner_of(const Sheet& sheet, size_t cell) {
    const ImVec2 at = sheet.grid.corner(cell);
    return {sheet.corner.x + at.x, sheet.corner.y + at.y};
  }
  static void outline(const Sheet& sheet, size_t cell, ImU32 color, float thickness) {
    const ImVec2 at = corner_of(sheet, cell);
    const float end = sheet.grid.pitch - (sheet.grid.gaps ? 1.0f : 0.0f);
    sheet.draw->AddRect(at, {at.x + end, at.y + end}, color, 0, 0, thickness);
  }
  static void text_in(const Sheet& sheet, size_t cell, ImU32 color, const std::string& text) {
    const ImVec2 at = corner_of(sheet, cell), extent = small_text_extent(text.c_str());
    draw_small_text(*sheet.draw,
                    {at.x + (sheet.grid.pitch - 1 - extent.x) / 2,
                     at.y + (sheet.grid.pitch - 1 - extent.y) / 2},
                    color, text.c_str());
  }

  // The marked request, if it has blocks: else nothing is dimmed for it.
  static RequestId marked_owner(const PanelContext& context) {
    const RequestId marked = context.selection.marked();
    for (const SequenceView& sequence : context.view.sequences)
      if (sequence.id == marked && sequence.state == SequenceState::kRunning) return marked;
    return 0;
  }

  void draw_pool(const PanelContext& context, ImVec2 size) {
    const Theme& theme = context.theme;
    const std::vector<BlockView>& cells = context.view.blocks;
    Sheet sheet = begin_sheet(theme, "pool", size, cells.size());
    hover_color_ = theme.text_color();
    const RequestId marked = marked_owner(context);
    const auto owner_color = [&](RequestId owner) {
      const ImU32 color = theme.sequence_color(owner);
      return marked != 0 && owner != marked ? faded(color, 0.35f) : color;
    };
    const bool frames = sheet.grid.pitch >= theme.px(6);
    {
      CellPainter painter(sheet.grid, *sheet.draw, sheet.corner);
      for (size_t i = sheet.first; i < sheet.end; ++i) {
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
    // Tokens in blocks that are not full, from below.
    for (size_t i = sheet.first; i < sheet.end; ++i) {
      const BlockView& cell = cells[i];
      if (cell.state != BlockState::kOwned || cell.filled == 0 || cell.filled >= kTokensPerBlock)
        continue;
      const ImVec2 at = corner_of(sheet, i);
      const float tall =
          sheet.grid.pitch * static_cast<float>(cell.filled) / static_cast<float>(kTokensPerBlock);
      sheet.draw->AddRectFilled({at.x, at.y + sheet.grid.pitch - tall},
                                {at.x + sheet.grid.pitch, at.y + sheet.grid.pitch},
                                owner_color(cell.owner));
    }
    draw_cell_gaps(sheet.grid, *sheet.draw, sheet.corner, sheet.first, sheet.end,
                   ImGui::GetColorU32(ImGuiCol_ChildBg));
    if (frames) draw_frames(context, sheet, marked);
    if (sheet.hovered < cells.size()) hover_block(context, sheet, cells[sheet.hovered]);
    end_sheet(sheet);
  }

  // What is told by frames and figures, where there is room for them.
  void draw_frames(const PanelContext& context, const Sheet& sheet, RequestId marked) {
    const Theme& theme = context.theme;
    const std::vector<BlockView>& cells = context.view.blocks;
    for (size_t i = sheet.first; i < sheet.end; ++i) {
      const BlockView& cell = cells[i];
      if (cell.state == BlockState::kWithheld) {
        outline(sheet, i, faded(theme.text_color(), 0.3f), 1);
        if (sheet.grid.pitch >= theme.px(12))
          text_in(sheet, i, faded(theme.text_color(), 0.3f), "x");
      }
      if (cell.state != BlockState::kOwned) continue;
      if (cell.references > 1) {
        outline(sheet, i, theme.phase_color(PhaseColor::kSharedPrefix), theme.px(2));
        if (sheet.grid.pitch >= theme.px(13))
          text_in(sheet, i, readable_on(theme.sequence_color(cell.owner)),
                  cell.references < 100 ? std::to_string(cell.references) : "+");
      }
      if (marked != 0 && cell.owner == marked) outline(sheet, i, theme.text_color(), theme.px(1));
      if (data_.just_copied(static_cast<uint32_t>(i)))
        outline(sheet, i, theme.warning_color(), theme.px(2));
    }
  }

  void hover_block(const PanelContext& context, const Sheet& sheet, const BlockView& cell) {
    if (cell.state == BlockState::kOwned) {
      context.selection.next_hovered = cell.owner;
      if (sheet.clicked)
        context.selection.pinned = context.selection.pinned == cell.owner ? 0 : cell.owner;
    }
    if (!ImGui::BeginTooltip()) return;
    ImGui::Text("Block %zu", sheet.hovered);
    switch (cell.state) {
      case BlockState::kFree:
        ImGui::TextDisabled("free");
        break;
      case BlockState::kWithheld:
        ImGui::TextDisabled("withheld: beyond the pool size that was set");
        break;
      case BlockState::kCached:
        ImGui::Text("cached, last of #%llu", static_cast<unsigned long long>(cell.owner));
        break;
      case BlockState::kOwned:
        if (cell.references > 1)
          ImGui::Text("of #%llu, shared by %u", static_cast<unsigned long long>(cell.owner),
                      cell.references);
        else
          ImGui::Text("of #%llu", static_cast<unsigned long long>(cell.owner));
        break;
    }
    if (cell.state == BlockState::kOwned || cell.state == BlockState::kCached) {
      ImGui::Text("%u of %u tokens", cell.filled, kTokensPerBlock);
      if (cell.hash != 0)
        ImGui::Text("hash %016llx", static_cast<unsigned long long>(cell.hash));
      else
        ImGui::TextDisabled("no hash: not full, or not to be found");
      ImGui::Text("last read %llu steps ago, in step %llu",
                  static_cast<unsigned long long>(data_.age(cell)),
                  static_cast<unsigned long long>(cell.last_use));
      if (data_.just_copied(static_cast<uint32_t>(sheet.hovered)))
        ImGui::TextUnformatted("a copy: its sequence wrote into a block it shared");
    }
    for (const SequenceView& sequence : context.view.sequences) {
      if (cell.state != BlockState::kOwned || sequence.id != cell.owner) continue;
      ImGui::TextDisabled("#%llu has %u of at most %u tokens in %u blocks",
                          static_cast<unsigned long long>(sequence.id), sequence.computed,
                          sequence.max_tokens, sequence.blocks);
      break;
    }
    ImGui::EndTooltip();
  }

  void draw_reservation(const PanelContext& context, ImVec2 size) {
    const Theme& theme = context.theme;
    const PoolNumbers& numbers = data_.reserved_numbers();
    Sheet sheet = begin_sheet(theme, "reserved pool", size, numbers.blocks);
    hover_color_ = theme.text_color();
    const RequestId marked = marked_owner(context);
    {
      CellPainter painter(sheet.grid, *sheet.draw, sheet.corner);
      for (size_t i = sheet.first; i < sheet.end; ++i) {
        const BlockMap::Reservation* in = data_.reservation_at(i);
        ImU32 color =
            i + numbers.withheld < numbers.blocks ? theme.phase_color(PhaseColor::kFree) : 0;
        if (in) {
          color = theme.sequence_color(in->request);
          if (marked != 0 && in->request != marked) color = faded(color, 0.35f);
          if (i >= in->first + in->filled) color = faded(color, 0.3f);
        }
        painter.add(i, color);
      }
    }
    hatch_reserved(theme, sheet);
    draw_cell_gaps(sheet.grid, *sheet.draw, sheet.corner, sheet.first, sheet.end,
                   ImGui::GetColorU32(ImGuiCol_ChildBg));
    if (const BlockMap::Reservation* in =
            sheet.hovered < sheet.grid.cells ? data_.reservation_at(sheet.hovered) : nullptr) {
      context.selection.next_hovered = in->request;
      if (sheet.clicked)
        context.selection.pinned = context.selection.pinned == in->request ? 0 : in->request;
      if (ImGui::BeginTooltip()) {
        ImGui::Text("Set aside for #%llu", static_cast<unsigned long long>(in->request));
        ImGui::Text("%u blocks, %u of them with a token (%u tokens)", in->blocks, in->filled,
                    in->tokens);
        ImGui::EndTooltip();
      }
    }
    end_sheet(sheet);
  }

  // Stripes over blocks that are set aside for tokens that may never come.
  void hatch_reserved(const Theme& theme, const Sheet& sheet) {
    const size_t columns = sheet.grid.columns;
    for (const BlockMap::Reservation& in : data_.reservations()) {
      const size_t end = std::min<size_t>(size_t{in.first} + in.blocks, sheet.end);
      for (size_t i = std::max<size_t>(in.first + in.filled, sheet.first); i < end;) {
        const size_t row_end = std::min(end, (i / columns + 1) * columns);
        const ImVec2 from = corner_of(sheet, i);
        const ImVec2 to(from.x + static_cast<float>(row_end - i) * sheet.grid.pitch,
                        from.y + sheet.grid.pitch - (sheet.grid.gaps ? 2 : 0));
        draw_hatching(*sheet.draw, from, to, faded(theme.sequence_color(in.request), 0.8f),
                      theme.px(6));
        i = row_end;
      }
    }
  }

  void draw_counts(const Theme& theme) {
    const PoolNumbers& numbers = data_.numbers();
    Sheet sheet = begin_sheet(theme, "pool counts", {0, 0}, numbers.blocks);
    hover_color_ = 0;
    {
      CellPainter painter(sheet.grid, *sheet.draw, sheet.corner);
      for (size_t i = sheet.first; i < sheet.end; ++i)
        painter.add(i, i < numbers.owned                    ? theme.sequence_color(1)
                       : i < numbers.owned + numbers.cached ? theme.phase_color(PhaseColor::kCached)
                                                            : theme.phase_color(PhaseColor::kFree));
    }
    draw_cell_gaps(sheet.grid, *sheet.draw, sheet.corner, sheet.first, sheet.end,
                   ImGui::GetColorU32(ImGuiCol_ChildBg));
    end_sheet(sheet);
  }

  BlockMap data_;
  bool reservation_ = false, asked_ = false;
  ImU32 hover_color_ = 0;
};

const PanelRegistration kKvBlocksRegistration([] { return std::make_unique<KvBlocksPanel>(); });

}  // namespace
}  // namespace hearth
