// What lets the matmul kernels compute experts' products (params/experts.h), when they are compiled with
// EXPERTS: the matrix of a tile's expert, the rows of x of its positions, and the epilogue. Otherwise
// the names stand for the one matrix and its rows.
#ifndef HEARTH_EXPERTS_GLSL
#define HEARTH_EXPERTS_GLSL

#ifdef EXPERTS

layout(buffer_reference, std430, buffer_reference_align = 4) queuefamilycoherent readonly buffer FreshU32 {
  uint at[];
};
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Addresses {
  uint64_t at[];
};

uint expert = 0;              // of this workgroup's tile
uint64_t expert_weights = 0;  // where its matrix begins

// Finds the tile's expert, after waiting for the kernel that chose it. False if the tile is empty: the
// kernel then ends with chain_done().
bool begin_expert(uint tile) {
  chain_wait();
  expert = FreshU32(params.tiles).at[tile];
  if (expert == kNoExpert) return false;
  expert_weights = params.weight_stride != 0 ? params.weight + expert * params.weight_stride
                                             : Addresses(params.weight).at[expert];
  return true;
}

uint source_row(uint position) {
  if (params.row_pairs != 0) return position / params.row_pairs;
  return FreshU32(params.sources).at[position];
}

float expert_bias(uint n) {
  return (kEpilogue & kEpilogueBias) != 0 ? F32(params.bias).at[expert * params.outputs + n] : 0.0;
}

float expert_scale(uint position) {
  return (kEpilogue & kEpilogueScale) != 0 ? FreshF32(params.scales).at[position] : 1.0;
}

// A gate and its up, with their biases added.
vec4 gate_up(vec4 gate, vec4 up, uint kind) {
  if (kind != kGateLimited) return activate(gate, kind == kGateGelu) * up;
  const vec4 limited = min(gate, 7.0);
  return limited / (1.0 + exp(min(-1.702 * limited, 80.0))) * (clamp(up, -7.0, 7.0) + 1.0);
}

#define EXPERT_WEIGHTS expert_weights
#define X_ROW(row) source_row(row)
#define GATED(gate, up) gate_up(vec4(gate), vec4(up), kGate).x
#define GATED_QUAD(gate, up) gate_up(gate, up, kGate)

#else

#define EXPERT_WEIGHTS params.weight
#define X_ROW(row) (row)
#define GATED(gate, up) activate(gate, kGate == kGateGelu) * up
#define GATED_QUAD(gate, up) activate(gate, kGate == kGateGelu) * up

#endif
#endif
