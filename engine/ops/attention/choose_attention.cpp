#include <algorithm>
#include <optional>
#include <string>

#include "engine/ops/attention/family.h"

namespace hearth {

std::span<const AttentionFamily* const> few_attention_families() {
  static constexpr const AttentionFamily* kFamilies[] = {&kAttentionSubgroup, &kAttentionDirect,
                                                         &kAttentionRows};
  return kFamilies;
}

std::span<const AttentionFamily* const> many_attention_families() {
  static constexpr const AttentionFamily* kFamilies[] = {&kAttentionLanes, &kAttentionTile};
  return kFamilies;
}

std::string attention_kernel(std::string_view family, const AttentionShape& shape) {
  return std::string(family) + (shape.dealt ? "_dealt" : "") + (shape.sinks ? "_sinks." : ".") +
         std::string(kv_format_name(shape.kv));
}

std::string general_attention_kernel(std::string_view family, const AttentionShape& shape) {
  return attention_kernel(std::string(family) + (shape.bucket.trees ? "_tree" : ""), shape);
}

uint32_t heads_of_group(const AttentionShape& shape) {
  return std::max(1u, shape.heads / std::max(1u, shape.kv_heads));
}

HeadTile head_tile(const AttentionShape& shape, uint32_t most_rows, bool one_token) {
  const uint32_t tokens = one_token ? 1 : std::max(1u, most_rows / heads_of_group(shape));
  return {.tokens = tokens, .rows = std::min(most_rows, tokens * heads_of_group(shape))};
}

GroupCount tile_groups(const AttentionShape& shape, const HeadTile& tile) {
  return {.x = 0, .y = shape.kv_heads * divide_up(tile.tokens * heads_of_group(shape), tile.rows)};
}

namespace {

// For steps with several tokens per sequence, such as guesses to verify: whether each token gets a
// tile of its own, so that the step needs no list `many`. Each tile then reads all keys, but with
// so few tokens a prompt kernel would have too few tiles to keep the device busy.
bool prefers_one_token_tiles(const AttentionRequest& request) {
  const AttentionBucket& bucket = request.shape.bucket;
  const PaceTuning& tuning = request.tuning;
  if (bucket.sequence_rows <= 1 || request.shape.dealt) return false;
  const bool quantized = request.shape.kv != KvFormat::kF16;
  uint32_t most_rows = 0;
  if (bucket.sequence_tokens <= tuning.short_context)
    most_rows = quantized ? tuning.quantized_one_token_rows : tuning.one_token_rows;
  else if (bucket.sequence_tokens <= tuning.longer_context && !quantized)
    most_rows = tuning.longer_one_token_rows;
  return bucket.rows <= most_rows && kAttentionDirect.supports(request);
}

}  // namespace

AttentionPlan choose_attention(const DeviceCaps& caps, const AttentionShape& shape,
                               bool deterministic) {
  const bool cpu = is_cpu(caps);
  AttentionRequest request{.caps = caps,
                           .shape = shape,
                           .tuning = tuning_profile(caps).attention,
                           .one_token = true,
                           .tokens = shape.bucket.rows,
                           .deterministic = deterministic};
  std::optional<AttentionListPlan> many;
  if (!prefers_one_token_tiles(request)) {
    request.tokens = shape.bucket.sequences;
    if (!cpu && !deterministic && !shape.f32_only && shape.bucket.sequence_rows > 1)
      if (const auto* family = first_supporting(many_attention_families(), request))
        many = family->plan(request);
    // Tiles of several tokens read the keys before a tree less often.
    request.one_token =
        deterministic || (many && !shape.bucket.trees) || shape.bucket.sequence_rows <= 1;
  }
  const AttentionListPlan few = first_supporting(few_attention_families(), request)->plan(request);
  // With a list `many`, only sequences with a single row go to `few` (request.one_token). A step
  // for several rows of its only sequence has none, so on every device a kernel for `few` would run
  // in each layer without any work: 0.07 of 3.40 ms for 16 rows of 8b Q4_K_M on an H200.
  const bool only_many = many && shape.bucket.sequences == 1 && shape.bucket.sequence_rows > 1 &&
                         !shape.bucket.trees && !shape.dealt;
  const uint32_t wanted_groups = many ? request.tuning.prompt_groups : few.wanted_groups;
  AttentionPlan plan{
      .few = few.kernel,
      .tuning = {.few_tokens = only_many ? 0 : few.tokens,
                 .many_tokens = many ? many->tokens : 0,
                 .split_keys = deterministic ? kDeterministicSplit : few.split_keys,
                 .wanted_items = divide_up(wanted_groups, std::max(1u, shape.kv_heads)),
                 .fixed_splits = deterministic,
                 .dealt = shape.dealt}};
  plan.capacity = attention_capacity(plan.tuning, shape.bucket);
  plan.few.groups.x = plan.capacity.few;
  plan.writes_halves = !cpu && !shape.dealt;
  // Not if the result must equal, to the last bit, that of rope_kv, which prompts use; nor if the
  // token's block may be elsewhere.
  plan.ropes = !cpu && !shape.dealt && !deterministic && !shape.bucket.trees &&
               shape.bucket.sequence_rows <= 1 && plan.few.groups.y == shape.kv_heads;
  if (plan.capacity.many > 0) {
    plan.many = many->kernel;
    plan.many->groups.x = plan.capacity.many;
  }
  return plan;
}

}  // namespace hearth
