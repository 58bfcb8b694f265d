# Every kernel, listed once.
#
#   hearth_kernel(NAME                 NAME.comp, and the kernel's name in the program
#     [FROM OTHER]                     compiled from OTHER.comp instead,
#     [DEFINES MACRO ...]              with these macros defined
#     [AXES axis=a,b,c ...]            compiled for every combination of values. A value is appended to
#                                      the name, NAME.a, and defines AXIS_A (in capitals) in GLSL
#     [NEEDS feature ...]              left out if the shader compiler lacks the feature (probes/)
#     [TESTS])                         only for tests, not part of the program

set(weight_formats f32,f16,bf16,q8_0,q4_0,q4_1,q5_0,q5_1,q2_k,q3_k,q4_k,q5_k,q6_k,iq4_nl,iq4_xs,mxfp4)

hearth_kernel(rms_norm)

# Between the matmuls: embedding, rope and KV write, MLP activation, copies of rows and blocks.
hearth_kernel(embed AXES weight=${weight_formats})
hearth_kernel(rope_kv AXES kv=f16,q8_0)
hearth_kernel(rope_kv_tree FROM rope_kv DEFINES TREE_ROWS AXES kv=f16,q8_0)
hearth_kernel(rope_kv_dealt FROM rope_kv DEFINES DEALT AXES kv=f16,q8_0)
hearth_kernel(rope_kv_tree_dealt FROM rope_kv DEFINES TREE_ROWS DEALT AXES kv=f16,q8_0)
hearth_kernel(mlp_activation)
hearth_kernel(gather_rows)
hearth_kernel(pool_rows)
hearth_kernel(keep_hidden)
hearth_kernel(compare_hidden)
hearth_kernel(block_copy)

# Matmul.
set(quantized_formats q8_0,q4_0,q4_1,q5_0,q5_1,q2_k,q3_k,q4_k,q5_k,q6_k,iq4_nl,iq4_xs,mxfp4)
hearth_kernel(matvec_float AXES weight=${weight_formats})
hearth_kernel(matvec_team AXES weight=f32,f16,bf16)
hearth_kernel(matvec_integer AXES weight=${quantized_formats} NEEDS integer_dot)
hearth_kernel(matmul_invocation AXES weight=${weight_formats})
hearth_kernel(matmul_tile AXES weight=${weight_formats})
hearth_kernel(matmul_coopmat AXES weight=f16,bf16,${quantized_formats} NEEDS coopmat)
hearth_kernel(matmul_direct AXES weight=f16,bf16,${quantized_formats} NEEDS coopmat)
hearth_kernel(matmul_team AXES weight=f16,bf16,${quantized_formats} NEEDS coopmat)
hearth_kernel(matmul_wide AXES weight=f16,bf16,${quantized_formats} NEEDS coopmat)
hearth_kernel(fragment_lanes NEEDS coopmat)
hearth_kernel(chain_check)
hearth_kernel(half_rows)
hearth_kernel(matmul_reduce)

# Mixture of experts: the matmul kernels with a matrix for each tile of rows.
hearth_kernel(route)
hearth_kernel(group_experts)
hearth_kernel(combine_experts)
hearth_kernel(experts_invocation AXES weight=${weight_formats})
hearth_kernel(experts_float FROM matvec_float DEFINES EXPERTS AXES weight=${weight_formats})
hearth_kernel(experts_team FROM matvec_team DEFINES EXPERTS AXES weight=f32,f16,bf16)
hearth_kernel(experts_integer FROM matvec_integer DEFINES EXPERTS AXES weight=${quantized_formats} NEEDS integer_dot)
hearth_kernel(experts_sum_integer FROM matvec_integer DEFINES EXPERTS EXPERT_SUMS AXES weight=${quantized_formats} NEEDS integer_dot)
hearth_kernel(experts_few FROM matmul_team DEFINES EXPERTS AXES weight=mxfp4 NEEDS coopmat)
hearth_kernel(experts_one_row AXES weight=mxfp4 NEEDS coopmat)
hearth_kernel(experts_tile FROM matmul_tile DEFINES EXPERTS AXES weight=${weight_formats})
hearth_kernel(experts_coopmat FROM matmul_coopmat DEFINES EXPERTS AXES weight=f16,bf16,${quantized_formats} NEEDS coopmat)
hearth_kernel(experts_direct FROM matmul_direct DEFINES EXPERTS AXES weight=f16,bf16,${quantized_formats} NEEDS coopmat)
hearth_kernel(experts_wide FROM matmul_wide DEFINES EXPERTS AXES weight=f16,bf16,${quantized_formats} NEEDS coopmat)

