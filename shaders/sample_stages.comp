// The third sampling kernel: chooses the tokens, and the proposals they accept, of rows with kSamplingStages, whose samplers or order
// sample_pick does not know. Runs after sample_scan and sample_pick, and only in steps with such rows.
// engine/sampling/README.md defines what it computes.
//
// workgroups = [1, rows, 1]. A stage looks at the tokens that the stages before it kept, with their
// probabilities at that point. A pass over a whole row costs far more than everything else, so a stage
// makes one only if it has to, and reads only the segments that can matter: the sums over all tokens are
// sample_scan's, and once few tokens are left they are in shared memory. All sums are integer sums, and
// scores do not depend on each other, so the chosen token does not depend on the number of rows, lanes or
// subgroups.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "common/kernel.glsl"
#include "params/sample_stages.h"
#include "common/sampling_key.glsl"
#include "common/sampling_reduce.glsl"
#include "common/sampling_views.glsl"
#include "common/sampling_list.glsl"
#include "common/sampling_row.glsl"
#include "common/sampling_summary.glsl"
#include "common/sampling_noise.glsl"
#include "common/sampling_draw.glsl"
#include "common/stages_sums.glsl"
#include "common/stages_warp.glsl"
#include "common/stages_tokens.glsl"
#include "common/stages_list.glsl"
#include "common/sampling_accept.glsl"
#include "common/sampling_append.glsl"
#include "common/chain_state.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer StagesOfRow {
  SamplingStages at[];
};

const float kLn2 = 0.69314718;
const float kLeastTemperature = 1e-5;
const uint kNoSelection = 0xffffffffu;

bool is_dynamic(SamplingStages stages) {
  return stages.temperature_low < stages.temperature_high;
}

// What a stage needs to know of the tokens kept.
bool needs_weights(uint stage, SamplingStages stages) {
  switch (stage) {
    case kStageTemperature: return is_dynamic(stages);
    case kStageTypical:
    case kStageTopA:
    case kStageEpsilon:
    case kStageEta:
    case kStageXtc:
    case kStageMirostat: return true;
    default: return false;
  }
}

float dynamic_temperature(SamplingStages stages, Measures sums) {
  if (sums.count < 2) return stages.temperature_low;
  const float share = clamp(entropy(sums) / log(float(sums.count)), 0.0, 1.0);
  const float power = share > 0.0 ? pow(share, stages.temperature_exponent) : 0.0;
  return stages.temperature_low + (stages.temperature_high - stages.temperature_low) * power;
}

// By what temperature multiplies distances. The host divides, which devices may round differently.
float temperature_factor(SamplingRow wanted, SamplingStages stages, Measures sums) {
  if (!is_dynamic(stages)) return wanted.inverse_temperature;
  return 1.0 / max(dynamic_temperature(stages, sums), kLeastTemperature);
}

// How far below the first a token may be to stay, for stages that are a threshold.
float stage_limit(uint stage, SamplingStages stages, Measures sums, float mu) {
  switch (stage) {
    case kStageTopNSigma: return stages.sigmas * deviation(sums);
    case kStageMinP: return -stages.log_min_p;
    case kStageTopA: return log_weight(sums) - stages.log_top_a;
    case kStageEpsilon: return -stages.log_epsilon - log_weight(sums);
    case kStageEta:
      return max(-stages.log_eta, entropy(sums) - 0.5 * stages.log_eta) - log_weight(sums);
    case kStageMirostat: return mu * kLn2 - log_weight(sums);
    default: return -stages.log_xtc_threshold - log_weight(sums);  // kStageXtc
  }
}

struct Choice {
  uint key, id, count;
  float surprise;  // in bits, among the tokens kept
};

float bits_of_surprise(float distance, uint64_t total) {
  return (distance + log_of_weight(total)) / kLn2;
}

bool xtc_applies(SamplingRow wanted, SamplingStages stages) {
  if (stages.xtc_odds == 0xffffffffu) return true;
  const uvec4 random =
      philox(uvec4(wanted.counter, 1, 0, 0), uvec2(wanted.seed_low, wanted.seed_high));
  return random.x < stages.xtc_odds;
}

uint next_stage(uint64_t order) { return uint(order) & ((1u << kStageBits) - 1); }

// Mirostat needs the surprise of the chosen token; it is the last stage before the draw.
bool uses_mirostat(SamplingStages stages) {
  uint64_t order = join_words(stages.order_low, stages.order_high);
  while (next_stage(order) != kStageDraw && next_stage(order) != kStageMirostat)
    order >>= kStageBits;
  return next_stage(order) == kStageMirostat;
}

