// A device of its own with chains (runtime/chain.h), on drivers that are not known to run them as
// well: lavapipe runs one dispatch after the other, so that no wait is ever long there.
#pragma once

#include <cstdlib>
#include <memory>

#include "runtime/device.h"
#include "runtime/instance.h"
#include "runtime/pipeline.h"
#include "tests/support/gpu.h"

namespace hearth::testing {

struct ChainedDevice {
  static Result<ChainedDevice> open() {
    const char* before = std::getenv("HEARTH_CHAIN");
    const std::string kept = before != nullptr ? before : "";
    setenv("HEARTH_CHAIN", "1", 1);
    Result<ChainedDevice> opened = open_now();
    if (before != nullptr)
      setenv("HEARTH_CHAIN", kept.c_str(), 1);
    else
      unsetenv("HEARTH_CHAIN");
    return opened;
  }

  std::unique_ptr<Instance> instance;
  std::unique_ptr<Device> device;
  std::unique_ptr<PipelineStore> pipelines;

 private:
  static Result<ChainedDevice> open_now() {
    ChainedDevice opened;
    HEARTH_ASSIGN(opened.instance, Instance::create({.application = "hearth tests",
                                                     .validation = wanted_validation()}));
    const char* wanted = std::getenv("HEARTH_TEST_DEVICE");
    HEARTH_ASSIGN(opened.device, Device::open(*opened.instance, wanted != nullptr ? wanted : ""));
    HEARTH_ASSIGN(opened.pipelines, PipelineStore::create(*opened.device));
    return opened;
  }
};

}  // namespace hearth::testing