# Attention over the paged KV cache.
hearth_kernel(attention_rows AXES kv=f16,q8_0)
hearth_kernel(attention_tile AXES kv=f16,q8_0 NEEDS coopmat)
hearth_kernel(attention_direct AXES kv=f16,q8_0 NEEDS coopmat)
hearth_kernel(attention_lanes AXES kv=f16,q8_0 NEEDS coopmat)
hearth_kernel(attention_subgroup AXES kv=f16,q8_0)
# The same for steps in which sequences may end with a tree of proposed tokens.
hearth_kernel(attention_rows_tree FROM attention_rows DEFINES TREE_ROWS AXES kv=f16,q8_0)
hearth_kernel(attention_subgroup_tree FROM attention_subgroup DEFINES TREE_ROWS AXES kv=f16,q8_0)
# The same for heads with sinks.
foreach(kernel rows subgroup)
  hearth_kernel(attention_${kernel}_sinks FROM attention_${kernel} DEFINES SINKS AXES kv=f16,q8_0)
endforeach()
foreach(kernel tile direct lanes)
  hearth_kernel(attention_${kernel}_sinks FROM attention_${kernel} DEFINES SINKS AXES kv=f16,q8_0 NEEDS coopmat)
endforeach()
foreach(kernel rows subgroup)
  hearth_kernel(attention_${kernel}_tree_sinks FROM attention_${kernel} DEFINES TREE_ROWS SINKS AXES kv=f16,q8_0)
endforeach()
# The same for ranks that share the KV blocks.
foreach(kernel rows subgroup)
  hearth_kernel(attention_${kernel}_dealt FROM attention_${kernel} DEFINES DEALT AXES kv=f16,q8_0)
  hearth_kernel(attention_${kernel}_dealt_sinks FROM attention_${kernel} DEFINES DEALT SINKS AXES kv=f16,q8_0)
  hearth_kernel(attention_${kernel}_tree_dealt FROM attention_${kernel} DEFINES TREE_ROWS DEALT AXES kv=f16,q8_0)
  hearth_kernel(attention_${kernel}_tree_dealt_sinks FROM attention_${kernel} DEFINES TREE_ROWS DEALT SINKS
    AXES kv=f16,q8_0)
endforeach()
foreach(kernel tile direct lanes)
  hearth_kernel(attention_${kernel}_dealt FROM attention_${kernel} DEFINES DEALT AXES kv=f16,q8_0 NEEDS coopmat)
  hearth_kernel(attention_${kernel}_dealt_sinks FROM attention_${kernel} DEFINES DEALT SINKS AXES kv=f16,q8_0
    NEEDS coopmat)
endforeach()

# Sampling.
hearth_kernel(sample_scan)
hearth_kernel(sample_pick)
hearth_kernel(sample_stages)
hearth_kernel(history_commit)
hearth_kernel(mix_logits)

# The ceilings of a device; hearth bench compares the other kernels with these.
hearth_kernel(read_ceiling)
hearth_kernel(flops_ceiling)
hearth_kernel(matrix_ceiling NEEDS coopmat)

# Weights unpacked by themselves, and kernels with emulated fragments, for devices without them.
hearth_kernel(dequantize TESTS AXES weight=${weight_formats})
hearth_kernel(noise TESTS)
hearth_kernel(matmul_direct_emulated TESTS AXES weight=f16,q4_k)
hearth_kernel(matmul_team_emulated TESTS AXES weight=f16,q4_k)
hearth_kernel(matmul_wide_emulated TESTS AXES weight=f16,q4_k)
hearth_kernel(attention_direct_emulated TESTS AXES kv=f16,q8_0)
hearth_kernel(attention_lanes_emulated TESTS AXES kv=f16,q8_0)
hearth_kernel(experts_few_emulated TESTS FROM matmul_team_emulated DEFINES EXPERTS AXES weight=mxfp4)
hearth_kernel(experts_one_row_emulated TESTS FROM experts_one_row DEFINES EMULATE_FRAGMENTS AXES weight=mxfp4)
hearth_kernel(experts_direct_emulated TESTS FROM matmul_direct_emulated DEFINES EXPERTS AXES weight=f16,mxfp4)
hearth_kernel(experts_wide_emulated TESTS FROM matmul_wide_emulated DEFINES EXPERTS AXES weight=q4_k)
foreach(kernel direct_emulated lanes_emulated)
  hearth_kernel(attention_${kernel}_sinks TESTS FROM attention_${kernel} DEFINES SINKS AXES kv=f16,q8_0)
  hearth_kernel(attention_${kernel}_dealt TESTS FROM attention_${kernel} DEFINES DEALT AXES kv=f16,q8_0)
  hearth_kernel(attention_${kernel}_dealt_sinks TESTS FROM attention_${kernel} DEFINES DEALT SINKS AXES kv=f16,q8_0)
endforeach()
