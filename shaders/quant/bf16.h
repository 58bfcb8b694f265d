// BF16: the high 16 bits of a float. Device layout: one plane, the same bytes as in the file.
#define FORMAT_IS_FLOAT 1
QUANT_CONST uint kBlockWeights = 1u;
QUANT_CONST uint kBlockBytes = 2u;
QUANT_CONST uint kPlaneBytes[1] = {2u};
QUANT_CONST uint kPieceScales = 0u;  // no integers to scale
QUANT_CONST bool kHasOffset = false;

#ifdef __cplusplus
constexpr const char* kName = "BF16";
constexpr uint kGgmlType = 30u;
constexpr Field kFields[] = {{0u, 0u, 0u, 2u, FieldOrder::kBytes}};
#endif

struct Planes {
  Plane values;
};

QUANT_INLINE Planes planes_at(Plane base, uint) {
  Planes planes;
  planes.values = base;
  return planes;
}

QUANT_INLINE float load_weight(Planes planes, uint index) {
  return uintBitsToFloat(load_u16(planes.values, index) << 16);
}

QUANT_INLINE vec4 brain_to_floats(uint low, uint high) {
  return vec4(uintBitsToFloat(low << 16), uintBitsToFloat(low & 0xffff0000u),
              uintBitsToFloat(high << 16), uintBitsToFloat(high & 0xffff0000u));
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  FloatPiece result;
  QUANT_UNROLL for (int i = 0; i < 4; ++i) {
    uvec4 bits = load_16b(planes.values, piece * 4u + uint(i));
    result.w[2 * i] = brain_to_floats(bits.x, bits.y);
    result.w[2 * i + 1] = brain_to_floats(bits.z, bits.w);
  }
  return result;
}
