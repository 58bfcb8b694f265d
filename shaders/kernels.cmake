# Every kernel, listed once.
#
#   hearth_kernel(NAME                 NAME.comp, and the kernel's name in the program
#     [SOURCE FILE.comp]               where the file is called otherwise
#     [AXES axis=a,b,c ...]            compiled for every combination; the values follow the name:
#                                      NAME.a; GLSL sees AXIS_A defined (in capitals)
#     [NEEDS feature ...])             left out where the shader compiler lacks a probe's feature

set(weight_formats f32,f16,bf16,q8_0,q4_0,q4_1,q5_0,q5_1,q2_k,q3_k,q4_k,q5_k,q6_k,iq4_nl,iq4_xs,mxfp4)

hearth_kernel(dequantize AXES weight=${weight_formats})
hearth_kernel(rms_norm)
hearth_kernel(matvec_subgroup AXES weight=f16)
hearth_kernel(matvec_invocation AXES weight=f16)

# What a device can do at most; hearth bench measures the others against these.
hearth_kernel(read_ceiling)
hearth_kernel(flops_ceiling)
