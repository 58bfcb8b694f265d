#!/usr/bin/env python3
"""Tiles of matmul_coopmat for one product, a line each, for matmul_sweep.

    tile_variants.py FORMAT ROWS OUTPUTS INPUTS [--gate] [--rounds 0,2,4] [--ahead 1,2]
                     [--widths 64,128,192] [--fragment 8]
    tile_variants.py FORMAT ROWS OUTPUTS INPUTS [--gate] --direct
    tile_variants.py FORMAT ROWS OUTPUTS INPUTS [--gate] --wide

The second form is for matmul_direct: parts of 8, 16 and 32 outputs in groups of 4 to 16 subgroups; the
third for matmul_wide, with the splits and shares of k that leave the fewest multiprocessors idle.

For up to 112 rows a tile holds them all; more rows get tiles of 96 to 256. Of the ways to split k
among groups, the one that product_time() in engine/ops/matmul/tiles.cpp likes best. Tiles that need more shared memory
than there is are left out: a device may hang on them.
"""
import argparse

FRAGMENT = 16
STEP = 64            # inputs
MOST_SHARED = 48 * 1024
BOTH_FIT = 32 * 1024  # two groups of this much shared memory run side by side, on an H200
MOST_SPLITS, FEWEST_STEPS, PART_INPUTS = 16, 4, 256


