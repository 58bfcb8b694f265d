#include "engine/ranks/row_division_cost.h"

namespace hearth {
namespace {

// Dividing a sum costs every rank a second message, and pays from this number of bytes on: 3 ranks
// of one process added up 16 MiB in 50 to 61 ms instead of 66 to 80, 32 MiB in 85 to 90 instead of
// 254 to 337, and 8 MiB no faster (two cores). Two ranks send as many bytes either way.
constexpr uint64_t kLeastDividedBytes = 16 << 20;
constexpr uint32_t kLeastDividingRanks = 3;
// Ranks that meet wait for each other: a meeting of two ranks on one H200 took 0.3 ms, where a
// submission to the idle device takes 0.05 ms.
constexpr double kSubmissionsPerMeeting = 6;

}  // namespace

bool divides_adding(uint32_t ranks, uint64_t bytes) {
  return ranks >= kLeastDividingRanks && bytes >= kLeastDividedBytes;
}

double seconds_saved(const MeetingCost& cost, const DividedSum& sum) {
  const uint64_t floats = uint64_t{sum.rows} * sum.width;
  const uint64_t sum_bytes = floats * sizeof(float);
  const double sums = static_cast<double>(sum_bytes);
  const double normed = sum.halves ? sums / 2 : sums;
  const double others = sum.ranks - 1, share = 1.0 / sum.ranks;
  const auto message = [&](double bytes) { return message_seconds(cost.link, bytes); };
  const double together = divides_adding(sum.ranks, sum_bytes) ? 2 * others * message(sums * share)
                                                               : others * message(sums);
  const double divided = others * (message(sums * share) + message(normed * share));
  // All sums left and entered the device before; now own sums and all normed rows enter it, and own
  // normed rows leave it, too.
  const double more_bytes = sums * share + normed * share + normed - sums;
  // Sums are copied to each of the others, added up, and copied from the host's sum; if rows are
  // divided, only own sums, and normed rows.
  const double added = divides_adding(sum.ranks, sum_bytes) ? sums * share : sums;
  const double host_bytes = 2 * others * added + sums;
  const double divided_host_bytes = 2 * others * sums * share + others * normed * share + normed;
  return together - divided + cost.host_byte_seconds * (host_bytes - divided_host_bytes) -
         kSubmissionsPerMeeting * cost.submit_seconds - cost.byte_seconds * more_bytes;
}

}  // namespace hearth
