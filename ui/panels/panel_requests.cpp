// Requests: all current requests and the most recently ended ones, with state, progress and times.
// Current requests can be given another priority or cancelled.
#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_internal.h>

#include "ui/data/request_rows.h"
#include "ui/draw/tiles.h"
#include "ui/engine_host.h"
#include "ui/panel.h"
#include "ui/theme.h"

namespace hearth {
namespace {

struct Column {
  const char* name;
  const char* tooltip;
  RequestColumn sort;
  float width;  // at scale 1
  bool shown = true;
};

// The first ones fit into the panel at its usual size; the others can be shown by a right click on
// the header.
constexpr Column kColumns[] = {
    {"Id", "The request's number. Click to mark the request in all panels.", RequestColumn::kId,
     38},
    {"State", "What the request is doing.", RequestColumn::kState, 84},
    {"Actions", "Cancel the request; right-click the button to change its priority.",
     RequestColumn::kPriority, 58},
    {"Progress", "Computed tokens, of the maximum (prompt and answer).", RequestColumn::kProgress,
     104},
    {"Prio", "Priority: higher ones go first if the policy's order is \"priority\".",
     RequestColumn::kPriority, 36, false},
    {"Waited", "Time in the queue: from arrival to first admission.", RequestColumn::kWaited, 58,
     false},
    {"TTFT", "Time to first token, from arrival.", RequestColumn::kTtft, 58, false},
    {"Ran", "Time since first admission.", RequestColumn::kRunning, 58, false},
    {"Blocks", "KV blocks the request owns.", RequestColumn::kBlocks, 46, false},
    {"Preempted", "How often the request was preempted.", RequestColumn::kPreemptions, 64, false},
    {"Arrived", "Time of arrival, in seconds on the engine's clock.", RequestColumn::kArrived, 62,
     false},
    {"Ended", "Time of the end, in seconds on the engine's clock.", RequestColumn::kEnded, 62,
     false},
};
enum ColumnIndex {
  kRequest,
  kState,
  kAct,
  kProgress,
  kPriority,
  kWaited,
  kTtft,
  kRan,
  kBlocks,
  kPreempted,
  kArrived,
  kEnded
};

std::string seconds_text(double seconds) {
  if (seconds < 0) return "-";
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1e3);
  return seconds < 100 ? fmt::format("{:.2f} s", seconds) : fmt::format("{:.0f} s", seconds);
}

ImU32 state_color(const Theme& theme, RequestState state) {
  switch (state) {
    case RequestState::kWaiting:
      return theme.phase_color(PhaseColor::kWaiting);
    case RequestState::kPrefill:
      return theme.phase_color(PhaseColor::kPrefill);
    case RequestState::kDecode:
      return theme.phase_color(PhaseColor::kDecode);
    case RequestState::kPreempted:
      return theme.phase_color(PhaseColor::kPreempted);
    case RequestState::kSwapped:
      return theme.phase_color(PhaseColor::kSwapped);
    case RequestState::kFinished:
    case RequestState::kCancelled:
      break;
  }
  return ImGui::GetColorU32(ImGuiCol_TextDisabled);
}

void number_cell(const std::string& text) {
  const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(text.c_str()).x;
  if (room > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + room);
  ImGui::TextUnformatted(text.c_str());
}

class RequestsPanel : public Panel {
 public:
  RequestsPanel()
      : Panel({.name = "Requests",
               .key = "requests",
               .region = Region::kSideBottom,
               .order = 0,
               .description = "All requests with their state, progress and times."}) {}

  void update(const PanelContext& context) override {
    table_.update(context.view);
    ended_ = context.view.totals.requests_finished;
  }

