#include "runtime/chain_drivers.h"

#include <algorithm>

namespace hearth {
namespace {

// Add a driver only after chained_products_test and a soak of the server have passed on it.
constexpr DriverId kChainingDrivers[] = {DriverId::kNvidia};

}  // namespace

bool may_chain(const DeviceCaps& caps) {
  return caps.features.memory_model_chains &&
         std::ranges::find(kChainingDrivers, caps.driver_id) != std::end(kChainingDrivers);
}

}  // namespace hearth
