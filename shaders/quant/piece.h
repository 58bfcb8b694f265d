// What every weight format unpacks to, and the bit tricks that the formats share. Read by GLSL and C++,
// through glsl.h and cpp.h.
//
// A piece is 32 consecutive weights of a row. Word i holds weights 4*i to 4*i+3, interleaved: its bytes
// 0, 1, 2 and 3 are weights 4*i, 4*i+2, 4*i+1 and 4*i+3, so that one mask separates two neighbouring
// weights, each into the low bits of a half word. Everything here works on four or more weights at a
// time, without branches.
#ifndef HEARTH_QUANT_PIECE_H
#define HEARTH_QUANT_PIECE_H

#ifdef __cplusplus
namespace hearth::quant {
#endif

QUANT_CONST uint kPieceWeights = 32u;

// weight = scale * q + offset, with scale0 and offset0 for the first 16 weights and scale1 and offset1
// for the last 16. q holds signed bytes, interleaved.
struct Piece {
  uint q[8];
  float scale0;
  float scale1;
  float offset0;
  float offset1;
};

// The weights themselves: weight 4*i+b of the piece is component b of w[i].
struct FloatPiece {
  vec4 w[8];
};

// The start of the next plane: the first multiple of 16 after `bytes` bytes for each of `blocks` blocks.
QUANT_INLINE Plane next_plane(Plane plane, uint blocks, uint bytes) {
  return plane + ((uint64_t(blocks) * uint64_t(bytes) + uint64_t(15)) & ~uint64_t(15));
}

QUANT_INLINE float half_to_float(uint bits) { return unpackHalf2x16(bits).x; }

// A piece's scale is a half. load_half() loads it as a word, together with its neighbour's, because a
// word arrives sooner than 16 bits (measured on an H200); half_of_piece() extracts it. Kernels for many
// rows define LOAD_HALVES_SINGLY, because for them remembering which half to use costs more: 2048 rows
// of Q8_0 take 17 % longer without it.
#ifdef LOAD_HALVES_SINGLY
QUANT_INLINE uint load_half(Plane halves, uint piece) { return load_u16(halves, piece); }
QUANT_INLINE float half_of_piece(uint bits, uint) { return half_to_float(bits); }
#else
QUANT_INLINE uint load_half(Plane halves, uint piece) { return load_u32(halves, piece >> 1); }
QUANT_INLINE float half_of_piece(uint bits, uint piece) {
  return half_to_float(bits >> (16u * (piece & 1u)));
}
#endif

// The bytes of an interleaved word, in weight order.
QUANT_INLINE vec4 bytes_to_floats(uint q, float scale, float offset) {
  return vec4(scale * float(bitfieldExtract(int(q), 0, 8)) + offset,
              scale * float(bitfieldExtract(int(q), 16, 8)) + offset,
              scale * float(bitfieldExtract(int(q), 8, 8)) + offset,
              scale * float(bitfieldExtract(int(q), 24, 8)) + offset);
}

// The product is exact in every format, so that a fused multiply-add gives the same weight.
QUANT_INLINE FloatPiece piece_floats(Piece piece) {
  FloatPiece result;
  QUANT_UNROLL for (int i = 0; i < 4; ++i) {
    result.w[i] = bytes_to_floats(piece.q[i], piece.scale0, piece.offset0);
    result.w[i + 4] = bytes_to_floats(piece.q[i + 4], piece.scale1, piece.offset1);
  }
  return result;
}

// Gives all 32 weights the same scale and offset.
QUANT_INLINE Piece scale_piece(Piece piece, float scale, float offset) {
  piece.scale0 = scale;
  piece.scale1 = scale;
  piece.offset0 = offset;
  piece.offset1 = offset;
  return piece;
}

// Four-bit fields of a piece: 16 bytes, interleaved words. The byte in the position of weight j has
// weight j in its low and weight 16+j in its high nibble. Returns q of 0 to 15, shifted left by
// `position`, 0 to 4; the caller sets the scales.
QUANT_INLINE Piece nibble_piece_at(uvec4 nibbles, int position) {
  uint mask = 0x0f0f0f0fu << position;
  Piece piece;
  piece.q[0] = (nibbles.x << position) & mask;
  piece.q[1] = (nibbles.y << position) & mask;
  piece.q[2] = (nibbles.z << position) & mask;
  piece.q[3] = (nibbles.w << position) & mask;
  piece.q[4] = (nibbles.x >> (4 - position)) & mask;
  piece.q[5] = (nibbles.y >> (4 - position)) & mask;
  piece.q[6] = (nibbles.z >> (4 - position)) & mask;
  piece.q[7] = (nibbles.w >> (4 - position)) & mask;
  return scale_piece(piece, 0.0f, 0.0f);
}

QUANT_INLINE Piece nibble_piece(uvec4 nibbles) { return nibble_piece_at(nibbles, 0); }

// Two-bit fields of a piece: 8 bytes, interleaved words. The byte in the position of weight 16*k + b has
// weights 16*k + 4*i + b, i = 0..3, from its low bits up. Returns q of 0 to 3, shifted left by
// `position`, 0 or 6.
QUANT_INLINE Piece two_bit_piece_at(uvec2 fields, int position) {
  uint mask = 0x03030303u << position;
  Piece piece;
  QUANT_UNROLL for (int i = 0; i < 4; ++i) {
    piece.q[i] = (position == 0 ? fields.x >> (2 * i) : fields.x << (6 - 2 * i)) & mask;
    piece.q[i + 4] = (position == 0 ? fields.y >> (2 * i) : fields.y << (6 - 2 * i)) & mask;
  }
  return scale_piece(piece, 0.0f, 0.0f);
}

QUANT_INLINE Piece two_bit_piece(uvec2 fields) { return two_bit_piece_at(fields, 0); }

// One-bit fields of a piece are a bit slice: 4 bytes, an interleaved word whose bits i are those of word
// i. Returns the bits of word i's weights at bit `position` of their bytes.
QUANT_INLINE uint slice_bits(uint slice, int i, int position) {
  uint moved = i < position ? slice << (position - i) : slice >> (i - position);
  return moved & (0x01010101u << position);
}

// q - 128 in each byte, where q is 0 to 255. Formats centred on half of their range shift q left until
// it fills the byte, so that this makes it signed; their scales compensate for the shift.
QUANT_INLINE Piece subtract_half_range(Piece piece) {
  QUANT_UNROLL for (int i = 0; i < 8; ++i) piece.q[i] ^= 0x80808080u;
  return piece;
}

// q - centre in each byte, where q is 0 to 127 and centre at most 128. Going through the sign bits keeps
// borrows from crossing bytes.
QUANT_INLINE uint subtract_bytes(uint q, uint centre) {
  return (q + (0x80808080u - centre * 0x01010101u)) ^ 0x80808080u;
}

QUANT_INLINE Piece subtract_all(Piece piece, uint centre) {
  QUANT_UNROLL for (int i = 0; i < 8; ++i) piece.q[i] = subtract_bytes(piece.q[i], centre);
  return piece;
}

// Scale and minimum of piece `index` (0 to 7) of a Q4_K or Q5_K block, as scale and offset. The header
// is as in the file: x = d and dmin as halves; y and z = one byte each for the scale and minimum of
// pieces 0 to 3, whose high two bits belong to pieces 4 to 7; w = the low four bits of the latter.
QUANT_INLINE vec2 scale_and_offset(uvec4 header, uint index) {
  bool upper = index >= 4u;
  uint shift = 8u * (index & 3u);
  uint low = upper ? 15u : 63u, high = upper ? 48u : 0u;
  uint scale = (((upper ? header.w : header.y) >> shift) & low) | ((header.y >> (shift + 2u)) & high);
  uint minimum = (((upper ? header.w >> 4 : header.z) >> shift) & low) |
                 ((header.z >> (shift + 2u)) & high);
  vec2 d = unpackHalf2x16(header.x);
  return vec2(d.x * float(scale), -(d.y * float(minimum)));
}

// Formats whose nibbles index a table of signed bytes are unpacked in bit slices: slice t of eight holds
// bit t of every weight, so that a table lookup is a few bitwise operations on all 32 weights.
// transpose_bits transposes the 8x8 bits formed by the same byte of eight words, which converts words to
// slices and back; nibble_slices does it for the four low slices.

// Exchanges the bits of a that are `distance` above each masked bit with the masked bits of b. REQUIRES:
// mask << distance == ~mask, so that each result is one shift and one selection of bits.
QUANT_INLINE uvec2 exchange_bits(uint a, uint b, int distance, uint mask) {
  return uvec2((a & mask) | ((b << distance) & ~mask), ((a >> distance) & mask) | (b & ~mask));
}

// From the 16 bytes that nibble_piece takes: component t holds bit t of every weight.
QUANT_INLINE uvec4 nibble_slices(uvec4 nibbles) {
  uvec2 a = exchange_bits(nibbles.x, nibbles.y, 1, 0x55555555u);
  uvec2 b = exchange_bits(nibbles.z, nibbles.w, 1, 0x55555555u);
  uvec2 even = exchange_bits(a.x, b.x, 2, 0x33333333u);
  uvec2 odd = exchange_bits(a.y, b.y, 2, 0x33333333u);
  return uvec4(even.x, odd.x, even.y, odd.y);
}

QUANT_INLINE Piece transpose_bits(Piece piece) {
  QUANT_UNROLL for (int i = 0; i < 8; i += 2) {
    uvec2 pair = exchange_bits(piece.q[i], piece.q[i + 1], 1, 0x55555555u);
    piece.q[i] = pair.x;
    piece.q[i + 1] = pair.y;
  }
  QUANT_UNROLL for (int i = 0; i < 4; ++i) {
    int low = i + (i & 2);
    uvec2 pair = exchange_bits(piece.q[low], piece.q[low + 2], 2, 0x33333333u);
    piece.q[low] = pair.x;
    piece.q[low + 2] = pair.y;
  }
  QUANT_UNROLL for (int i = 0; i < 4; ++i) {
    uvec2 pair = exchange_bits(piece.q[i], piece.q[i + 4], 4, 0x0f0f0f0fu);
    piece.q[i] = pair.x;
    piece.q[i + 4] = pair.y;
  }
  return piece;
}

// The table of IQ4_NL and IQ4_XS: nibbles 0 to 15 stand for
// -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113.
// Eight Boolean functions of four bits, one per bit of the result, as a circuit of 23 gates found by a
// search; a test checks every nibble.
QUANT_INLINE Piece iq4_piece(uvec4 nibbles) {
  uvec4 b = nibble_slices(nibbles);
  uint same03 = ~(b.x ^ b.w);
  uint six = b.z & (~b.w | b.y | same03);
  uint c = b.w ^ (six | ~same03);
  uint d = ~(b.y ^ (~b.w & ~b.z));
  uint zero = d | ~c;
  uint three = c ^ (b.y & (b.x ^ zero));
  uint two = d ^ ((b.w ^ b.z) & ~three);
  uint four = ~(same03 ^ ((six | ~same03) & ~(three | two)));
  Piece piece;
  piece.q[0] = zero;
  piece.q[1] = c & (b.y | ~b.x);
  piece.q[2] = two;
  piece.q[3] = three;
  piece.q[4] = four;
  piece.q[5] = b.y ^ (four & ~b.x);
  piece.q[6] = six;
  piece.q[7] = ~b.w;
  return transpose_bits(scale_piece(piece, 0.0f, 0.0f));
}

#ifdef __cplusplus
}  // namespace hearth::quant
#endif

#endif