// `total` is the weight of all tokens kept, 0 if nobody asks for the surprise.
Choice choice_of(Row row, Kept kept, uint id, uint count, uint64_t total) {
  const uint key = logit_key(U32(row.logits).at[id]);
  const float distance = kept_distance(kept, row.top_logit, key);
  return Choice(key, id, count, total > 0 ? bits_of_surprise(distance, total) : 0.0);
}

uint draw_from_list(SamplingRow wanted, Row row, Kept kept, Range range) {
  Race race = kRaceBegins;
  for (uint i = range.begin + gl_LocalInvocationID.x; i < range.end; i += gl_WorkGroupSize.x)
    enter(race, noise_bits_of(wanted, list_ids[i]), listed_distance(kept, row.top_logit, i),
          list_ids[i]);
  return winner(race);
}

// Also counts the tokens kept.
uint draw_from_row(SamplingRow wanted, Row row, Kept kept, out uint count) {
  Race race = kRaceBegins;
  count = 0;
  for (uint s = gl_LocalInvocationID.x; s < row.segment_count; s += gl_WorkGroupSize.x) {
    const uint largest = min(U32(row.segments).at[s], kept.first);
    if (largest < kept.last.key) continue;
    const bool may_hold_winner = may_win(race, kept_distance(kept, row.top_logit, largest));
    uvec4 next_ids, next = load_keys(row, s, 0, next_ids);
    [[dont_unroll]] for (uint j = 0; j < kSegmentQuads; ++j) {
      const uvec4 keys = next, ids = next_ids;
      if (j + 1 < kSegmentQuads) next = load_keys(row, s, j + 1, next_ids);
      uvec4 bits = uvec4(0);
      if (may_hold_winner) bits = noise_bits(wanted, ids.x / 4);
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        if (!holds(kept, keys[c], ids[c])) continue;
        ++count;
        if (may_hold_winner)
          enter(race, bits[c], kept_distance(kept, row.top_logit, keys[c]), ids[c]);
      }
    }
  }
  count = workgroup_sum(count);
  return winner(race);
}

// Runs the rest of the stages on the list, which holds the kept tokens in no order.
Choice choose_from_list(SamplingRow wanted, SamplingStages stages, Row row, Kept kept, uint count,
                        uint64_t order, float mu) {
  Range range = Range(0, count);
  const bool surprises = uses_mirostat(stages);
  Measures sums;
  bool sorted = false, weighed = false;  // whether the weights in `sums` are those of the range
  for (;; order >>= kStageBits) {
    const uint stage = next_stage(order);
    const bool draws = stage == kStageDraw, sigma = stage == kStageTopNSigma;
    if (!draws && !sorted) {
      sort_range(range);
      sorted = true;
    }
    if (sigma || (needs_weights(stage, stages) && !weighed)) {
      sums = measure_range(kept, row.top_logit, range, sigma ? kMeasureSpread : kMeasureWeights);
      weighed = !sigma;
    }
    uint64_t total = 0;
    if ((draws && surprises) || stage == kStageTopP || stage == kStageTypical)
      total = add_up(kept, row.top_logit, range);

    const Range before = range;
    switch (stage) {
      case kStageDraw:
        return choice_of(row, kept, draw_from_list(wanted, row, kept, range),
                         range.end - range.begin, total);
      case kStageTopK: range.end = min(range.end, range.begin + max(stages.top_k, 1)); break;
      case kStageTopP:
        range.end = token_at(range, last_of_share(total, stages.top_p)) + 1;
        break;
      case kStageTypical: {
        const float center = mean_distance(sums);
        const uint64_t target = last_of_share(total, stages.typical_p);
        const float reach = uintBitsToFloat(
            deviation_at(kept, row.top_logit, range, center, target) + kLeastDeviation);
        range.begin = begin_within(kept, row.top_logit, before, center, reach);
        range.end = end_within(kept, row.top_logit, before, center, reach);
        break;
      }
      case kStageTemperature:
        scale(kept, row.top_logit, temperature_factor(wanted, stages, sums));
        weighed = false;
        break;
      case kStageSmoothing:
        bend(kept, row.top_logit, stages.smoothing_square, stages.smoothing_cube);
        weighed = false;
        break;
      case kStageXtc: {
        // The least probable of those above the threshold is the first that stays.
        const float limit = stage_limit(stage, stages, sums, mu);
        if (!xtc_applies(wanted, stages) || limit < 0.0) break;
        const uint end = end_within(kept, row.top_logit, range, 0.0, limit);
        range.begin = first_with_key(range, list_keys[max(end, range.begin + 1) - 1]);
        break;
      }
      default: {
        const float limit = max(stage_limit(stage, stages, sums, mu), 0.0);
        range.end = max(end_within(kept, row.top_logit, range, 0.0, limit), range.begin + 1);
      }
    }
    if (range == before) continue;
    weighed = false;
    if (range.begin > before.begin) begin_at(kept, row.top_logit, list_keys[range.begin]);
  }
}

