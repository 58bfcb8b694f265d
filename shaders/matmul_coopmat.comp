// Matrix times many vectors on VK_KHR_cooperative_matrix: f16 operands, f32 sums. The formula is in
// params/matmul.h; x is f16, as half_rows writes it.
//
// A workgroup computes a tile of kTileRows x kTileOutputs sums, each subgroup kSubgroupRows x
// kSubgroupOutputs of them, in steps of kTileInputs along k. While one step's operands are multiplied
// out of shared memory, those of the next kAhead steps are in flight to registers.
// kSplits > 1 is split-k: the kSplits workgroups of a tile each take a part of k and write partial sums
// to scratch memory, [split, row, output] with rows rounded up to whole tiles and outputs to whole
// fragments, for matmul_reduce to add.
// kTailSplits > 1 is split-k for the tail tiles only: the tiles from params.whole_tiles on, too few to
// fill the device. Each of them has kTailSplits workgroups, and the last to finish adds up the partial
// sums of all of them, in the order of k, and stores the results.
// With kUnrolledSteps > 0 a step's fragments are all in registers before its last products, so that the
// next step is written to shared memory while those are multiplied. kUnrolledSteps steps are unrolled,
// because at the end of a loop body the compiler copies values that are in flight, and so waits for
// them. Only one step of x is then loaded ahead. tile_table.cpp says which tiles gain from this.
// With kGate one half of the outputs are gates for the other half, and y has half as many
// (params/matmul.h).
//   workgroups = [ceil(rows / kTileRows), ceil(outputs / kTileOutputs), kSplits]; with kTailSplits > 1
//                [whole tiles + kTailSplits * tail tiles, 1, 1]
// Rows vary fastest, so that workgroups that run at the same time read the same weights.
// REQUIRES: inputs a multiple of the format's block and of 8, addresses multiples of 16, full
// subgroups; kTileInputs a multiple of 32 and of kFragmentInputs. With kUnrolledSteps, which must be a
// multiple of kAhead: kTileInputs a multiple of 2 * kFragmentInputs, and k a multiple of
// kUnrolledSteps * kTileInputs. kSplits or kTailSplits is 1, and neither is larger than the number of
// steps, or of unrolled groups of steps.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common/kernel.glsl"
#define LOAD_HALVES_SINGLY  // see quant/piece.h
#include "quant/glsl.h"
#include "weight_format.h"
#include "common/activation.glsl"
#include "common/halves.glsl"
#include "common/weight_chunk_f16.glsl"
#include "params/matmul_coopmat.h"
#include "common/chain.glsl"
#include "common/matmul_output.glsl"

// Shared memory is counted in vecs of 16 bytes. Rows are padded by one vec, so that neighbouring rows
// are in different banks.
const uint kRowVecs = kTileInputs / kVecHalves;
const uint kStride = kRowVecs + 1;
const uint kXVecs = kTileRows * kStride;
const uint kOperandVecs = kXVecs + kTileOutputs * kStride;
const uint kFragmentQuads = kFragmentRows * kFragmentOutputs / 4;  // of sums
const uint kSubgroupsAcross = kTileOutputs / kSubgroupOutputs;
const uint kFragmentsDown = kSubgroupRows / kFragmentRows;
const uint kFragmentsAcross = kSubgroupOutputs / kFragmentOutputs;
const uint kStagingFragments = 1;
#include "common/coopmat_staging.glsl"
// Operands: x [kTileRows, kTileInputs], then weights [kTileOutputs, kTileInputs]. At the end of the
// kernel the same memory stages results on their way out: one fragment per subgroup, or a row of
// fragments of sums per subgroup if gates and their ups are in different subgroups.
const uint kAcrossFragments = kFragmentsAcross % 2 == 0 ? 1 : kFragmentsAcross;  // per subgroup
const uint kOutFragments = kGate == kGateNone ? 1 : kAcrossFragments;
const uint kSumVecs = kSubgroups * kOutFragments * kStagingVecs;
shared uvec4 tiles[kOperandVecs > kSumVecs ? kOperandVecs : kSumVecs];

const uint kSubgroupSize = gl_WorkGroupSize.x / kSubgroups;
const uint kSums = kFragmentsDown * kFragmentsAcross;
const uint kSlices = kTileInputs / kFragmentInputs;
#define Fragment \
  coopmat<float, gl_ScopeSubgroup, kFragmentRows, kFragmentOutputs, gl_MatrixUseAccumulator>
