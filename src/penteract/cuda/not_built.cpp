#include "penteract/cuda/open.h"

namespace penteract::cuda {

bool is_built() { return false; }
int num_devices() { return 0; }

Result<std::shared_ptr<comm::DeviceBackend>> open_devices(int) {
  return Error{ErrorCode::device_unavailable, "this build has no CUDA", "--device cuda",
               "build with ./dev build --cuda, or use --device cpu"};
}

}  // namespace penteract::cuda