// `sums` are those of the whole row.
Choice choose(SamplingRow wanted, SamplingStages stages, Row row, uint best_key, Measures sums,
              float mu) {
  Kept kept = keep_everything(best_key);
  // Whether the keys, the weights and the spread in `sums` are those of `kept`.
  bool counted = true, weighed = true;
  bool spread = original_distance(row.top_logit, row.lowest_key) <= kSigmaReach;
  bool loose = false;       // no token has the key kept.first
  bool above = false;       // XTC: `kept` are only the tokens above its threshold
  bool listed = false;      // the list holds the kept tokens
  bool tried = false;       // top_k: whether they have turned out to be too many for it
  uint count = 0;           // of the list
  const bool surprises = uses_mirostat(stages);
  Cut last_before_xtc = kEverything;
  uint64_t order = join_words(stages.order_low, stages.order_high);
  while (!listed) {
    const uint stage = next_stage(order);
    const bool draws = stage == kStageDraw, sigma = stage == kStageTopNSigma;
    const bool weighs = (needs_weights(stage, stages) && !above) || (draws && surprises);
    if (stage == kStageTopK && stages.top_k <= kListTokens && !loose && !tried) {
      Kept first = kept;
      count = list_first(row, first, stages.top_k);
      tried = true;
      listed = count <= kListTokens;
      if (listed) kept = first;
      continue;
    }
    // A pass that finds few tokens lists them, which saves a selection by weight more than it costs.
    const bool counts =
        loose || above || (stage == kStageTopP && kept.last.key != kEverything.key);
    const bool few = counted && !draws && !above && sums.count <= kListTokens;
    if (few || (sigma && !spread) || (weighs && !weighed) || (counts && !counted)) {
      const uint what = loose || few ? kMeasureKeys
                        : sigma ? kMeasureSpread
                        : weighs ? kMeasureWeights
                                 : kMeasureKeys;
      sums = measure(row, kept, what);
      counted = true;
      weighed = what == kMeasureWeights;
      spread = what == kMeasureSpread;
      count = sums.count;
      listed = !above && count <= kListTokens;
      if (loose) begin_at(kept, row.top_logit, sums.highest);
      if (loose || listed) {
        loose = false;
        continue;
      }
    }
    Selection selection = Selection(kNoSelection, true, kTargetNumber, 0ul, 0.0, 0.0, 0);
    bool changes = true;
    switch (stage) {
      case kStageDraw: {
        uint left;
        const uint id = draw_from_row(wanted, row, kept, left);
        return choice_of(row, kept, id, left, surprises ? sums.weight : 0ul);
      }
      case kStageTopK: {
        const uint lowest = max(kept.last.key, row.lowest_key);
        selection = Selection(kByKey, false, kTargetNumber, stages.top_k - 1, 0.0, 0.0,
                              bits_of(kept.first - lowest));
        break;
      }
      case kStageTopP: {
        const uint lowest = lowest_key(kept, row.top_logit, 0.0, kMaxDistance);
        selection = Selection(kByKey, true, kTargetShare, 0ul, stages.top_p, 0.0,
                              bits_of(kept.first - lowest));
        break;
      }
      case kStageTypical:
        selection = Selection(kByDeviation, true, kTargetShare, 0ul, stages.typical_p,
                              mean_distance(sums), kDeviationBits);
        break;
      case kStageTemperature:
        scale(kept, row.top_logit, temperature_factor(wanted, stages, sums));
        break;
      case kStageSmoothing:
        bend(kept, row.top_logit, stages.smoothing_square, stages.smoothing_cube);
        break;
      case kStageXtc: {
        if (above) {
          // The least probable of those above the threshold is the first that stays.
          above = false;
          kept.last = last_before_xtc;
          begin_at(kept, row.top_logit, sums.lowest);
          break;
        }
        const float limit = stage_limit(stage, stages, sums, mu);
        changes = xtc_applies(wanted, stages) && limit >= 0.0;
        if (!changes) break;
        above = true;
        last_before_xtc = kept.last;
        keep_within(kept, row.top_logit, limit);
        counted = weighed = spread = false;
        continue;
      }
      default:
        changes = keep_within(kept, row.top_logit, stage_limit(stage, stages, sums, mu));
    }

    // A selection in the row's order ends among equal keys, which a second one tells apart by id.
    Kept among = kept;
    for (uint round = 0; selection.order != kNoSelection && round < 2; ++round) {
      const Selected selected = select(row, among, selection);
      if (!selected.found) break;
      if (selection.order == kByDeviation) {
        // Tokens that deviate equally stay together.
        const float reach = uintBitsToFloat(selected.ordinal + kLeastDeviation);
        const uint lowest = lowest_key(kept, row.top_logit, selection.center, reach);
        const uint highest = highest_key(kept, row.top_logit, selection.center, reach);
        if (lowest > kept.last.key) kept.last = Cut(lowest, 0xffffffffu);
        loose = highest < kept.first;
        kept.first = min(kept.first, highest);
        break;
      }
      if (selection.order == kById) {
        kept.last.id = selected.ordinal;
        break;
      }
      const uint key = kept.first - selected.ordinal;
      const uint64_t each =
          selection.weighted ? weight_of(kept_distance(kept, row.top_logit, key)) : 1ul;
      if (key > kept.last.key) kept.last = Cut(key, 0xffffffffu);
      const uint64_t place = selected.before / each;
      if (place + 1 == selected.sum / each) break;  // all tokens with this key stay
      among.first = key;
      among.last = kept.last;
      selection = Selection(kById, false, kTargetNumber, place, 0.0, 0.0, bits_of(row.vocab));
    }
    if (changes) counted = weighed = spread = false;
    order >>= kStageBits;
  }
  return choose_from_list(wanted, stages, row, kept, count, order, mu);
}

