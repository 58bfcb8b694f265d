// Whether it is faster to divide the rows of a step between two sums of a tensor split
// (engine/program/row_division.h). Fewer bytes cross the link, above all if normed rows are f16,
// but ranks meet twice where they met once, and rows leave and enter the devices twice. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ranks/link_timing.h"

namespace hearth {

struct MeetingCost {
  std::vector<LinkTiming> link;
  double submit_seconds = 0;  // from submitting commands to a device until the host knows the end
  double byte_seconds = 0;    // for each byte that leaves or enters the device
  double host_byte_seconds = 0;  // for each byte that the host copies or adds
};

struct DividedSum {
  uint32_t rows = 0, width = 0, ranks = 0;
  bool halves = false;  // normed rows are f16
};

// The time that dividing saves per sum, in seconds; negative if it takes longer. What it saves of
// norms is not counted.
double seconds_saved(const MeetingCost& cost, const DividedSum& sum);

// Whether ranks divide adding up itself, if each has this many bytes (link_exchange.h).
bool divides_adding(uint32_t ranks, uint64_t bytes);

}  // namespace hearth
