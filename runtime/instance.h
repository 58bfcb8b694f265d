// The Vulkan instance: the devices of this machine, and the messages of the validation layers.
// Thread-safe after create().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device_caps.h"
#include "runtime/result.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

enum class Validation {
  kOff,
  kOn,           // core and synchronization checks
  kGpuAssisted,  // also instruments shaders to check the addresses they use
};

struct InstanceOptions {
  std::string application = "hearth";
  Validation validation = Validation::kOff;
  std::vector<const char*> extensions;  // what a window's surface needs
};

class Instance {
 public:
  // Fails if there is no Vulkan loader, or if validation is requested and its layer is not
  // installed. A machine without any device is not an error: devices() is then empty.
  static Result<std::unique_ptr<Instance>> create(const InstanceOptions& options);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const std::vector<DeviceCaps>& devices() const { return caps_; }

  // The validation layers' messages since the last call. They are also logged.
  std::vector<std::string> take_validation_messages();

  Validation validation() const { return options_.validation; }
  bool debug_names() const { return debug_names_; }
  VkInstance handle() const { return handle_; }
  VkPhysicalDevice physical_device(size_t position) const { return physical_[position]; }

 private:
  struct MessageLog;
  explicit Instance(InstanceOptions options);
  Status open();
  Status listen_to_validation();
  Status list_devices();

  InstanceOptions options_;
  VkInstance handle_ = nullptr;
  VkDebugUtilsMessengerEXT messenger_ = nullptr;
  bool debug_names_ = false;
  std::unique_ptr<MessageLog> messages_;
  std::vector<VkPhysicalDevice> physical_;
  std::vector<DeviceCaps> caps_;  // parallel to physical_
};

}  // namespace hearth