#define FragmentX \
  coopmat<float16_t, gl_ScopeSubgroup, kFragmentRows, kFragmentInputs, gl_MatrixUseA>
// Weights are [outputs, k]: as a K x N matrix they are column-major.
#define FragmentW \
  coopmat<float16_t, gl_ScopeSubgroup, kFragmentInputs, kFragmentOutputs, gl_MatrixUseB>

// How a step's loads are distributed: every lane loads the same number of chunks of weights and of vecs
// of x, and neighbouring lanes load neighbouring ones.
const uint kRowChunks = kTileInputs / kChunkWeights;
const uint kTileChunks = kTileOutputs * kRowChunks;
const uint kWeightLoads = DIVIDE_UP(kTileChunks, gl_WorkGroupSize.x);
const uint kTileVecs = kTileRows * kRowVecs;
const uint kXLoads = DIVIDE_UP(kTileVecs, gl_WorkGroupSize.x);
const uint kWeightBuffers = kAhead * kWeightLoads;
const uint kXAhead = kUnrolledSteps != 0 ? 1 : kAhead;  // x comes from a cache, not from memory
const uint kXBuffers = kXAhead * kXLoads;

bool is_below(uint index, uint count) {
  return count % gl_WorkGroupSize.x == 0 || index < count;
}

#include "common/coopmat_tile.glsl"

// Where this workgroup's operands come from.
struct Source {
  Planes planes;
  uint first_row, first_output;
  // With kUnrolledSteps: where each of this lane's loads begins, in chunks and vecs.
  uint chunks[kWeightLoads], vecs[kXLoads];
#ifdef EXPERTS
  uint rows[kXLoads];  // of x, of each of this lane's loads
#endif
};

uint chunk_index(Source source, uint load, uint k) {
  if (kUnrolledSteps != 0) return source.chunks[load] + k / kChunkWeights;
  const uint index = gl_LocalInvocationIndex + load * gl_WorkGroupSize.x;
  const uint chunks = params.inputs / kChunkWeights;
  const uint n = weight_row(source.first_output, index / kRowChunks);
  return n * chunks + min(k / kChunkWeights + index % kRowChunks, chunks - 1);
}

void find_starts(inout Source source) {
  [[unroll]] for (uint i = 0; i < kWeightLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    const uint n = weight_row(source.first_output, min(index / kRowChunks, kTileOutputs - 1));
    source.chunks[i] = n * (params.inputs / kChunkWeights) + index % kRowChunks;
  }
  [[unroll]] for (uint i = 0; i < kXLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    const uint row = X_ROW(min(source.first_row + index / kRowVecs, params.rows - 1));
    source.vecs[i] = row * (params.inputs / kVecHalves) + index % kRowVecs;
  }
}

// `restrict` loads (FreshX) are faster between the decoding of weights and in unrolled steps, plain ones
// elsewhere (measured on an H200).
uvec4 load_x(uint index) {
  if (kUnrolledSteps != 0) return FreshX(params.x).at[index];
#ifdef FORMAT_IS_FLOAT
  return FreshU32x4(params.x).at[index];
#else
  return FreshX(params.x).at[index];
#endif
}

// Loads past an end are clamped to the last element; past the end of k, stage_x() writes zeros.
void fetch_weights(inout RawChunk chunks[kWeightBuffers], uint buffer_index, Source source, uint k) {
  [[unroll]] for (uint i = 0; i < kWeightLoads; ++i)
    chunks[buffer_index * kWeightLoads + i] = load_raw_chunk(source.planes, chunk_index(source, i, k));
}

void fetch_x(inout uvec4 xs[kXBuffers], uint buffer_index, Source source, uint k) {
  const uint vecs = params.inputs / kVecHalves;
  [[unroll]] for (uint i = 0; i < kXLoads; ++i) {
    if (kUnrolledSteps != 0) {
      xs[buffer_index * kXLoads + i] = load_x(source.vecs[i] + k / kVecHalves);
      continue;
    }
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
#ifdef EXPERTS
    const uint row = source.rows[i];
#else
    const uint row = min(source.first_row + index / kRowVecs, params.rows - 1);
#endif
    xs[buffer_index * kXLoads + i] = load_x(row * vecs + min(k / kVecHalves + index % kRowVecs, vecs - 1));
  }
}

