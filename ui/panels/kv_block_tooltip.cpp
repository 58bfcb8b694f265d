#include "ui/panels/kv_block_tooltip.h"

#include <imgui.h>

namespace hearth {

void draw_block_tooltip(const EngineView& view, const BlockMap& map, size_t index) {
  const BlockView& cell = view.blocks[index];
  if (!ImGui::BeginTooltip()) return;
  ImGui::Text("Block %zu", index);
  switch (cell.state) {
    case BlockState::kFree:
      ImGui::TextDisabled("Free.");
      break;
    case BlockState::kWithheld:
      ImGui::TextDisabled("Withheld: outside the pool because its size limit was lowered.");
      break;
    case BlockState::kCached:
      ImGui::Text("Cached; last owned by request #%llu.",
                  static_cast<unsigned long long>(cell.owner));
      break;
    case BlockState::kOwned:
      if (cell.references > 1)
        ImGui::Text("Owned by request #%llu, shared by %u sequences.",
                    static_cast<unsigned long long>(cell.owner), cell.references);
      else
        ImGui::Text("Owned by request #%llu.", static_cast<unsigned long long>(cell.owner));
      break;
  }
  if (cell.state == BlockState::kOwned || cell.state == BlockState::kCached) {
    ImGui::Text("%u of %u token slots filled", cell.filled, kTokensPerBlock);
    if (cell.hash != 0)
      ImGui::Text("hash %016llx", static_cast<unsigned long long>(cell.hash));
    else
      ImGui::TextDisabled("no hash: not full, or not in the prefix cache");
    ImGui::Text("last read %llu steps ago, in step %llu",
                static_cast<unsigned long long>(map.steps_since_read(cell)),
                static_cast<unsigned long long>(cell.last_use));
    if (map.recently_copied(static_cast<uint32_t>(index)))
      ImGui::TextUnformatted("Copied because its sequence wrote to a block it shared.");
  }
  for (const SequenceView& sequence : view.sequences) {
    if (cell.state != BlockState::kOwned || sequence.id != cell.owner) continue;
    ImGui::TextDisabled("Request #%llu: %u of at most %u tokens, in %u blocks",
                        static_cast<unsigned long long>(sequence.id), sequence.computed,
                        sequence.max_tokens, sequence.blocks);
    break;
  }
  ImGui::EndTooltip();
}

}  // namespace hearth
