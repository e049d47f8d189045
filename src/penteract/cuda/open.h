// The CUDA devices of this process as comm sees them; in a build without CUDA a stub that says so (not_built.cpp).
// Thread-safety: call open_devices before the rank threads start.
#pragma once

#include <memory>

#include "penteract/base/result.h"
#include "penteract/comm/device.h"

namespace penteract::cuda {

bool is_built();
// Devices that this process may use; 0 in a build without CUDA and on a machine without a driver.
int num_devices();

// Devices for num_ranks ranks: one device for all of them, or with several devices one each. Sets the process's flags:
// no TF32, no reduced-precision reductions, bounded cuBLAS workspaces. Errors: device_unavailable (no CUDA in the build,
// no device, fewer devices than ranks but more than one).
Result<std::shared_ptr<comm::DeviceBackend>> open_devices(int num_ranks);

}  // namespace penteract::cuda