  void draw(const PanelContext& context) override {
    now_ = context.view.now;
    draw_counts(context);
    if (table_.size() == 0) {
      ImGui::TextDisabled("No requests yet.");
      return;
    }
    constexpr ImGuiTableFlags kFlags =
        ImGuiTableFlags_Sortable | ImGuiTableFlags_Resizable | ImGuiTableFlags_Hideable |
        ImGuiTableFlags_Reorderable | ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY |
        ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_BordersInnerV;
    // The column Progress takes the room that the others leave.
    const float width =
        std::max(ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize,
                 other_columns_width_ + context.theme.px(kColumns[kProgress].width));
    if (!ImGui::BeginTable("##requests", static_cast<int>(std::size(kColumns)), kFlags, {0, 0},
                           width))
      return;
    draw_header(context.theme);
    const std::vector<const RequestRow*> rows = sorted_rows();
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(rows.size()));
    while (clipper.Step())
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
        draw_row(context, *rows[static_cast<size_t>(i)]);
    hovered_ = ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem);
    const ImGuiTable& table = *ImGui::GetCurrentTable();
    other_columns_width_ = table.ColumnsGivenWidth - table.Columns[kProgress].WidthGiven;
    ImGui::EndTable();
  }

  void report(ValueSink& values) const override {
    values.set("rows", static_cast<double>(table_.size()));
    for (const RequestState state :
         {RequestState::kWaiting, RequestState::kPrefill, RequestState::kDecode,
          RequestState::kPreempted, RequestState::kSwapped, RequestState::kFinished,
          RequestState::kCancelled})
      values.set(request_state_name(state), static_cast<double>(table_.count(state)));
    values.set("first", static_cast<double>(first_));
    values.set("ended", static_cast<double>(ended_));
  }

 private:
  void draw_counts(const PanelContext& context) const {
    // The same counts, by the same names, as in the other panels.
    const SchedulerCounts& counts = context.view.counts;
    const NamedNumber numbers[] = {
        {"running", std::to_string(counts.running), "Requests in the batch.", true},
        {"waiting", std::to_string(counts.waiting),
         fmt::format("Requests in the queue, not running yet. {} of them ran before and were "
                     "preempted.",
                     table_.count(RequestState::kPreempted))},
        {"swapped", std::to_string(counts.swapped),
         "Preempted requests whose KV blocks are in host memory."},
        {"ended", std::to_string(context.view.totals.requests_finished), "Requests that ended."}};
    draw_tiles(context.theme, numbers);
  }

  void draw_header(const Theme& theme) {
    ImGui::TableSetupScrollFreeze(1, 1);
    for (size_t i = 0; i < std::size(kColumns); ++i) {
      const Column& column = kColumns[i];
      ImGuiTableColumnFlags flags = ImGuiTableColumnFlags_WidthFixed;
      if (i == kRequest) flags |= ImGuiTableColumnFlags_PreferSortDescending;
      if (i == kState) flags |= ImGuiTableColumnFlags_DefaultSort;
      if (i == kProgress) flags = ImGuiTableColumnFlags_WidthStretch;
      if (i == kAct) flags |= ImGuiTableColumnFlags_NoSort;
      if (!column.shown) flags |= ImGuiTableColumnFlags_DefaultHide;
      ImGui::TableSetupColumn(column.name, flags, i == kProgress ? 1 : theme.px(column.width),
                              static_cast<ImGuiID>(column.sort));
    }
    ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
    for (int i = 0; i < static_cast<int>(std::size(kColumns)); ++i) {
      if (!ImGui::TableSetColumnIndex(i)) continue;
      ImGui::TableHeader(kColumns[i].name);
      ImGui::SetItemTooltip("%s", kColumns[i].tooltip);
    }
  }

  // While the mouse is over the table, rows keep their order and new ones come last, so that
  // nothing moves away from the pointer.
  void keep_order(std::vector<const RequestRow*>& rows) const {
    const auto place = [&](const RequestRow* row) {
      const auto found = order_.find(row->id);
      return std::pair(found == order_.end() ? SIZE_MAX : found->second, row->id);
    };
    std::ranges::sort(rows, {}, place);
  }

  std::vector<const RequestRow*> sorted_rows() {
    bool changed = false;
    if (ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
        specs != nullptr && specs->SpecsCount > 0) {
      changed = std::exchange(specs->SpecsDirty, false);
      column_ = static_cast<RequestColumn>(specs->Specs[0].ColumnUserID);
      descending_ = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
    }
    std::vector<const RequestRow*> rows = table_.sorted(column_, descending_, now_);
    if (hovered_ && !changed) keep_order(rows);
    order_.clear();
    for (size_t i = 0; i < rows.size(); ++i) order_[rows[i]->id] = i;
    first_ = rows.empty() ? 0 : rows.front()->id;
    return rows;
  }

  void draw_row(const PanelContext& context, const RequestRow& row) {
    const Theme& theme = context.theme;
    Selection& selection = context.selection;
    ImGui::TableNextRow();
    ImGui::PushID(static_cast<int>(row.id));
    if (selection.marked() == row.id)
      ImGui::TableSetBgColor(ImGuiTableBgTarget_RowBg1,
                             ImGui::GetColorU32(ImGuiCol_HeaderHovered, 0.5f));
    if (ImGui::TableSetColumnIndex(kRequest)) draw_name(theme, row, selection);
    if (ImGui::TableSetColumnIndex(kState)) {
      ImGui::PushStyleColor(ImGuiCol_Text, state_color(theme, row.state));
      ImGui::TextUnformatted("\u25a0");
      ImGui::PopStyleColor();
      ImGui::SameLine(0, theme.px(4));
      ImGui::TextUnformatted(request_state_name(row.state));
    }
    if (ImGui::TableSetColumnIndex(kProgress)) draw_progress(theme, row);
    if (ImGui::TableSetColumnIndex(kAct)) draw_actions(context, row);
    if (ImGui::TableSetColumnIndex(kPriority)) number_cell(fmt::format("{}", row.priority));
    if (ImGui::TableSetColumnIndex(kWaited)) number_cell(seconds_text(row.waited(now_)));
    if (ImGui::TableSetColumnIndex(kTtft)) number_cell(seconds_text(row.ttft()));
    if (ImGui::TableSetColumnIndex(kRan)) number_cell(seconds_text(row.running(now_)));
    if (ImGui::TableSetColumnIndex(kBlocks)) number_cell(fmt::format("{}", row.blocks));
    if (ImGui::TableSetColumnIndex(kPreempted)) number_cell(fmt::format("{}", row.preemptions));
    if (ImGui::TableSetColumnIndex(kArrived)) number_cell(fmt::format("{:.2f}", row.arrived));
    if (ImGui::TableSetColumnIndex(kEnded))
      number_cell(row.ended < 0 ? std::string("-") : fmt::format("{:.2f}", row.ended));
    ImGui::PopID();
  }

  static void draw_name(const Theme& theme, const RequestRow& row, Selection& selection) {
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float mark = theme.px(4);
    ImGui::GetWindowDrawList()->AddRectFilled(
        corner, {corner.x + mark, corner.y + ImGui::GetTextLineHeight()},
        theme.sequence_color(row.id), theme.px(1));
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + mark + theme.px(4));
    if (ImGui::Selectable(fmt::format("{}##request", row.id).c_str(), selection.pinned == row.id,
                          ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap))
      selection.pinned = selection.pinned == row.id ? 0 : row.id;
    if (ImGui::IsItemHovered()) selection.next_hovered = row.id;
  }

  static void draw_progress(const Theme& theme, const RequestRow& row) {
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const std::string text = fmt::format("{}/{}", row.computed, row.max_tokens);
    const float height = ImGui::GetTextLineHeight();
    // As long for every row, whatever its numbers are.
    const float bar = std::max(
        ImGui::GetContentRegionAvail().x - theme.px(6) -
            std::max(ImGui::CalcTextSize(text.c_str()).x, ImGui::CalcTextSize("0000/0000").x),
        theme.px(20));
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    const float top = corner.y + height * 0.3f, bottom = corner.y + height * 0.75f;
    draw.AddRectFilled({corner.x, top}, {corner.x + bar, bottom},
                       ImGui::GetColorU32(ImGuiCol_FrameBg), theme.px(2));
    draw.AddRectFilled({corner.x, top}, {corner.x + bar * std::min(1.0f, row.progress()), bottom},
                       state_color(theme, row.state), theme.px(2));
    ImGui::SetCursorPosX(ImGui::GetCursorPosX() + bar + theme.px(6));
    ImGui::TextUnformatted(text.c_str());
    ImGui::SetItemTooltip(
        "%u of at most %u tokens computed\nprompt: %u tokens, %u from the prefix cache\n"
        "answer: %u tokens so far",
        row.computed, row.max_tokens, row.prompt_tokens, row.cached_tokens, row.generated());
  }

  void draw_actions(const PanelContext& context, const RequestRow& row) {
    if (has_ended(row.state)) return;
    EngineControl* const engine = context.host.control();
    ImGui::BeginDisabled(engine == nullptr);
    if (ImGui::SmallButton("Cancel")) {
      engine->cancel(row.id);
      table_.note_cancel(row.id);
    }
    ImGui::SetItemTooltip(
        "%s", engine != nullptr ? "Cancel the request; it ends with the next step. Right-click to "
                                  "change its priority."
                                : context.host.why_no_control());
    if (ImGui::BeginPopupContextItem("priority")) {
      for (const int change : {1, -1}) {
        if (!ImGui::MenuItem(change > 0 ? "Raise priority" : "Lower priority")) continue;
        const int32_t priority = row.priority + change;
        engine->set_priority(row.id, priority);
        table_.note_priority(row.id, priority);
      }
      ImGui::EndPopup();
    }
    ImGui::EndDisabled();
  }

  RequestRows table_;
  std::unordered_map<RequestId, size_t> order_;  // row of each request in the last frame
  bool hovered_ = false;                         // the mouse was over the table in the last frame
  RequestId first_ = 0;                          // the request in the top row
  uint64_t ended_ = 0;                           // since the engine started
  RequestColumn column_ = RequestColumn::kState;
  bool descending_ = false;
  float other_columns_width_ = 0;  // of all but Progress, in the last frame
  double now_ = 0;
};

const PanelRegistration kRequestsRegistration([] { return std::make_unique<RequestsPanel>(); });

}  // namespace
}  // namespace hearth
