// The online softmax of a stream of attention_rows.comp: run after run of keys and values, each score
// relative to the largest so far.
//
// Include after attention_run.glsl and attention_score.glsl; needs kRows and kSubgroupSize.
#ifndef HEARTH_ATTENTION_SOFTMAX_GLSL
#define HEARTH_ATTENTION_SOFTMAX_GLSL

// The lane's part of the queries, and the keys [x, y) that each row sees.
struct Rows {
  vec4 q[kRows * kLaneChunkQuads];
  uvec2 visible[kRows];
#ifdef TREE_ROWS
  TreeKeys tree[kRows];  // and the keys of its tree that it sees
#endif
};

// A stream's softmax so far: the lane's part of the sums of values, weighted by 2^(score - max).
struct Softmax {
  vec4 sums[kRows * kLaneChunkQuads];
  float max_score[kRows];
  float weight_sum[kRows];
};

// Adds the keys and values of a run to the softmax.
void process_run(Run run, Rows rows, inout Softmax soft) {
  float score[kRun * kRows];
  [[unroll]] for (uint i = 0; i < kRun * kRows; ++i) score[i] = 0.0;
  [[unroll]] for (uint k = 0; k < kRun; ++k) {
    [[unroll]] for (uint c = 0; c < kLaneChunks; ++c) {
      const KvChunk chunk = run.keys[k * kLaneChunks + c];
      float dots[kRows];
      [[unroll]] for (uint r = 0; r < kRows; ++r) dots[r] = 0.0;
      [[unroll]] for (uint i = 0; i < kChunkQuads; ++i) {
        const vec4 key = chunk_quad(chunk, i);
        [[unroll]] for (uint r = 0; r < kRows; ++r)
          dots[r] += dot(rows.q[r * kLaneChunkQuads + c * kChunkQuads + i], key);
      }
      [[unroll]] for (uint r = 0; r < kRows; ++r)
        score[k * kRows + r] += dots[r] * chunk_scale(chunk);
    }
  }
  [[unroll]] for (uint offset = 1; offset < kStreamLanes; offset *= 2) {
    [[unroll]] for (uint i = 0; i < kRun * kRows; ++i)
      score[i] += subgroupShuffleXor(score[i], offset);
  }

  if (params.soft_cap != 0.0) {
    [[unroll]] for (uint i = 0; i < kRun * kRows; ++i) score[i] = cap_score(score[i]);
  }

  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    float new_max = soft.max_score[r];
    [[unroll]] for (uint k = 0; k < kRun; ++k) {
      const uint key = run.first + k;
      bool sees = key >= rows.visible[r].x && key < rows.visible[r].y;
#ifdef TREE_ROWS
      sees = sees || sees_tree_key(rows.tree[r], key);
#endif
      score[k * kRows + r] = sees ? score[k * kRows + r] : kMasked;
      new_max = max(new_max, score[k * kRows + r]);
    }
    const float shrink = exp2(soft.max_score[r] - new_max);
    soft.max_score[r] = new_max;
    soft.weight_sum[r] *= shrink;
    [[unroll]] for (uint i = 0; i < kLaneChunkQuads; ++i) soft.sums[r * kLaneChunkQuads + i] *= shrink;
    [[unroll]] for (uint k = 0; k < kRun; ++k) {
      score[k * kRows + r] = exp2(score[k * kRows + r] - new_max);
      soft.weight_sum[r] += score[k * kRows + r];
    }
  }
  [[unroll]] for (uint k = 0; k < kRun; ++k) {
    [[unroll]] for (uint c = 0; c < kLaneChunks; ++c) {
      const KvChunk chunk = run.values[k * kLaneChunks + c];
      [[unroll]] for (uint i = 0; i < kChunkQuads; ++i) {
        const vec4 value = chunk_quad(chunk, i) * chunk_scale(chunk);
        [[unroll]] for (uint r = 0; r < kRows; ++r)
          soft.sums[r * kLaneChunkQuads + c * kChunkQuads + i] += score[k * kRows + r] * value;
      }
    }
  }
}

void begin_softmax(out Softmax soft) {
  [[unroll]] for (uint i = 0; i < kRows * kLaneChunkQuads; ++i) soft.sums[i] = vec4(0);
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    soft.max_score[r] = kNoMax;
    soft.weight_sum[r] = 0.0;
  }
}

// Merges the streams of a subgroup.
void merge_streams(inout Softmax soft) {
  [[unroll]] for (uint offset = kStreamLanes; offset < kSubgroupSize; offset *= 2) {
    [[unroll]] for (uint r = 0; r < kRows; ++r) {
      const float new_max = max(soft.max_score[r], subgroupShuffleXor(soft.max_score[r], offset));
      const float shrink = exp2(soft.max_score[r] - new_max);
      soft.max_score[r] = new_max;
      soft.weight_sum[r] *= shrink;
      soft.weight_sum[r] += subgroupShuffleXor(soft.weight_sum[r], offset);
      [[unroll]] for (uint i = 0; i < kLaneChunkQuads; ++i) {
        vec4 sum = soft.sums[r * kLaneChunkQuads + i] * shrink;
        soft.sums[r * kLaneChunkQuads + i] = sum + subgroupShuffleXor(sum, offset);
      }
    }
  }
}

#endif
