// The files of a Hugging Face folder except its tokenizer: a safetensors file, its index, and
// config.json. Each reader gets every input; all but one stop at the first byte.
#include <cstring>
#include <deque>

#include "engine/weights/hugging_face/config.h"
#include "engine/weights/hugging_face/expert_tensors.h"
#include "engine/weights/hugging_face/tensor_names.h"
#include "engine/weights/hugging_face/weight_index.h"
#include "engine/weights/json_text.h"
#include "engine/weights/safetensors.h"
#include "engine/weights/stored_tensor.h"
#include "tests/fuzz/fuzz.h"

namespace hearth {
namespace {

std::string with_length(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + std::string(data_bytes, '\1');
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  return {
      with_length(R"({"__metadata__":{"format":"pt"},)"
                  R"("model.norm.weight":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                  R"("lm_head.weight":{"dtype":"BF16","shape":[2,4],"data_offsets":[16,32]}})",
                  32),
      with_length(R"({"model.layers.0.mlp.experts.gate_up_proj_blocks":)"
                  R"({"dtype":"U8","shape":[2,4,1,16],"data_offsets":[0,128]},)"
                  R"("model.layers.0.mlp.experts.gate_up_proj_scales":)"
                  R"({"dtype":"U8","shape":[2,4,1],"data_offsets":[128,136]},)"
                  R"("model.layers.0.mlp.experts.gate_up_proj_bias":)"
                  R"({"dtype":"BF16","shape":[2,4],"data_offsets":[136,152]},)"
                  R"("model.layers.0.mlp.experts.down_proj":)"
                  R"({"dtype":"BF16","shape":[2,2,3],"data_offsets":[152,176]}})",
                  176),
      R"({"model_type":"gpt_oss","num_hidden_layers":2,"hidden_size":8,"num_attention_heads":2,)"
      R"("intermediate_size":8,"vocab_size":8,"max_position_embeddings":64,"rms_norm_eps":1e-5,)"
      R"("num_local_experts":4,"num_experts_per_tok":2,"head_dim":8,"rope_scaling":)"
      R"({"rope_type":"yarn","factor":2,"truncate":false},"quantization_config":)"
      R"({"quant_method":"mxfp4"}})",
      R"({"metadata":{"total_size":1},"weight_map":{"a":"x.safetensors","b":"y.safetensors"}})",
      R"({"model_type":"gemma3","text_config":{"model_type":"gemma3_text","num_hidden_layers":2,)"
      R"("rope_scaling":{"rope_type":"linear","factor":8.0}},"eos_token_id":[1,106]})",
      R"({"model_type":"phi3","num_hidden_layers":1,"hidden_size":8,"num_attention_heads":2,)"
      R"("intermediate_size":8,"vocab_size":8,"max_position_embeddings":64,"rms_norm_eps":1e-5,)"
      R"("original_max_position_embeddings":32,"sliding_window":16,"rope_scaling":)"
      R"({"type":"longrope","short_factor":[1,1],"long_factor":[1,2]}})",
      R"({"model_type":"qwen3","num_hidden_layers":2,"hidden_size":8,"num_attention_heads":2,)"
      R"("intermediate_size":8,"vocab_size":8,"max_position_embeddings":64,"rms_norm_eps":1e-5,)"
      R"("layer_types":["full_attention","sliding_attention"],"sliding_window":8,)"
      R"("rope_parameters":{"rope_type":"yarn","rope_theta":1e6,"factor":2}})",
  };
}

}  // namespace hearth

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hearth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto bytes = std::as_bytes(std::span(data, size));
  const hugging_face::Family& family = *hugging_face::find_family("llama");
  const auto tensors = read_safetensors(
      bytes, [&](std::string_view name) { return hugging_face::gguf_tensor_name(name, family); });
  volatile std::byte last{};
  if (tensors.ok())
    for (const ModelTensor& tensor : *tensors) last = tensor.bytes.back();
  // Experts whose rows do not follow each other: the first and the last row must be in the file.
  const hugging_face::Family& gpt_oss = *hugging_face::find_family("gpt_oss");
  auto experts = read_safetensors(
      bytes, [&](std::string_view name) { return hugging_face::gguf_tensor_name(name, gpt_oss); });
  std::deque<TensorStrides> strides;
  if (experts.ok() && hugging_face::arrange_experts(*experts, strides).ok())
    for (const ModelTensor& tensor : *experts) {
      if (!tensor.strides) continue;
      std::vector<std::byte> row(tensor.plain_bytes() / tensor.rows);
      read_tensor_rows(tensor, 0, 1, row);
      read_tensor_rows(tensor, tensor.rows - 1, 1, row);
      if (!row.empty()) last = row.back();
    }
  (void)last;
  (void)hugging_face::read_weight_index(text);
  const auto json = parse_json(text);
  if (json.ok()) (void)hugging_face::translate_config(*json);
  return 0;
}
