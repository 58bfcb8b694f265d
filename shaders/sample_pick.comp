// The second of the two sampling kernels: filters, the draw, log-probabilities, and which proposal the token
// accepts. Runs after sample_scan. engine/sampling/README.md defines what it computes.
//
// workgroups = [up to one per lane and per bin, rows, 1]. If top_k leaves few tokens, the first
// workgroup of a row lists, sorts and draws from them in shared memory. Otherwise it draws from the whole
// row, and the first pass over the row is spread over all of the row's workgroups. All sums are integer
// sums, every order is total and scores do not depend on each other, so the chosen token depends only on
// the row's logits and parameters, not on the number of rows, workgroups, lanes or subgroups.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "common/kernel.glsl"
#include "params/sample_pick.h"
#include "common/sampling_key.glsl"
#include "common/sampling_reduce.glsl"
#include "common/sampling_views.glsl"
#include "common/sampling_list.glsl"
#include "common/sampling_search.glsl"
#include "common/sampling_tally.glsl"
#include "common/sampling_summary.glsl"
#include "common/sampling_noise.glsl"
#include "common/sampling_draw.glsl"
#include "common/chain_state.glsl"

struct Pick {
  uint key;
  uint id;
  uint kept;
};

float logprob_of(Row row, float log_sum, uint key) {
  return (key_logit(key) - row.top_logit) - log_sum;
}

// Skips segments that are entirely in bins after `bin`. The edge is rounded, hence one more bin.
// REQUIRES: bins by distance.
void read_down_to(inout Search search, Row row, uint bin) {
  if (bin + 1 >= kBins) return;
  const float edge = row.top_logit - float(bin + 2) / search.scale;
  search.low = max(search.low, logit_key(floatBitsToUint(edge)));
}

// The last bin that is needed to include the first `count` tokens of the row's order; narrows `search`
// to it. The count-th largest of the segments' maxima is at most the count-th largest logit, and close
// to it, so the bins up to its own hold the wanted tokens and few others.
uint last_bin_of_first(Row row, uint count, inout Search search) {
  clear_bins();
  for (uint s = gl_LocalInvocationID.x; s < row.segment_count; s += gl_WorkGroupSize.x) {
    const uint key = U32(row.segments).at[s];
    if (key > kMinusInfinityKey)
      atomicAdd(bin_low[distance_bin(distance_of(row, key), search.scale)], 1);
  }
  if (sum_bins() <= count - 1) return kBins - 1;
  const uint last_bin = find_bin(count - 1).bin;
  read_down_to(search, row, last_bin);
  return last_bin;
}

// The sum of weights that top_p keeps of `total`: the tokens before the last one kept weigh less than
// this.
uint64_t nucleus(uint64_t total, float top_p) {
  return multiply_high(total, uint64_t(uint(top_p * 65536.0 * 65536.0)) << 32);
}

// The key below which min_p drops tokens.
uint min_p_key(Row row, SamplingRow wanted) {
  const uint key = logit_key(floatBitsToUint(row.top_logit + wanted.log_min_p));
  return max(key, kMinusInfinityKey + 1);
}

Cut keep_min_p(Row row, SamplingRow wanted, Cut cut) {
  const uint floor_key = min_p_key(row, wanted);
  return floor_key > cut.key ? Cut(floor_key, 0xffffffffu) : cut;
}

// The distance by which a token's score is less than its noise.
float scaled_distance(Row row, SamplingRow wanted, uint key) {
  precise const float distance = distance_of(row, key) * wanted.inverse_temperature;
  return distance;
}

uint key_of(Row row, uint id) { return logit_key(U32(row.logits).at[id]); }

// Picks from the list, which holds every token that top_k keeps.
Pick pick_from_list(Row row, SamplingRow wanted, uint count) {
  if (wanted.top_p < 1.0) {
    weigh_list(count, row.top_logit);
    uint64_t total = 0;
    for (uint i = 0; i < count; ++i) total += listed_weight(i);
    const uint64_t enough = nucleus(total, wanted.top_p);
    count = enough == 0 ? 1 : walk_list(count, enough - 1) + 1;
  }
  const uint floor_key = min_p_key(row, wanted);
  uint kept = 1;
  while (kept < count && list_keys[kept] >= floor_key) ++kept;
  Race race = kRaceBegins;
  for (uint i = gl_LocalInvocationID.x; i < kept; i += gl_WorkGroupSize.x)
    enter(race, noise_bits_of(wanted, list_ids[i]), scaled_distance(row, wanted, list_keys[i]),
          list_ids[i]);
  const uint id = winner(race);
  return Pick(key_of(row, id), id, kept);
}

