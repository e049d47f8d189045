#include "penteract/cuda/open.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>
#include <fmt/format.h>

#include <cstdlib>

#include "penteract/cuda/end.h"

namespace penteract::cuda {
namespace {

class CudaDevices : public comm::DeviceBackend {
 public:
  explicit CudaDevices(bool one_device) : one_device_(one_device) {}
  std::unique_ptr<comm::DeviceEnd> enter(int rank) override {
    return std::make_unique<CudaEnd>(rank, one_device_ ? 0 : rank, communicators_);
  }
  bool one_device() const override { return one_device_; }
  void abort() noexcept override { communicators_.abort(); }

 private:
  bool one_device_;
  NcclCommunicators communicators_;
};

// Read when the first handle is made. A handle's workspace is kept for each (handle, stream), and every rank has both:
// the default of 32 MiB would be most of what a small rank holds. A setting of the user stands.
void bound_workspaces() {
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:2:16:8", 0);
  ::setenv("CUBLASLT_WORKSPACE_SIZE", "8192", 0);  // KiB
}

}  // namespace

bool is_built() { return true; }
int num_devices() { return c10::cuda::device_count(); }

Result<std::shared_ptr<comm::DeviceBackend>> open_devices(int num_ranks) {
  const int count = num_devices();
  if (count == 0) {
    return Error{ErrorCode::device_unavailable, "no CUDA device is there", "--device cuda",
                 "look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device cpu"};
  }
  if (count > 1 && num_ranks > count) {
    return Error{ErrorCode::device_unavailable,
                 fmt::format("{} ranks on {} devices: one rank a device, or one device for "
                             "all ranks",
                             num_ranks, count),
                 "--device cuda", "use --ranks up to the number of devices, or CUDA_VISIBLE_DEVICES=0"};
  }
  bound_workspaces();
  auto& context = at::globalContext();
  context.lazyInitDevice(at::kCUDA);
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setAllowBF16ReductionCuBLAS(false);
  context.setAllowFP16ReductionCuBLAS(false);
  return std::shared_ptr<comm::DeviceBackend>(std::make_shared<CudaDevices>(count == 1 || num_ranks == 1));
}

}  // namespace penteract::cuda