// `precise`: added up in another order, the largest floats would swallow the sum.
float logprob_of(uint key, float top_logit, float log_sum) {
  precise const float distance = top_logit - key_logit(key);
  precise const float logprob = -distance - log_sum;
  return logprob;
}

void run_stages(SamplingRow wanted) {
  const uint row_index = gl_WorkGroupID.y;
  const uint needed = kSamplingActive | kSamplingStages;
  if ((wanted.flags & needed) != needed) return;
  const uint64_t chunks = params.chunks + uint64_t(row_index) * params.chunk_count * 20;
  const RowSummary summary = summarize(chunks, params.chunk_count);
  if (!has_choice(summary)) return;  // sample_pick has said so
  Row row;
  row.logits = params.logits + uint64_t(row_index) * params.vocab * 4;
  row.segments = params.segments + uint64_t(row_index) * params.segment_count * 4;
  row.chunks = chunks;
  row.vocab = params.vocab;
  row.segment_count = params.segment_count;
  row.first_segment = 0;
  row.end_segment = params.segment_count;
  row.top_logit = key_logit(summary.best_key);
  row.lowest_key = summary.lowest_key;

  const SamplingStages stages = StagesOfRow(params.words + uint64_t(wanted.stages) * 4).at[0];
  const bool in_slot = stages.mirostat_read_slot != kNoSlot;
  const float slot_mu = F32(params.mirostat).at[in_slot ? stages.mirostat_read_slot : 0];
  const float mu = in_slot ? slot_mu : stages.mirostat_mu;
  const uint64_t chunk_sums =
      sums_of_row(params.chunks, gl_NumWorkGroups.y, row_index, params.chunk_count);
  const Measures all = measure_chunks(row, chunk_sums, params.chunk_count, summary.best_key);
  const Choice choice = choose(wanted, stages, row, summary.best_key, all, mu);

  if (gl_LocalInvocationID.x == 0) {
    if (wanted.id_index != kNoSlot) U32(params.ids).at[wanted.id_index] = choice.id;
    const float logprob = logprob_of(choice.key, row.top_logit, summary.log_sum);
    SamplingResults(params.results).at[row_index] =
        SamplingResult(choice.id, logprob, choice.count, accepted_proposal(wanted, choice.id));
    const float new_mu = mu - stages.mirostat_eta * (choice.surprise - stages.mirostat_tau);
    F32(params.mirostat_rows).at[row_index] = new_mu;
    if (stages.mirostat_write_slot != kNoSlot)
      F32(params.mirostat).at[stages.mirostat_write_slot] = new_mu;
  }
  if ((wanted.flags & kSamplingStagesAppend) != 0 && wanted.history_slot != kNoHistory)
    append(wanted, choice.id);
}

void main() {
  const SamplingRow wanted = SamplingRows(params.rows).at[gl_WorkGroupID.y];
  if (chain_wait_intact()) run_stages(wanted);
  chain_done();
}