def divide_up(a, b):
    return -(-a // b)


def resident(tile_rows, tile_outputs):
    """How many groups a multiprocessor runs at once."""
    shared = (tile_rows + tile_outputs) * (STEP // 8 + 1) * 16
    return max(1, 2 * BOTH_FIT // shared) if shared <= BOTH_FIT else 1


def best_splits(options, tile_rows, tile_outputs, round_steps):
    """The cheapest number of parts of k, or None where rounds are not whole."""
    steps = divide_up(options.inputs, STEP)
    tiles = divide_up(options.rows, tile_rows) * divide_up(options.outputs, tile_outputs)
    at_once = options.multiprocessors * resident(tile_rows, tile_outputs)
    choices = []
    for splits in range(1, 2 if options.gate else MOST_SPLITS + 1):
        if splits > 1 and (steps // splits < FEWEST_STEPS or tiles * splits > at_once):
            break
        if round_steps and steps % (round_steps * splits):
            continue
        share = divide_up(steps, splits) * STEP + (PART_INPUTS if splits > 1 else 0)
        choices.append((divide_up(tiles * splits, at_once) * share, splits))
    return min(choices)[1] if choices else None


def parts(tile_rows, tile_outputs, options):
    """Ways to share a tile among 2 to 16 subgroups, each with at most 128 registers of sums."""
    for rows in range(FRAGMENT, tile_rows + 1, FRAGMENT):
        for outputs in range(options.fragment, tile_outputs + 1, options.fragment):
            if tile_rows % rows or tile_outputs % outputs:
                continue
            subgroups = tile_rows // rows * (tile_outputs // outputs)
            # Some gates meet their ups in shared memory, a row of fragments a subgroup.
            meet = options.gate and outputs // options.fragment % 2
            if meet and subgroups * outputs * FRAGMENT * 4 > MOST_SHARED:
                continue
            if 2 <= subgroups <= 16 and 256 <= rows * outputs <= 128 * 32:
                yield rows, outputs, subgroups


def print_direct(options):
    """Tiles of matmul_direct, with k shared by as many groups as one and two a multiprocessor make."""
    block, fragment = 128, 8
    rows = divide_up(options.rows, FRAGMENT) * FRAGMENT
    for part in (8, 16, 32):
        for subgroups in (4, 7, 8, 14, 16):
            outputs = part * subgroups
            tiles = divide_up(options.outputs, outputs)
            if rows * part > 96 * options.subgroup or (options.gate and outputs // fragment % 2):
                continue
            for buffers in (1, 2):
                if rows * block * 2 * buffers > MOST_SHARED:
                    continue
                wanted = {1} if options.gate else {max(1, options.multiprocessors * groups // tiles)
                                                   for groups in (1, 2)}
                for splits in sorted(wanted):
                    if splits > min(MOST_SPLITS, options.inputs // block):
                        continue
                    gate = int(options.gate)
                    print(f"matmul_direct.{options.format.lower()}", options.rows, options.outputs,
                          options.inputs, 1, tiles, splits, subgroups * options.subgroup, 0, rows,
                          outputs, buffers, splits, part, subgroups, gate, gate)


def wide_shares(options, tiles, steps):
    """(splits, share) of every tile's k or the last tiles', and the turns that the device takes."""
    at_once = options.multiprocessors
    yield 1, 1, divide_up(tiles, at_once)
    for splits in range(2, MOST_SPLITS + 1):
        if not options.gate and tiles * splits <= at_once and steps // splits >= FEWEST_STEPS:
            yield splits, 1, 1 / splits + PART_INPUTS / options.inputs
    left = tiles % at_once
    for share in range(2, 9):
        if tiles > at_once and left and left * share <= at_once:
            yield 1, share, tiles // at_once + 1 / share + (256 + 160 * share) / options.inputs


def wide_parts(tile_rows, tile_outputs, options):
    """Ways to share a tile among subgroups: few fragments of either operand, and registers for sums."""
    for rows in range(FRAGMENT, tile_rows + 1, FRAGMENT):
        for outputs in range(FRAGMENT, tile_outputs + 1, FRAGMENT):
            subgroups = tile_rows // rows * (tile_outputs // outputs)
            if tile_rows % rows or tile_outputs % outputs or subgroups not in options.subgroups:
                continue
            even = max(rows, outputs) <= 4 * min(rows, outputs)
            if even and 48 <= rows * outputs // options.subgroup <= 144:
                yield rows, outputs, subgroups


def print_wide(options):
    """Tiles of matmul_wide, each with the way to share k out that takes the fewest turns."""
    one_tile = options.rows <= 128
    heights = [divide_up(options.rows, FRAGMENT) * FRAGMENT] if one_tile else range(96, 257, 16)
    gate = int(options.gate)
    for rows in heights:
        for outputs in range(64, 385, 16):
            if (rows + outputs) * STEP * 2 > MOST_SHARED or rows * outputs < 64 * 128:
                continue
            down, across = divide_up(options.rows, rows), divide_up(options.outputs, outputs)
            splits, share, _ = min(wide_shares(options, down * across, options.inputs // STEP),
                                   key=lambda way: way[2])
            left = down * across % options.multiprocessors
            groups = (down, across, splits)
            if share > 1:
                groups = (down * across - left + left * share, 1, 1)
            whole = options.rows % rows == 0 and options.outputs % outputs == 0
            for part_rows, part_outputs, subgroups in wide_parts(rows, outputs, options):
                print(f"matmul_wide.{options.format.lower()}", options.rows, options.outputs,
                      options.inputs, *groups, subgroups * options.subgroup, 0, rows, outputs,
                      splits, share, part_rows, part_outputs, subgroups, gate, gate,
                      options.inputs if whole else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("format", help="F16, Q8_0, Q4_K, ...")
    parser.add_argument("rows", type=int)
    parser.add_argument("outputs", type=int)
    parser.add_argument("inputs", type=int)
    parser.add_argument("--gate", action="store_true", help="gate and up in one product")
    parser.add_argument("--rounds", default="0,2,4", help="steps written out")
    parser.add_argument("--ahead", default="1", help="steps whose weights are on their way")
    parser.add_argument("--fragment", type=int, default=FRAGMENT, help="outputs of a fragment")
    parser.add_argument("--widths", help="outputs of a tile")
    parser.add_argument("--multiprocessors", type=int, default=132)
    parser.add_argument("--subgroup", type=int, default=32)
    parser.add_argument("--direct", action="store_true", help="tiles of matmul_direct")
    parser.add_argument("--wide", action="store_true", help="tiles of matmul_wide")
    parser.add_argument("--subgroups", default="8", help="in a group, for --wide")
    options = parser.parse_args()
    options.subgroups = list(map(int, options.subgroups.split(",")))
    if options.wide:
        print_wide(options)
        return
    if options.direct:
        print_direct(options)
        return

    one_tile = options.rows <= 112
    heights = [divide_up(options.rows, FRAGMENT) * FRAGMENT] if one_tile else range(96, 257, 32)
    widths = list(map(int, options.widths.split(","))) if options.widths else range(64, 257, 32)
    loops = [(int(ahead), int(rounds)) for ahead in options.ahead.split(",")
             for rounds in options.rounds.split(",") if int(rounds) % int(ahead) == 0]
    for rows in heights:
        for outputs in widths:
            if (rows + outputs) * (STEP // 8 + 1) * 16 > MOST_SHARED:
                continue
            if options.gate and outputs // options.fragment % 2:
                continue
            for part_rows, part_outputs, subgroups in parts(rows, outputs, options):
                for ahead, round_steps in loops:
                    splits = best_splits(options, rows, outputs, round_steps)
                    if splits is None:
                        continue
                    gate = int(options.gate)
                    constants = [subgroups * options.subgroup, 0, rows, outputs, STEP, splits,
                                 part_rows, part_outputs, FRAGMENT, options.fragment, FRAGMENT,
                                 subgroups, ahead, STEP // FRAGMENT, gate, gate, round_steps]
                    print(f"matmul_coopmat.{options.format.lower()}", options.rows, options.outputs,
                          options.inputs, divide_up(options.rows, rows),
                          divide_up(options.outputs, outputs), splits, *constants)


if __name__ == "__main__":
    main()