void stage_weights(RawChunk chunks[kWeightBuffers], uint buffer_index, Source source, uint k) {
  [[unroll]] for (uint i = 0; i < kWeightLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    if (is_below(index, kTileChunks)) {
      uvec4 halves[kChunkVecs];
      decode_chunk(chunks[buffer_index * kWeightLoads + i], chunk_index(source, i, k), halves);
      const uint place = kXVecs + index / kRowChunks * kStride + index % kRowChunks * kChunkVecs;
      [[unroll]] for (uint v = 0; v < kChunkVecs; ++v) tiles[place + v] = halves[v];
    }
  }
}

void stage_x(uvec4 xs[kXBuffers], uint buffer_index, uint k) {
  [[unroll]] for (uint i = 0; i < kXLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    const bool inside = kUnrolledSteps != 0 || k + index % kRowVecs * kVecHalves < params.inputs;
    if (is_below(index, kTileVecs))
      tiles[index / kRowVecs * kStride + index % kRowVecs] =
          inside ? xs[buffer_index * kXLoads + i] : uvec4(0);
  }
}

void multiply(inout Fragment sums[kSums]) {
  const uint row = gl_SubgroupID / kSubgroupsAcross * kSubgroupRows;
  const uint column = gl_SubgroupID % kSubgroupsAcross * kSubgroupOutputs;
  const uint x_start = row * kStride;
  const uint w_start = kXVecs + column * kStride;
  for (uint block = 0; block < kTileInputs; block += kUnroll * kFragmentInputs) {
    [[unroll]] for (uint u = 0; u < kUnroll; ++u) {
      const uint k = (block + u * kFragmentInputs) / kVecHalves;
      FragmentX x[kFragmentsDown];
      [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i)
        coopMatLoad(x[i], tiles, x_start + i * kFragmentRows * kStride + k, kStride,
                    gl_CooperativeMatrixLayoutRowMajor);
      [[unroll]] for (uint j = 0; j < kFragmentsAcross; ++j) {
        FragmentW w;
        coopMatLoad(w, tiles, w_start + j * kFragmentOutputs * kStride + k, kStride,
                    gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i)
          sums[i * kFragmentsAcross + j] = coopMatMulAdd(x[i], w, sums[i * kFragmentsAcross + j]);
      }
    }
  }
}

void load_slice(out FragmentX x[kFragmentsDown], out FragmentW w[kFragmentsAcross], uint slice) {
  const uint row = gl_SubgroupID / kSubgroupsAcross * kSubgroupRows;
  const uint column = gl_SubgroupID % kSubgroupsAcross * kSubgroupOutputs;
  const uint k = slice * kFragmentInputs / kVecHalves;
  [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i)
    coopMatLoad(x[i], tiles, (row + i * kFragmentRows) * kStride + k, kStride,
                gl_CooperativeMatrixLayoutRowMajor);
  [[unroll]] for (uint j = 0; j < kFragmentsAcross; ++j)
    coopMatLoad(w[j], tiles, kXVecs + (column + j * kFragmentOutputs) * kStride + k, kStride,
                gl_CooperativeMatrixLayoutColumnMajor);
}

void multiply_slice(inout Fragment sums[kSums], FragmentX x[kFragmentsDown],
                    FragmentW w[kFragmentsAcross]) {
  [[unroll]] for (uint j = 0; j < kFragmentsAcross; ++j)
    [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i)
      sums[i * kFragmentsAcross + j] =
          coopMatMulAdd(x[i], w[j], sums[i * kFragmentsAcross + j]);
}

