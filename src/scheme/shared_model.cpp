#include "scheme/shared_model.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <type_traits>

#include "base/errors.hpp"

namespace syncopate {
namespace {

constexpr std::size_t alignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

template <class Value>
Value relaxed_load(const Value& value) {
  // atomic_ref requires a mutable value even for a load; nothing is written.
  return std::atomic_ref(const_cast<Value&>(value)).load(std::memory_order_relaxed);
}

template <class Value>
void relaxed_store(Value& value, std::type_identity_t<Value> stored) {
  std::atomic_ref(value).store(stored, std::memory_order_relaxed);
}

template <class Value>
Value relaxed_add(Value& value, Value added) {
  return std::atomic_ref(value).fetch_add(added, std::memory_order_relaxed);
}

}  // namespace

struct SharedModel::Head {
  struct Worker {
    std::uint64_t gathered;  ///< samples that its buffers come from
    std::uint64_t step;
    std::uint64_t batch;
    std::uint64_t taken;
  };

  std::uint64_t updates;
  std::uint64_t samples;
  double loss_sum;
  Worker workers[1];  ///< one for each
};

static_assert(std::atomic_ref<float>::is_always_lock_free);
static_assert(std::atomic_ref<double>::is_always_lock_free);

std::size_t SharedModel::bytes_for(const Size& size) {
  return aligned(sizeof(Head) + size.workers * sizeof(Head::Worker)) +
         aligned(size.params * sizeof(float)) + size.workers * size.buffers * sizeof(float);
}

SharedModel::SharedModel(std::span<std::byte> memory, const Size& size)
    : size_(size), head_(reinterpret_cast<Head*>(memory.data())) {
  if (memory.size() < bytes_for(size)) {
    throw InternalError("a shared model does not fit into its memory");
  }
  std::byte* const params =
      memory.data() + aligned(sizeof(Head) + size.workers * sizeof(Head::Worker));
  params_ = {reinterpret_cast<float*>(params), size.params};
  buffers_ = {reinterpret_cast<float*>(params + aligned(size.params * sizeof(float))),
              size.workers * size.buffers};
}

void SharedModel::load(std::span<const float> params, const Counts& done) {
  head_->updates = done.updates;
  head_->samples = done.samples;
  head_->loss_sum = done.loss_sum;
  replace(params);
}

void SharedModel::replace(std::span<const float> params) {
  for (std::size_t i = 0; i < params.size(); ++i) {
    relaxed_store(params_[i], params[i]);
  }
}

void SharedModel::read(std::span<float> params) const {
  std::transform(params_.begin(), params_.end(), params.begin(), relaxed_load<float>);
}

void SharedModel::add_difference(std::span<const float> after, std::span<const float> before) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    relaxed_add(params_[i], after[i] - before[i]);
  }
}

void SharedModel::store_buffers(Rank worker, std::span<const float> buffers,
                                std::uint64_t samples) {
  const std::span<float> slot = buffers_.subspan(worker.value * size_.buffers, size_.buffers);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    relaxed_store(slot[i], buffers[i]);
  }
  relaxed_add(head_->workers[worker.value].gathered, samples);
}

void SharedModel::read_mean_buffers(std::span<float> mean) const {
  double total = 0;
  for (std::uint32_t rank = 0; rank < size_.workers; ++rank) {
    const auto samples = static_cast<double>(relaxed_load(head_->workers[rank].gathered));
    if (samples == 0) {
      continue;
    }
    total += samples;
    const auto share = static_cast<float>(samples / total);  // 1 for the first
    const std::span<const float> slot = buffers_.subspan(rank * size_.buffers, size_.buffers);
    for (std::size_t i = 0; i < mean.size(); ++i) {
      const float value = relaxed_load(slot[i]);
      // Equal values are kept: the difference of infinite values, as in masks, is NaN.
      mean[i] = share == 1 || value == mean[i] ? value : mean[i] + (value - mean[i]) * share;
    }
  }
}

void SharedModel::store_position(Rank worker, const WorkerPosition& position) {
  Head::Worker& slot = head_->workers[worker.value];
  relaxed_store(slot.step, position.step);
  relaxed_store(slot.batch, position.data.batch);
  relaxed_store(slot.taken, position.data.taken);
}

std::vector<WorkerPosition> SharedModel::positions() const {
  std::vector<WorkerPosition> positions;
  for (std::uint32_t rank = 0; rank < size_.workers; ++rank) {
    const Head::Worker& slot = head_->workers[rank];
    positions.push_back(
        {.step = relaxed_load(slot.step),
         .data = {.batch = relaxed_load(slot.batch), .taken = relaxed_load(slot.taken)}});
  }
  return positions;
}

SharedModel::Counts SharedModel::counts() const {
  return {.updates = std::atomic_ref(head_->updates).load(std::memory_order_relaxed),
          .samples = std::atomic_ref(head_->samples).load(std::memory_order_relaxed),
          .loss_sum = std::atomic_ref(head_->loss_sum).load(std::memory_order_relaxed)};
}

std::uint64_t SharedModel::count(std::uint64_t samples, double loss_sum) {
  relaxed_add(head_->samples, samples);
  relaxed_add(head_->loss_sum, loss_sum);
  return relaxed_add(head_->updates, std::uint64_t{1});
}

}  // namespace syncopate
