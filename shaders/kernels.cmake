# Every kernel, listed once.
#
#   hearth_kernel(NAME                 NAME.comp, and the kernel's name in the program
#     [SOURCE FILE.comp]               where the file is called otherwise
#     [AXES axis=a,b,c ...]            compiled for every combination; the values follow the name:
#                                      NAME.a; GLSL sees AXIS_A defined (in capitals)
#     [NEEDS feature ...])             left out where the shader compiler lacks a probe's feature

hearth_kernel(rms_norm)
hearth_kernel(matvec_subgroup AXES weight=f16)
hearth_kernel(matvec_invocation AXES weight=f16)

# What a device can do at most; hearth bench measures the others against these.
hearth_kernel(read_ceiling)
hearth_kernel(flops_ceiling)