// What a pass over the row's segments finds among the tokens that a cut keeps.
struct Drawing {
  Race race;  // of this lane
  uint kept;  // by this lane
};

Drawing draw_from_row(Row row, SamplingRow wanted, Cut cut) {
  Drawing drawing = Drawing(kRaceBegins, 0);
  for (uint s = row.first_segment + gl_LocalInvocationID.x; s < row.end_segment;
       s += gl_WorkGroupSize.x) {
    const uint largest = U32(row.segments).at[s];
    if (largest < cut.key) continue;
    const bool may_hold_winner = may_win(drawing.race, scaled_distance(row, wanted, largest));
    uvec4 next = load_quad(row.logits, segment_quad(s, 0, kScanLanes), row.vocab);
    [[dont_unroll]] for (uint j = 0; j < kSegmentQuads; ++j) {
      const uint quad = segment_quad(s, j, kScanLanes);
      const uvec4 keys = quad_keys(next);
      if (j + 1 < kSegmentQuads)
        next = load_quad(row.logits, segment_quad(s, j + 1, kScanLanes), row.vocab);
      uvec4 bits = uvec4(0);
      if (may_hold_winner) bits = noise_bits(wanted, quad);
      [[unroll]] for (uint c = 0; c < 4; ++c) {
        const uint id = quad * 4 + c;
        if (!is_kept(cut, keys[c], id)) continue;
        ++drawing.kept;
        if (may_hold_winner)
          enter(drawing.race, bits[c], scaled_distance(row, wanted, keys[c]), id);
      }
    }
  }
  return drawing;
}

// Compares what all workgroups of a row have found. Returns true in the last one, which gets the winner
// and the number of tokens kept; the others are done.
bool merge_drawings(Tally tally, inout Drawing drawing, out uint id) {
  const uint own = score_key(drawing.race), best = workgroup_max(own);
  id = workgroup_min(own == best ? drawing.race.id : 0xffffffffu);
  clear_bins();
  if (gl_LocalInvocationID.x == 0) {
    bin_low[gl_WorkGroupID.x] = best;
    bin_high[gl_WorkGroupID.x] = id;
  }
  if (!merge_workgroups(tally, drawing.kept)) return false;
  const uint group = min(gl_LocalInvocationID.x, gl_NumWorkGroups.x - 1);
  id = winner_of(bin_low[group], bin_high[group]);
  return true;
}

#include "common/sampling_accept.glsl"
#include "common/sampling_append.glsl"

// The goals of the passes over a row, in their order.
const uint kList = 0;       // list the first tokens, and the few others in their bins
const uint kListRank = 1;  // the rank of the last of the first tokens, if kList found too many
const uint kListAll = 2;    // list the first tokens, up to that one
const uint kTopK = 3;       // the last token that top_k keeps, of the whole row
const uint kTopP = 4;       // the last token that top_p keeps, of those left
const uint kDraw = 5;       // no pass: draw from what is left
const uint kDone = 6;

uint next_goal(uint goal, SamplingRow wanted) {
  goal = goal == kList ? kTopK : goal + 1;
  if (goal == kTopK && (wanted.top_k == 0 || wanted.top_k >= params.vocab)) ++goal;
  if (goal == kTopP && wanted.top_p >= 1.0) ++goal;
  return goal;
}

// The rank to find. `total` is the sum over all tokens that are left.
uint64_t target_of(uint goal, uint64_t total, uint first, SamplingRow wanted) {
  if (goal == kListRank) return first - 1;
  if (goal == kTopK) return wanted.top_k - 1;
  return max(nucleus(total, wanted.top_p), 1ul) - 1;
}

// Writes the most probable tokens; the list has the first `listed` of them.
void report(Row row, float log_sum, uint row_index, uint listed, uint reported) {
  TokenLogprobs top = TokenLogprobs(params.top + uint64_t(row_index) * kMaxTopLogprobs * 8);
  for (uint i = gl_LocalInvocationID.x; i < reported; i += gl_WorkGroupSize.x)
    top.at[i] = i < listed ? TokenLogprob(list_ids[i], logprob_of(row, log_sum, list_keys[i]))
                           : TokenLogprob(kNoToken, uintBitsToFloat(kMinusInfinityBits));
}

