// F32: weights as they are. Device layout: one plane, the same bytes as in the file.
#define FORMAT_IS_FLOAT 1
QUANT_CONST uint kBlockWeights = 1u;
QUANT_CONST uint kBlockBytes = 4u;
QUANT_CONST uint kPlaneBytes[1] = {4u};
QUANT_CONST uint kPieceScales = 0u;  // no integers to scale
QUANT_CONST bool kHasOffset = false;

#ifdef __cplusplus
constexpr const char* kName = "F32";
constexpr uint kGgmlType = 0u;
constexpr Field kFields[] = {{0u, 0u, 0u, 4u, FieldOrder::kBytes}};
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
  return uintBitsToFloat(load_u32(planes.values, index));
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  FloatPiece result;
  QUANT_UNROLL for (int i = 0; i < 8; ++i) {
    uvec4 bits = load_16b(planes.values, piece * 8u + uint(i));
    result.w[i] = vec4(uintBitsToFloat(bits.x), uintBitsToFloat(bits.y), uintBitsToFloat(bits.z),
                       uintBitsToFloat(bits.w));
  }
  return result;
}
