// Compiles if the shader compiler supports packed 8-bit dot products.
#version 460
#extension GL_EXT_integer_dot_product : require
layout(local_size_x = 32) in;
layout(push_constant) uniform Push { uint a, b; } push;
void main() { int c = dotPacked4x8EXT(int(push.a), int(push.b)); }
