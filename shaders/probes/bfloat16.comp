// Does this shader compiler know bfloat16?
#version 460
#extension GL_EXT_bfloat16 : require
layout(local_size_x = 32) in;
void main() { bfloat16_t a = bfloat16_t(1.0); }
