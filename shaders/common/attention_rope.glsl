// What rope_kv.comp does, by the workgroup of attention that needs it: for a token that is its
// sequence's only one in the step, and all heads that share a KV head.
//
// Include after attention_constants.glsl, attention_kv.glsl and attention_work.glsl.
#ifndef HEARTH_ATTENTION_ROPE_GLSL
#define HEARTH_ATTENTION_ROPE_GLSL
#include "common/fences.glsl"

uint part_quads() { return params.part_rows * (kQStride / 4); }
#include "common/rope_head.glsl"

shared vec4 shared_q[kRoped != 0 ? kRows * kRowVectors : 1];

// Vector `vector` of a row's query.
vec4 query_vector(Place place, uint row, uint vector) {
  if (kRoped != 0) return shared_q[min(row, kHeadsPerKvHead - 1) * kRowVectors + vector];
  return query_row(place, row).at[vector];
}

// A subgroup of the device a task: the heads of q, then the token's key and its value.
const uint kKeyTask = kHeadsPerKvHead, kTasks = kHeadsPerKvHead + 2;
const uint kTaskSubgroups = gl_WorkGroupSize.x / kSubgroupSize;
const uint kOwnTasks = (kTasks + kTaskSubgroups - 1) / kTaskSubgroups;

// A lane's quads of a head, kLaneQuads a step. Those from kHeadQuads on are not there.
const uint kStepQuads = kSubgroupSize * kLaneQuads;
const uint kSteps = (kHeadQuads + kStepQuads - 1) / kStepQuads;
const uint kOwnQuads = kSteps * kLaneQuads;
uint own_quad(uint i) {
  return i / kLaneQuads * kStepQuads + gl_SubgroupInvocationID * kLaneQuads + i % kLaneQuads;
}

// What they are rotated by, in every head.
struct Turns {
  vec4 cosines[kOwnQuads];
  vec4 sines[kOwnQuads];
};

uint token_row;  // where the token's key and value go in the cache

// All that need not wait for the projection.
void begin_token(Place place, out Turns turns) {
  position = place.item.first_position;
  token_row = block_rows(place, position) + position % kBlockTokens;
  [[unroll]] for (uint i = 0; i < kOwnQuads; ++i) {
    turns.cosines[i] = vec4(1.0);
    turns.sines[i] = vec4(0.0);
    if (own_quad(i) < kRopeQuads) quad_angles(own_quad(i), turns.cosines[i], turns.sines[i]);
  }
}

uint64_t task_head(Place place, uint task) {
  const uint64_t row = place.item.first_row;
  if (task < kKeyTask) return params.q + (row * kQStride + row_head(place, task) * kHeadSize) * 4;
  const bool is_key = task == kKeyTask;
  const uint64_t segment = uint64_t(params.part_rows) * (is_key ? kKBehind : kVBehind);
  const uint first = (is_key ? kKColumn : kVColumn) + place.kv_head * kHeadSize;
  return params.q + (segment + row * (is_key ? kKStride : kVStride) + first) * 4;
}

// They, and those they are rotated with where they have no pairs of their own.
struct Quads {
  vec4 x[kOwnQuads];
  vec4 other[kOwnQuads];
};

void load_quads(uint64_t at, out Quads quads) {
  head = FreshF32x4(at);
  [[unroll]] for (uint i = 0; i < kOwnQuads; ++i) {
    const uint quad = min(own_quad(i), kHeadQuads - 1);
    quads.x[i] = input_quad(quad);
    quads.other[i] = kAdjacent != 0 ? vec4(0.0) : input_quad(other_quad(min(quad, kRopeQuads - 1)));
  }
}

void norm_quads(inout Quads quads, F32x4 weight) {
  float squares = 0.0;
  [[unroll]] for (uint i = 0; i < kOwnQuads; ++i)
    squares += own_quad(i) < kHeadQuads ? dot(quads.x[i], quads.x[i]) : 0.0;
  const float scale = inversesqrt(subgroupAdd(squares) / float(kHeadSize) + kEpsilon);
  [[unroll]] for (uint i = 0; i < kOwnQuads; ++i) {
    const uint quad = min(own_quad(i), kHeadQuads - 1);
    quads.x[i] *= scale * weight.at[quad];
    if (kAdjacent == 0) quads.other[i] *= scale * weight.at[other_quad(min(quad, kRopeQuads - 1))];
  }
}

void rope_quads(inout Quads quads, Turns turns) {
  [[unroll]] for (uint i = 0; i < kOwnQuads; ++i) {
    const uint quad = own_quad(i);
    if (quad < kRopeQuads)
      quads.x[i] =
          rotate_quad(quad, quads.x[i], quads.other[i], turns.cosines[i], turns.sines[i]);
  }
}

void stage_query(Quads quads, uint task) {
  [[unroll]] for (uint i = 0; i < kOwnQuads; ++i)
    if (own_quad(i) < kHeadQuads) shared_q[task * kRowVectors + own_quad(i)] = quads.x[i];
}

void write_token(Quads quads, bool is_key) {
  [[unroll]] for (uint step = 0; step < kSteps; ++step) {
    vec4 x[kLaneQuads];
    [[unroll]] for (uint i = 0; i < kLaneQuads; ++i) x[i] = quads.x[step * kLaneQuads + i];
    write_cache(is_key ? params.keys : params.values,
                is_key ? params.key_scales : params.value_scales, token_row,
                own_quad(step * kLaneQuads), x);
  }
}

// The place's queries into shared memory, its token's key and value into the cache.
void rope_token(Place place, Turns turns) {
  Quads heads[kOwnTasks];  // all on their way before the first is used
  [[unroll]] for (uint t = 0; t < kOwnTasks; ++t)
    load_quads(task_head(place, min(gl_SubgroupID + t * kTaskSubgroups, kTasks - 1)), heads[t]);
  [[unroll]] for (uint t = 0; t < kOwnTasks; ++t) {
    const uint task = gl_SubgroupID + t * kTaskSubgroups;
    const bool is_key = task == kKeyTask;
    if (task <= kKeyTask) {
      if (kHeadNorms != 0) norm_quads(heads[t], F32x4(is_key ? params.k_norm : params.q_norm));
      rope_quads(heads[t], turns);
    }
    if (task < kKeyTask)
      stage_query(heads[t], task);
    else if (task < kTasks && place.item.key_end > position)
      write_token(heads[t], is_key);
  }
  sync_workgroup();
}

#endif
