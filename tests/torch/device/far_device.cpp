// A device of libtorch for tests, of type PrivateUse1. Its memory is memory of this process that is
// protected except while an operation runs. So tests of accelerators run on any machine: code that
// accesses the memory of a tensor as host memory crashes, and a backward pass calls its hooks in a
// thread of its own.
//
// Every operation runs on the CPU, on copies. Unlike with CUDA, no operation runs asynchronously.

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <sys/mman.h>
#include <torch/library.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <ATen/detail/PrivateUse1HooksInterface.h>
#endif

#include <map>
#include <mutex>
#include <new>
#include <tuple>
#include <utility>

namespace {

const c10::Device far_device(c10::DeviceType::PrivateUse1, 0);

/// The memory of the device. Counts for each block the operations that are using it.
class Memory {
 public:
  static Memory& instance() {
    static Memory memory;
    return memory;
  }

  void* take(std::size_t bytes) {
    void* const begin =
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0);
    if (begin == MAP_FAILED) {
      throw std::bad_alloc();
    }
    const std::lock_guard lock(mutex_);
    blocks_[begin] = {.bytes = bytes};
    return begin;
  }

  void give_back(void* begin) {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.find(begin);
    ::munmap(begin, block->second.bytes);
    blocks_.erase(block);
  }

  /// Lets an operation access the block at `begin` until `lock_up`.
  void open_up(void* begin) { change(begin, 1); }
  void lock_up(void* begin) { change(begin, -1); }

 private:
  struct Block {
    std::size_t bytes = 0;
    int users = 0;
  };

  void change(void* begin, int by) {
    const std::lock_guard lock(mutex_);
    Block& block = blocks_.at(begin);
    block.users += by;
    ::mprotect(begin, block.bytes, block.users > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
  }

  std::mutex mutex_;
  std::map<void*, Block> blocks_;
};

void give_back(void* begin) {
  Memory::instance().give_back(begin);
}

class FarAllocator final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(std::size_t bytes) override {
    return taken(bytes);
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
#else
  c10::DataPtr allocate(std::size_t bytes) const override {
    return taken(bytes);
  }
#endif

 private:
  static c10::DataPtr taken(std::size_t bytes) {
    if (bytes == 0) {
      return {nullptr, far_device};
    }
    void* const begin = Memory::instance().take(bytes);
    return {begin, begin, &give_back, far_device};
  }
};

c10::Allocator* allocator() {
  static FarAllocator instance;
  return &instance;
}

/// A view of a tensor as a CPU tensor. A block of the device is accessible while this exists.
class OnHost {
 public:
  explicit OnHost(const at::Tensor& tensor) : tensor_(tensor) {
    if (!tensor.defined() || tensor.is_cpu()) {
      return;
    }
    begin_ = tensor.storage().data_ptr().get_context();
    if (begin_ != nullptr) {
      Memory::instance().open_up(begin_);
    }
    tensor_ = at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                            tensor.options().device(at::kCPU));
  }
  ~OnHost() {
    if (begin_ != nullptr) {
      Memory::instance().lock_up(begin_);
    }
  }
  OnHost(const OnHost&) = delete;
  OnHost& operator=(const OnHost&) = delete;

  const at::Tensor& tensor() const { return tensor_; }

 private:
  at::Tensor tensor_;
  void* begin_ = nullptr;
};

constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(at::IntArrayRef sizes, c10::optional<at::ScalarType> dtype,
                 c10::optional<at::Layout> /*layout*/, c10::optional<at::Device> /*device*/,
                 c10::optional<bool> /*pinned*/, c10::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, allocator(), keys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         c10::optional<at::ScalarType> dtype, c10::optional<at::Layout> /*layout*/,
                         c10::optional<at::Device> /*device*/, c10::optional<bool> /*pinned*/) {
  return at::detail::empty_strided_generic(sizes, strides, allocator(), keys,
                                           c10::dtype_or_default(dtype));
}

/// Copies between tensors, of which either or both are on the device.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  const OnHost source(from);
  const OnHost target(to);
  target.tensor().copy_(source.tensor());
  return to;
}

