// Models: choose a model and a device, see an estimate of the memory before loading, and load.
#include <algorithm>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <imgui.h>

#include "runtime/memory.h"
#include "ui/data/file_browser.h"
#include "ui/data/model_picker.h"
#include "ui/data/settings.h"
#include "ui/draw/legend.h"
#include "ui/draw/tiles.h"
#include "ui/engine_host.h"
#include "ui/panel.h"
#include "ui/panels/chat_widgets.h"
#include "ui/theme.h"

namespace hearth {
namespace {

constexpr float kModelsLabelWidth = 104;  // right of a field, at scale 1
constexpr const char* kBrowser = "Open a model";
constexpr uint32_t kMaxSequences = 256;

std::string home_folder() {
  const char* const home = std::getenv("HOME");
  return home != nullptr ? home : "/";
}

void value_row(const char* name, const std::string& value, const char* tooltip) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::TextUnformatted(name);
  ImGui::SetItemTooltip("%s", tooltip);
  ImGui::TableNextColumn();
  const float room = ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(value.c_str()).x;
  if (room > 0) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + room);
  ImGui::TextUnformatted(value.c_str());
}

class ModelsPanel : public Panel {
 public:
  ModelsPanel()
      : Panel({.name = "Models",
               .key = "models",
               .region = Region::kSideBottom,
               .order = 2,
               .description =
                   "Choose a device and a model, and see its memory needs before loading it."}) {}

  void update(const PanelContext& context) override {
    if (!std::exchange(initialized_, true)) {
      path_ = context.host.choice().model;
      if (path_.empty()) path_ = context.settings.get("models.path", std::string());
      picker_.selection.model = context.host.choice().model;
      picker_.requested_device = context.host.choice().session.device;
      picker_.selection.sequences = context.host.choice().session.max_sequences;
      picker_.selection.context = context.host.choice().session.context;
      picker_.selection.kv = context.host.choice().session.kv;
      // Reserve swap space, so that the preemption switch "swap" works in the dashboard.
      const uint64_t swap_bytes = context.host.choice().session.swap_bytes;
      picker_.selection.swap_bytes = swap_bytes != 0 ? swap_bytes : kDefaultSwapBytes;
    }
    // The chat comes first, so what is left is a model.
    if (std::string dropped = context.host.take_dropped(); !dropped.empty()) {
      path_ = std::move(dropped);
      picker_.selection.model = path_;
    }
    // Devices and files are only read once the panel has been shown.
    if (shown_) picker_.update();
    browser_.update();
    loading_ = context.host.loading();
    failure_ = context.view.failure;
  }

  void draw(const PanelContext& context) override {
    shown_ = true;
    ImGui::PushItemWidth(-context.theme.px(kModelsLabelWidth));
    draw_devices(context.theme);
    draw_model();
    draw_estimate(context.theme);
    draw_load(context);
    draw_browser(context);
    ImGui::PopItemWidth();
  }

  void report(ValueSink& values) const override {
    values.set("devices", static_cast<double>(picker_.devices().size()));
    const std::optional<size_t> device = picker_.chosen_device();
    values.set("device", device ? picker_.devices()[*device].name : std::string());
    values.set("model", picker_.selection.model);
    values.set("loading", loading_.active ? 1 : 0);
    values.set("failure", failure_);
    const ModelEstimate* const estimate = picker_.estimate();
    values.set("estimated", estimate != nullptr ? 1 : 0);
    if (estimate == nullptr) return;
    values.set("problem", estimate->failure);
    values.set("name", estimate->name);
    values.set("fits", estimate->fits() ? 1 : 0);
    values.set("weight_bytes", static_cast<double>(estimate->memory.weight_bytes));
    values.set("total_bytes", static_cast<double>(estimate->memory.total_bytes()));
    values.set("context", estimate->memory.context);
    values.set("largest_context", estimate->memory.max_context);
  }