void pick_token(SamplingRow wanted) {
  const uint lane = gl_LocalInvocationID.x;
  const uint row_index = gl_WorkGroupID.y;
  if ((wanted.flags & kSamplingActive) == 0) return;

  const bool greedy = (wanted.flags & kSamplingGreedy) != 0 || wanted.top_k == 1;
  const bool few = !greedy && wanted.top_k > 0 && wanted.top_k <= kListTokens / 2;
  const uint reported = min(wanted.top_logprobs, kMaxTopLogprobs);
  const uint first = max(reported, few ? wanted.top_k : 0);  // tokens to list
  // Whether the first pass is one over the whole row, for top_p or the draw, and so is spread over the row's
  // workgroups.
  bool spread = gl_NumWorkGroups.x > 1 && !greedy && first == 0 &&
                    next_goal(kListAll, wanted) > kTopK;
  if (!spread && gl_WorkGroupID.x > 0) return;

  const uint64_t chunks = params.chunks + uint64_t(row_index) * params.chunk_count * 20;
  const RowSummary summary = summarize(chunks, params.chunk_count);
  const bool any = has_choice(summary);
  if (!any && gl_WorkGroupID.x > 0) return;
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
  if (spread) take_segments(row);

  Pick pick = Pick(summary.best_key, summary.best_id, 1);
  if (!any) {
    pick = Pick(kMinusInfinityKey, 0, 0);
    report(row, summary.log_sum, row_index, 0, reported);
  }

  Tally tally = Tally(params.tallies + uint64_t(row_index) * kTallyWords * 4);
  // Each iteration passes over the row once, for the current goal, among the tokens that the cut keeps.
  uint goal = kDone;
  if (any && first > 0) {
    goal = kList;
  } else if (any && !greedy) {
    goal = next_goal(kListAll, wanted);
  }
  bool begins = true, fill_bins;
  uint first_bin, last_bin;
  uint64_t target = 0;
  Cut cut = kEverything;
  Search search;
  while (goal < kDraw) {
    const bool first_pass = begins;
    if (begins) {
      begins = false;
      search = start_search(row, cut, goal == kTopP);
      fill_bins = goal != kList && goal != kListAll;
      first_bin = 0;
      last_bin = goal == kList ? last_bin_of_first(row, first, search) : kBins - 1;
    }
    Pass pass = pass_over_row(row, search, fill_bins, first_bin, last_bin);
    if (spread) {
      if (!merge_workgroups(tally, pass.tokens)) return;
      spread = false;
      row.first_segment = 0;
      row.end_segment = row.segment_count;
    }
    if (fill_bins) {
      fill_bins = false;
      const uint64_t total = sum_bins();
      if (first_pass) target = target_of(goal, total, first, wanted);
      if (target < total) {
        const BinPosition place = find_bin(target);
        target -= place.before;
        first_bin = last_bin = place.bin;
        if (search.divided_by == kByDistance) read_down_to(search, row, place.bin);
        continue;
      }
      // There are fewer tokens than that: the cut stays.
    } else if (pass.tokens > kListTokens) {
      if (goal == kList) {
        goal = kListRank;  // too many similar logits: find the exact rank
        begins = true;
      } else {
        search = divide_bin(search, pass);
        fill_bins = true;
      }
      continue;
    } else {
      sort_list(pass.tokens);
      if (goal == kList || goal == kListAll) {
        report(row, summary.log_sum, row_index, pass.tokens, reported);
        if (few) pick = pick_from_list(row, wanted, min(wanted.top_k, pass.tokens));
        if (few || greedy) break;
        cut = kEverything;
      } else {
        const uint at = rank_in_list(row, search, pass.tokens, target);
        cut = Cut(list_keys[at], list_ids[at]);
      }
    }
    goal = next_goal(goal, wanted);
    begins = true;
  }
  if (goal == kDraw) {
    Drawing drawing = draw_from_row(row, wanted, keep_min_p(row, wanted, cut));
    drawing.kept = workgroup_sum(drawing.kept);
    if (!spread)
      pick.id = winner(drawing.race);
    else if (!merge_drawings(tally, drawing, pick.id))
      return;
    pick.key = key_of(row, pick.id);
    pick.kept = drawing.kept;
  }

  if (any && (wanted.flags & kSamplingGiven) != 0)
    pick = Pick(logit_key(U32(row.logits).at[wanted.given]), wanted.given, 1);
  if (lane == 0) {
    if (wanted.id_index != kNoSlot) U32(params.ids).at[wanted.id_index] = pick.id;
    SamplingResult result = no_choice(summary);
    if (any)
      result = SamplingResult(pick.id, logprob_of(row, summary.log_sum, pick.key), pick.kept,
                              accepted_proposal(wanted, pick.id));
    SamplingResults(params.results).at[row_index] = result;
  }
  if ((wanted.flags & kSamplingAppend) != 0 && wanted.history_slot != kNoHistory)
    append(wanted, pick.id);
}

void main() {
  const SamplingRow wanted = SamplingRows(params.rows).at[gl_WorkGroupID.y];
  if (chain_wait_intact()) pick_token(wanted);
  chain_done();
}