/// Resizes a tensor. If its storage is too small, it gets a larger one with the same values.
const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef sizes,
                         c10::optional<at::MemoryFormat> /*format*/) {
  at::TensorImpl* const tensor = self.unsafeGetTensorImpl();
  const std::size_t bytes = at::detail::computeStorageNbytesContiguous(
      sizes, self.dtype().itemsize(), static_cast<std::size_t>(self.storage_offset()));
  if (bytes > self.storage().nbytes()) {
    at::Tensor larger =
        at::empty({static_cast<std::int64_t>(bytes)}, self.options().dtype(at::kByte));
    const auto kept = static_cast<std::int64_t>(self.storage().nbytes());
    if (kept > 0) {
      at::Tensor old = at::empty({0}, self.options().dtype(at::kByte));
      old.unsafeGetTensorImpl()->set_storage_and_dtype(self.storage(), old.dtype());
      old.unsafeGetTensorImpl()->set_sizes_contiguous({kept});
      larger.narrow(0, 0, kept).copy_(old);
    }
    c10::StorageImpl* const storage = self.storage().unsafeGetStorageImpl();
    c10::DataPtr memory =
        larger.storage().unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr(nullptr, far_device));
    storage->set_data_ptr_noswap(std::move(memory));
    storage->set_nbytes(bytes);
  }
  tensor->set_sizes_contiguous(sizes);
  return self;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) {
    to.resize_(from.sizes());
  }
  return copy_from(from, to, /*non_blocking=*/false);
}

at::Tensor reshape_alias(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides) {
  return at::native::as_strided_tensorimpl(self, sizes, strides);
}

at::Tensor& set_storage(at::Tensor& self, at::Storage source, std::int64_t offset,
                        at::IntArrayRef sizes, at::IntArrayRef strides) {
  at::TensorImpl* const tensor = self.unsafeGetTensorImpl();
  tensor->set_storage_keep_dtype(std::move(source));
  tensor->set_storage_offset(offset);
  tensor->set_sizes_and_strides(sizes, strides);
  return self;
}

/// Needs its own implementation, since its schema does not say that it changes the running
/// statistics.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm(
    const at::Tensor& input, const c10::optional<at::Tensor>& weight,
    const c10::optional<at::Tensor>& bias, const c10::optional<at::Tensor>& mean,
    const c10::optional<at::Tensor>& variance, bool training, double momentum, double epsilon) {
  const auto present = [](const c10::optional<at::Tensor>& tensor) {
    return tensor ? *tensor : at::Tensor();
  };
  const OnHost x(input);
  const OnHost scale(present(weight));
  const OnHost shift(present(bias));
  const OnHost running_mean(present(mean));
  const OnHost running_variance(present(variance));
  const auto [output, batch_mean, inverse] =
      at::native_batch_norm(x.tensor(), scale.tensor(), shift.tensor(), running_mean.tensor(),
                            running_variance.tensor(), training, momentum, epsilon);
  return {output.to(far_device), batch_mean.to(far_device), inverse.to(far_device)};
}

void on_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  at::native::cpu_fallback(operation, stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("resize_", resize);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", reshape_alias);
  library.impl("native_batch_norm", batch_norm);
  library.impl("set_.source_Storage_storage_offset", set_storage);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}

/// A guard for one device with one stream.
class FarGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::Device exchangeDevice(c10::Device /*device*/) const override { return far_device; }
  c10::Device getDevice() const override { return far_device; }
  void setDevice(c10::Device /*device*/) const override {}
  void uncheckedSetDevice(c10::Device /*device*/) const noexcept override {}
  c10::Stream getStream(c10::Device /*device*/) const noexcept override { return stream(); }
  c10::Stream exchangeStream(c10::Stream /*stream*/) const noexcept override { return stream(); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  bool queryStream(const c10::Stream& /*stream*/) const override { return true; }
  void synchronizeStream(const c10::Stream& /*stream*/) const override {}

 private:
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, far_device); }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, FarGuard)

#if TORCH_VERSION_MAJOR >= 2

/// Functions that torch 2 requires of an accelerator.
struct FarHooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex /*device*/) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex /*device*/) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex /*device*/) const override { return 0; }
};

const bool registered = [] {
  static FarHooks hooks;
  at::RegisterPrivateUse1HooksInterface(&hooks);
  c10::register_privateuse1_backend("far");
  return true;
}();

#endif

}  // namespace