// REQUIRES: the first step's operands are in flight.
void multiply_unrolled(inout Fragment sums[kSums], inout RawChunk chunks[kWeightBuffers],
                     inout uvec4 xs[kXBuffers], Source source, uint begin, uint steps) {
  const uint last = begin + (steps - 1) * kTileInputs;
  FragmentX even_x[kFragmentsDown], odd_x[kFragmentsDown];
  FragmentW even_w[kFragmentsAcross], odd_w[kFragmentsAcross];
  stage_weights(chunks, 0, source, begin);
  stage_x(xs, 0, begin);
  fetch_weights(chunks, 0, source, min(begin + kAhead * kTileInputs, last));
  fetch_x(xs, 0, source, min(begin + kTileInputs, last));
  barrier();
  load_slice(even_x, even_w, 0);
  for (uint first = 0; first < steps; first += kUnrolledSteps) {
    [[unroll]] for (uint r = 0; r < kUnrolledSteps; ++r) {
      const uint k = begin + (first + r) * kTileInputs;
      [[unroll]] for (uint slice = 1; slice < kSlices; ++slice) {
        if (slice % 2 == 1) {
          load_slice(odd_x, odd_w, slice);
          multiply_slice(sums, even_x, even_w);
        } else {
          load_slice(even_x, even_w, slice);
          multiply_slice(sums, odd_x, odd_w);
        }
      }
      barrier();  // every subgroup has loaded its fragments
      const uint buffer_index = (r + 1) % kAhead;
      stage_weights(chunks, buffer_index, source, k + kTileInputs);
      stage_x(xs, 0, k + kTileInputs);
      fetch_weights(chunks, buffer_index, source, min(k + (kAhead + 1) * kTileInputs, last));
      fetch_x(xs, 0, source, min(k + 2 * kTileInputs, last));
      barrier();
      // After the last step this loads fragments that are not used.
      load_slice(even_x, even_w, 0);
      multiply_slice(sums, odd_x, odd_w);
    }
  }
}

#include "common/coopmat_store.glsl"

void main() {
  const Work work = find_work();
#ifdef EXPERTS
  if (!begin_expert(work.row_tile)) {
    chain_done();
    return;
  }
#endif
  Source source;
  source.planes = planes_at(EXPERT_WEIGHTS, params.outputs * (params.inputs / kBlockWeights));
  source.first_row = work.row_tile * kTileRows;
  source.first_output = work.output_tile * kTileOutputs;
  if (kUnrolledSteps != 0) find_starts(source);
#ifdef EXPERTS
  [[unroll]] for (uint i = 0; i < kXLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    source.rows[i] = source_row(min(source.first_row + index / kRowVecs, params.rows - 1));
  }
#endif

  // This workgroup's part of k, in whole steps, or whole groups of unrolled steps.
  const uint stretch = max(kUnrolledSteps, 1) * kTileInputs;
  const uint stretches = DIVIDE_UP(params.inputs, stretch);
  const uint begin = stretches * work.split / work.splits * stretch;
  const uint end = min(stretches * (work.split + 1) / work.splits * stretch, params.inputs);
  const uint steps = DIVIDE_UP(end - begin, kTileInputs);
  const uint last = begin + (steps - 1) * kTileInputs;

  RawChunk chunks[kWeightBuffers];
  uvec4 xs[kXBuffers];
  Fragment sums[kSums];
#ifdef EXPERTS
  begin_sums(sums, source.first_output);
#else
  [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] = Fragment(0.0);
#endif

  // Weights are in flight before this kernel waits for x.
  [[unroll]] for (uint a = 0; a < kAhead; ++a)
    fetch_weights(chunks, a, source, min(begin + a * kTileInputs, last));
#ifndef EXPERTS
  chain_wait_fresh();
#endif
  [[unroll]] for (uint a = 0; a < kXAhead; ++a)
    fetch_x(xs, a, source, min(begin + a * kTileInputs, last));
  if (kUnrolledSteps != 0) multiply_unrolled(sums, chunks, xs, source, begin, steps);
  for (uint first = 0; kUnrolledSteps == 0 && first < steps; first += kAhead) {
    [[unroll]] for (uint a = 0; a < kAhead; ++a) {
      const uint step = first + a;
      if (step >= steps) break;
      const uint k = begin + step * kTileInputs;
      barrier();  // the previous step's operands may still be read
      stage_weights(chunks, a, source, k);
      stage_x(xs, a, k);
      // Fetch only after the barrier: measured, loads issued before it delay it.
      barrier();
      const uint next = min(k + kAhead * kTileInputs, last);
      fetch_weights(chunks, a, source, next);
      fetch_x(xs, a, source, next);
      multiply(sums);
    }
  }
  if (kDecodeScale != 1.0) {
    [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] *= 1.0 / kDecodeScale;
  }
  store(sums, work, source.first_row, source.first_output);
  chain_done();
}