 private:
  void draw_devices(const Theme& theme) {
    ImGui::SeparatorText("Device");
    if (picker_.listing()) return faint_text("Listing devices...");
    if (!picker_.devices_failure().empty()) warning_text(theme, picker_.devices_failure());
    const std::vector<DeviceEntry>& devices = picker_.devices();
    if (ImGui::RadioButton("Best device", picker_.selection.device < 0))
      picker_.selection.device = -1;
    ImGui::SetItemTooltip("Use the device that Hearth picks by default.");
    for (size_t i = 0; i < devices.size(); ++i) {
      const DeviceEntry& device = devices[i];
      ImGui::BeginDisabled(!device.refused.empty());
      const std::string label = fmt::format("{}: {}", i, device.name);
      if (ImGui::RadioButton(label.c_str(), picker_.selection.device == static_cast<int>(i)))
        picker_.selection.device = static_cast<int>(i);
      ImGui::EndDisabled();
      if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip | ImGuiHoveredFlags_AllowWhenDisabled))
        ImGui::SetTooltip(
            "%s\n%s%s", device.name.c_str(), device.driver.c_str(),
            device.refused.empty() ? "" : ("\nNot usable: " + device.refused).c_str());
      ImGui::Indent();
      faint_text(device.refused.empty()
                     ? fmt::format("{}, {} of {} free{}", device.type,
                                   format_bytes(device.free_bytes),
                                   format_bytes(device.memory_bytes),
                                   picker_.chosen_device() == i ? ", selected" : "")
                     : "not usable");
      ImGui::Unindent();
    }
  }

  void draw_model() {
    ImGui::SeparatorText("Model");
    ModelSelection& selection = picker_.selection;
    if (ImGui::RadioButton("Built-in model", selection.model.empty())) selection.model.clear();
    ImGui::SetItemTooltip("The small storyteller that is part of the program.");
    const bool from_file = !selection.model.empty();
    same_line_if_fits(checkbox_width("File"));
    if (ImGui::RadioButton("File", from_file) && !path_.empty()) selection.model = path_;
    ImGui::SetItemTooltip(
        "A .gguf file or a Hugging Face folder. Type its path or name, browse, or drop it on the "
        "window.");
    if (line_box("Model file", path_) || ImGui::IsItemDeactivatedAfterEdit())
      selection.model = path_;
    ImGui::SetItemTooltip("%s",
                          path_.empty() ? "A .gguf file or a Hugging Face folder." : path_.c_str());
    if (ImGui::Button("Browse")) {
      browser_.open(path_.empty() ? home_folder() : path_);
      ImGui::OpenPopup(kBrowser);
    }
    ImGui::SetItemTooltip("Browse the folders and model files of this machine.");
    const uint32_t step = 256;
    ImGui::InputScalar("Context", ImGuiDataType_U32, &selection.context, &step);
    ImGui::SetItemTooltip(
        "The maximum number of tokens per sequence. 0 means the model's own maximum, or what "
        "fits.");
    if (ImGui::InputScalar("Sequences", ImGuiDataType_U32, &selection.sequences))
      selection.sequences = std::clamp(selection.sequences, 1u, kMaxSequences);
    ImGui::SetItemTooltip("The maximum number of sequences running at once.");
    if (begin_combo("KV format", std::string(kv_format_name(selection.kv)))) {
      for (const KvFormat format : {KvFormat::kF16, KvFormat::kQ8_0})
        if (ImGui::Selectable(std::string(kv_format_name(format)).c_str(), format == selection.kv))
          selection.kv = format;
      ImGui::EndCombo();
    }
    ImGui::SetItemTooltip(
        "How keys and values are stored. q8_0 needs about half the memory of f16.");
  }

  void draw_estimate(const Theme& theme) {
    ImGui::SeparatorText("Memory");
    const ModelEstimate* const estimate = picker_.estimate();
    if (estimate == nullptr) return faint_text("Reading the model's header...");
    if (!estimate->failure.empty()) return warning_text(theme, estimate->failure);
    ImGui::TextWrapped("%s: %s, %s parameters", estimate->name.c_str(),
                       estimate->architecture.c_str(), parameters_text(*estimate).c_str());
    if (!estimate->has_device) return warning_text(theme, "There is no usable device.");
    const MemoryPlan& memory = estimate->memory;
    draw_bar(theme, *estimate);
    if (ImGui::BeginTable("##memory", 2, ImGuiTableFlags_SizingStretchProp)) {
      value_row("weights", format_bytes(memory.weight_bytes),
                "The model's weights in device memory.");
      value_row("activations", format_bytes(memory.activation_bytes),
                "Buffers for the intermediate results of a step.");
      value_row("KV cache",
                fmt::format("{} ({} blocks)", format_bytes(estimate->kv_bytes()), memory.kv_blocks),
                "As many KV blocks as fit and are useful for the context and the sequences.");
      value_row("total of free",
                fmt::format("{} of {}", format_bytes(memory.total_bytes()),
                            format_bytes(memory.free_bytes)),
                "The total, and the memory that is free on the device now.");
      value_row("context", fmt::format("{} tokens", memory.context),
                "The maximum number of tokens per sequence.");
      value_row(
          "largest context", fmt::format("{} tokens", memory.max_context),
          "The largest context that fits for a single sequence, up to the model's own maximum.");
      ImGui::EndTable();
    }
    if (!memory.fits)
      warning_text(
          theme, fmt::format("Does not fit: a context of {} tokens needs more memory than is free.",
                             memory.context));
    else if (estimate->context_shortened)
      faint_text(fmt::format("Fits with a shorter context than the model's {} tokens.",
                             estimate->model_context));
    else
      ImGui::TextUnformatted("Fits.");
  }

  static std::string parameters_text(const ModelEstimate& estimate) {
    const double parameters = static_cast<double>(estimate.parameters);
    return parameters >= 1e9 ? fmt::format("{:.2f} G", parameters * 1e-9)
                             : fmt::format("{:.1f} M", parameters * 1e-6);
  }

  // Weights, activations and KV cache compared with the free memory.
  static void draw_bar(const Theme& theme, const ModelEstimate& estimate) {
    const MemoryPlan& memory = estimate.memory;
    const uint64_t parts[] = {memory.weight_bytes, memory.activation_bytes, estimate.kv_bytes()};
    const char* const kinds[] = {"weights", "activations", "KV cache"};
    const double whole = static_cast<double>(std::max(memory.free_bytes, memory.total_bytes()));
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const ImVec2 size{ImGui::GetContentRegionAvail().x, theme.px(12)};
    ImGui::Dummy(size);
    if (whole <= 0) return;
    ImDrawList& draw = *ImGui::GetWindowDrawList();
    draw.AddRectFilled(corner, {corner.x + size.x, corner.y + size.y},
                       ImGui::GetColorU32(ImGuiCol_FrameBg), theme.px(3));
    double at = 0;
    for (int i = 0; i < 3; ++i) {
      const double next = at + static_cast<double>(parts[i]) / whole;
      draw.AddRectFilled({corner.x + size.x * static_cast<float>(at), corner.y},
                         {corner.x + size.x * static_cast<float>(next), corner.y + size.y},
                         theme.memory_color(kinds[i]));
      at = next;
    }
    const LegendEntry legend[] = {{kinds[0], theme.memory_color(kinds[0])},
                                  {kinds[1], theme.memory_color(kinds[1])},
                                  {kinds[2], theme.memory_color(kinds[2])}};
    draw_legend(theme, legend);
  }

  void draw_load(const PanelContext& context) {
    const ModelEstimate* const estimate = picker_.estimate();
    ImGui::BeginDisabled(loading_.active || estimate == nullptr || !estimate->fits());
    if (ImGui::Button("Load model")) load(context);
    ImGui::EndDisabled();
    ImGui::SetItemTooltip(
        "Close the current engine, which ends its requests, and load this model.");
    if (loading_.active) {
      const float share = loading_.total_bytes == 0
                              ? 0.0f
                              : static_cast<float>(static_cast<double>(loading_.done_bytes) /
                                                   static_cast<double>(loading_.total_bytes));
      const std::string text = fmt::format("{} of {}", format_bytes(loading_.done_bytes),
                                           format_bytes(loading_.total_bytes));
      ImGui::TextWrapped("%s", loading_.what.c_str());
      // Without a known size (also while measuring kernels) the bar only shows activity.
      if (loading_.total_bytes == 0)
        ImGui::ProgressBar(-static_cast<float>(ImGui::GetTime()), {-FLT_MIN, 0}, "");
      else
        ImGui::ProgressBar(share, {-FLT_MIN, 0}, text.c_str());
    } else if (!failure_.empty()) {
      warning_text(context.theme, failure_);
    }
  }

  void load(const PanelContext& context) {
    ModelChoice choice{.model = picker_.selection.model, .session = context.host.choice().session};
    SessionOptions& session = choice.session;
    session.device = picker_.device_option();
    session.context = picker_.selection.context;
    session.max_sequences = picker_.selection.sequences;
    session.kv = picker_.selection.kv;
    session.kv_blocks = 0;
    session.swap_bytes = picker_.selection.swap_bytes;
    context.settings.set("models.path", path_);
    context.host.open(std::move(choice));
  }

  void draw_browser(const PanelContext& context) {
    const ImVec2 screen = ImGui::GetMainViewport()->Size;
    ImGui::SetNextWindowSize({std::min(context.theme.px(560), screen.x * 0.9f),
                              std::min(context.theme.px(420), screen.y * 0.9f)},
                             ImGuiCond_Appearing);
    ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing,
                            {0.5f, 0.5f});
    if (!ImGui::BeginPopupModal(kBrowser, nullptr, ImGuiWindowFlags_NoSavedSettings)) return;
    const FolderListing& listing = browser_.listing();
    if (ImGui::Button("Up")) browser_.up();
    ImGui::SetItemTooltip("Go to the parent folder.");
    ImGui::SameLine();
    if (ImGui::Button("Home")) browser_.open(home_folder());
    ImGui::SameLine();
    if (ImGui::Button("Cancel") || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
    faint_text(listing.folder.string());
    if (!listing.failure.empty()) warning_text(context.theme, listing.failure);
    if (ImGui::BeginChild("##files", {0, 0}, ImGuiChildFlags_Borders)) draw_files(listing);
    ImGui::EndChild();
    if (std::exchange(chosen_, false)) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
  }

  void draw_files(const FolderListing& listing) {
    if (listing.entries.empty() && listing.failure.empty())
      ImGui::TextDisabled("This folder has no subfolders and no .gguf files.");
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(listing.entries.size()));
    while (clipper.Step())
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const FileEntry& entry = listing.entries[static_cast<size_t>(i)];
        const std::string label = entry.folder ? entry.name + "/" : entry.name;
        const bool clicked =
            ImGui::Selectable(label.c_str(), false, ImGuiSelectableFlags_NoAutoClosePopups);
        const std::string details =
            entry.folder ? (entry.model ? "Hugging Face model" : "") : format_bytes(entry.bytes);
        const float width = ImGui::CalcTextSize(details.c_str()).x;
        ImGui::SameLine(std::max(0.0f, ImGui::GetContentRegionMax().x - width));
        ImGui::TextDisabled("%s", details.c_str());
        if (!clicked) continue;
        const std::filesystem::path path = browser_.path_of(entry);
        if (entry.model) {
          path_ = path.string();
          picker_.selection.model = path_;
          chosen_ = true;
        } else {
          browser_.open(path);
        }
      }
  }

  ModelPicker picker_;
  FileBrowser browser_;
  std::string path_;
  EngineHost::Loading loading_;
  std::string failure_;
  bool shown_ = false, initialized_ = false, chosen_ = false;
};

const PanelRegistration kModelsRegistration([] { return std::make_unique<ModelsPanel>(); });

}  // namespace
}  // namespace hearth
