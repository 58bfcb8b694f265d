// How long it takes a device to hand rows to the host or back, in addition to computing them, and
// the host to copy or add them.
#pragma once

#include "runtime/result.h"

namespace hearth {

class Device;

struct MeetingTime {
  double submit_seconds = 0;  // from submitting commands until the host knows that they have run
  double byte_seconds = 0;    // for each byte copied to or from host memory
};

Result<MeetingTime> time_meeting(Device& device);
// The host's time to copy or add a byte of rows that no cache holds.
double time_host_byte();

}  // namespace hearth
