// Matrix engine without matrix units: a lane owns kLaneRows x kLaneOutputs sums in registers and reads
// its operands from the f32 tiles in shared memory.
//
// An engine is the type of a tile element, the sums an invocation keeps (a local of main: drivers put
// globals into memory), three functions on them, and its own constants; the kernel's main is the loop. Tiles: x_tile [kTileRows, kTileInputs], w_tile [kTileOutputs, kTileInputs], in vec4 along
// k with a stride of kTileStride.
#define TileVec vec4
TileVec to_tile(vec4 value) { return value; }

layout(constant_id = 6) const uint kLaneRows = 4;
layout(constant_id = 7) const uint kLaneOutputs = 4;

shared TileVec x_tile[kTileRows * kTileStride];
shared TileVec w_tile[kTileOutputs * kTileStride];

// Lanes of a group form a grid: outputs fastest.
const uint kLanesAcross = kTileOutputs / kLaneOutputs;

const uint kSums = kLaneRows * kLaneOutputs;
#define MmaSums float sums[kSums]

void mma_clear(out MmaSums) {
  [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] = 0.0;
}

void mma_step(inout MmaSums) {
  const uint row = gl_LocalInvocationIndex / kLanesAcross;
  const uint column = gl_LocalInvocationIndex % kLanesAcross;
  const uint rows_apart = kTileRows / kLaneRows;
  for (uint k = 0; k < kTileInputs / 4; ++k) {
    vec4 x[kLaneRows];
    [[unroll]] for (uint r = 0; r < kLaneRows; ++r)
      x[r] = x_tile[(row + r * rows_apart) * kTileStride + k];
    [[unroll]] for (uint o = 0; o < kLaneOutputs; ++o) {
      const vec4 w = w_tile[(column + o * kLanesAcross) * kTileStride + k];
      [[unroll]] for (uint r = 0; r < kLaneRows; ++r)
        sums[r * kLaneOutputs + o] += dot(x[r], w);
    }
  }
}

void mma_store(MmaSums, uint first_row, uint first_output) {
  const uint row = gl_LocalInvocationIndex / kLanesAcross;
  const uint column = gl_LocalInvocationIndex % kLanesAcross;
  const uint rows_apart = kTileRows / kLaneRows;
  [[unroll]] for (uint r = 0; r < kLaneRows; ++r)
    [[unroll]] for (uint o = 0; o < kLaneOutputs; ++o)
      store_sum(first_row + row + r * rows_apart, first_output + column + o * kLanesAcross,
                sums[r * kLaneOutputs + o]);
}
