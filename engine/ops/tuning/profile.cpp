#include "engine/ops/tuning/profile.h"

namespace hearth {
namespace {

constexpr uint32_t kNvidia = 0x10de;

// A measured family: the devices of a vendor whose ids are in a range. Different drivers for one
// GPU compile differently, so the driver counts, too.
struct Family {
  uint32_t vendor_id, first_device_id, last_device_id;
  DriverId driver;
  TuningProfile (*profile)();
};

constexpr Family kFamilies[] = {
    // GH100: H100, H200, GH200 and their variants.
    {kNvidia, 0x2300, 0x23ff, DriverId::kNvidia, hopper_profile},
};

}  // namespace

TuningProfile tuning_profile(const DeviceCaps& caps) {
  for (const Family& family : kFamilies)
    if (caps.vendor_id == family.vendor_id && caps.driver_id == family.driver &&
        caps.device_id >= family.first_device_id && caps.device_id <= family.last_device_id)
      return family.profile();
  return general_profile(caps);
}

}  // namespace hearth
