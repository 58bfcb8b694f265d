#include "runtime/instance.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include "runtime/device_query.h"
#include "runtime/log.h"
#include "runtime/vulkan_private.h"

namespace hearth {

struct Instance::MessageLog {
  std::mutex mutex;
  std::vector<std::string> messages;
};

namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

bool has_layer(const char* name) {
  uint32_t count = 0;
  vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  vkEnumerateInstanceLayerProperties(&count, layers.data());
  return std::any_of(layers.begin(), layers.end(),
                     [&](const auto& layer) { return std::strcmp(layer.layerName, name) == 0; });
}

bool has_instance_extension(const char* name, const char* layer = nullptr) {
  uint32_t count = 0;
  vkEnumerateInstanceExtensionProperties(layer, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vkEnumerateInstanceExtensionProperties(layer, &count, extensions.data());
  return std::any_of(extensions.begin(), extensions.end(), [&](const auto& extension) {
    return std::strcmp(extension.extensionName, name) == 0;
  });
}

}  // namespace

Instance::Instance(InstanceOptions options)
    : options_(std::move(options)), messages_(std::make_unique<MessageLog>()) {}

Result<std::unique_ptr<Instance>> Instance::create(const InstanceOptions& options) {
  HEARTH_TRY(load_vulkan());
  std::unique_ptr<Instance> instance(new Instance(options));
  HEARTH_TRY(instance->open());
  return instance;
}

Status Instance::open() {
  const bool validate = options_.validation != Validation::kOff;
  std::vector<const char*> layers;
  std::vector<const char*> extensions = options_.extensions;
  if (validate) {
    if (!has_layer(kValidationLayer))
      return Error{ErrorKind::kNotFound,
                   "validation was requested, but the Khronos validation layer is not installed "
                   "(package vulkan-validationlayers)"};
    layers.push_back(kValidationLayer);
  }
  debug_names_ =
      has_instance_extension(VK_EXT_DEBUG_UTILS_EXTENSION_NAME) ||
      (validate && has_instance_extension(VK_EXT_DEBUG_UTILS_EXTENSION_NAME, kValidationLayer));
  if (debug_names_) extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);

  const VkApplicationInfo application{
      .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
      .pApplicationName = options_.application.c_str(),
      .pEngineName = "hearth",
      .apiVersion = VK_API_VERSION_1_3,
  };
  std::vector<VkValidationFeatureEnableEXT> checks = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  if (options_.validation == Validation::kGpuAssisted) {
    checks.push_back(VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT);
    checks.push_back(VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_RESERVE_BINDING_SLOT_EXT);
  }
  const VkValidationFeaturesEXT features{
      .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
      .enabledValidationFeatureCount = static_cast<uint32_t>(checks.size()),
      .pEnabledValidationFeatures = checks.data(),
  };
  const VkInstanceCreateInfo info{
      .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
      .pNext = validate ? &features : nullptr,
      .pApplicationInfo = &application,
      .enabledLayerCount = static_cast<uint32_t>(layers.size()),
      .ppEnabledLayerNames = layers.data(),
      .enabledExtensionCount = static_cast<uint32_t>(extensions.size()),
      .ppEnabledExtensionNames = extensions.data(),
  };
  if (const VkResult result = vkCreateInstance(&info, nullptr, &handle_); result != VK_SUCCESS) {
    // The loader's answer if it finds no driver at all: a machine without devices.
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER) return {};
    return vulkan_error(result, "creating the Vulkan instance");
  }
  volkLoadInstance(handle_);

  if (debug_names_ && validate) HEARTH_TRY(listen_to_validation());
  return list_devices();
}

Status Instance::listen_to_validation() {
  const auto on_message =
      [](VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
         const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) -> VkBool32 {
    auto* log = static_cast<MessageLog*>(user);
    log_line(fmt::format("validation: {}", data->pMessage));
    const std::lock_guard lock(log->mutex);
    log->messages.emplace_back(data->pMessage);
    return VK_FALSE;
  };
  const VkDebugUtilsMessengerCreateInfoEXT info{
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
      .pfnUserCallback = on_message,
      .pUserData = messages_.get(),
  };
  const VkResult result = vkCreateDebugUtilsMessengerEXT(handle_, &info, nullptr, &messenger_);
  if (result != VK_SUCCESS) return vulkan_error(result, "listening to validation messages");
  return {};
}

Status Instance::list_devices() {
  uint32_t count = 0;
  VkResult result = vkEnumeratePhysicalDevices(handle_, &count, nullptr);
  if (result == VK_SUCCESS && count > 0) {
    physical_.resize(count);
    result = vkEnumeratePhysicalDevices(handle_, &count, physical_.data());
    physical_.resize(count);
  }
  // A loader with a broken driver may return this; it means that there is no usable device.
  if (result != VK_SUCCESS && result != VK_ERROR_INITIALIZATION_FAILED)
    return vulkan_error(result, "listing the Vulkan devices");
  for (size_t i = 0; i < physical_.size(); ++i)
    caps_.push_back(query_device(physical_[i], static_cast<uint32_t>(i)));
  return {};
}

Instance::~Instance() {
  if (messenger_ != nullptr) vkDestroyDebugUtilsMessengerEXT(handle_, messenger_, nullptr);
  if (handle_ != nullptr) vkDestroyInstance(handle_, nullptr);
}

std::vector<std::string> Instance::take_validation_messages() {
  const std::lock_guard lock(messages_->mutex);
  return std::exchange(messages_->messages, {});
}

}  // namespace hearth
