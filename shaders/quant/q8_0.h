// Q8_0: weight = d * q, 32 weights a block.
// File: half d; 32 signed bytes q.
QUANT_CONST uint kBlockWeights = 32u;
QUANT_CONST uint kBlockBytes = 34u;
QUANT_CONST uint kPlaneBytes[2] = {32u, 2u};  // in the order of Planes
QUANT_CONST uint kPieceScales = 1u;
QUANT_CONST bool kHasOffset = false;

#ifdef __cplusplus
constexpr const char* kName = "Q8_0";
constexpr uint kGgmlType = 8u;
constexpr Field kFields[] = {
    {0u, 0u, 2u, 32u, FieldOrder::kBytes},
    {1u, 0u, 0u, 2u, FieldOrder::kBytes},
};
#endif

struct Planes {
  Plane quants;
  Plane d;
};

QUANT_INLINE Planes planes_at(Plane base, uint blocks) {
  Planes planes;
  planes.quants = base;
  planes.d = next_plane(planes.quants, blocks, kPlaneBytes[0]);
  return planes;
}

QUANT_INLINE Piece unpack_piece(Planes planes, uint piece) {
  uvec4 low = load_16b(planes.quants, piece * 2u);
  uvec4 high = load_16b(planes.quants, piece * 2u + 1u);
  Piece result;
  result.q[0] = low.x;
  result.q[1] = low.y;
  result.q[2] = low.z;
  result.q[3] = low.w;
  result.q[4] = high.x;
  result.q[5] = high.y;
  result.q[6] = high.z;
  result.q[7] = high.w;
  return scale_piece(result, half_to_float(load_u16(planes.d, piece)), 0.0f);
}

QUANT_INLINE FloatPiece unpack_float_piece(Planes planes, uint piece) {
  return piece_floats(unpack_piece(planes, piece));
}
