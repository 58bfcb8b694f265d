// Cuts a model's weights for one of several ranks that divide every layer (engine/ranks). A rank
// has
//   heads:       whole KV heads with the q heads that share them, or, if there are fewer KV heads
//                than ranks, one of them with some of its q heads, so that several ranks keep the
//                same keys and values; rows of q, k and v, columns of the output projection
//   MLP:         rows of gate and up, columns of down; of every expert, if there are experts
//   vocabulary:  rows of the embedding and of the output matrix
// and all of what is small: norms and the router. Columns are cut between quantized blocks, so
// shares of different sizes are possible. Biases of the products whose results are added up belong
// to the first rank alone.
#pragma once

#include "engine/model/model_config.h"
#include "engine/model/tensor_shard.h"
#include "engine/model/weight_table.h"
#include "engine/weights/model_file.h"
#include "runtime/result.h"

namespace hearth {

// Changes the whole model's configuration and weights to those of the share. Fails if the heads,
// the MLP's blocks of columns or the vocabulary are too few for the ranks, or if fewer KV heads
// than ranks are not a divisor of their number. REQUIRES: table.check(file) succeeded.
Status shard_weights(const ModelFile& file, const TensorShard& shard, ModelConfig& config,
                     WeightTable& table);

}  // namespace hearth
