#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/batch.hpp"
#include "kernels/values.hpp"
#include "optim/rule_state.hpp"
#include "scheme/gradient_set.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate {

class NativeAllreduce;

/// The three flat vectors of a replica.
enum class ReplicaVector {
  params,   ///< the trained parameters
  grads,    ///< the mean gradient over the samples of the last backward pass; as long as `params`
  buffers,  ///< floating state that is not trained: BatchNorm's running statistics
};

/// One tensor of a flat vector.
struct TensorInfo {
  std::string name;                 ///< the module's own, "conv1.weight"
  std::vector<std::int64_t> shape;  ///< row-major
  std::size_t offset = 0;           ///< of its first value in the flat vector
};

/// The result of a pass over a batch.
struct PassResult {
  std::uint32_t samples = 0;
  double loss_sum = 0;  ///< over the samples; if these are weighted, their weighted mean × samples
  std::uint32_t correct = 0;  ///< samples whose largest output was the label's
};

/// Receives a gradient while a backward pass computes it.
class GradientSink {
 public:
  virtual ~GradientSink() = default;

  /// Values [begin, end) of the flat gradient are final. The replica neither reads nor writes them
  /// before the next pass.
  /// Thread: the one that called `backward`; the call must not block.
  virtual void ready(std::size_t begin, std::size_t end) = 0;
};

/// The granularity of progress reports of a pass.
enum class PassDetail {
  gradients,  ///< when the gradient of a parameter is complete
  operators,  ///< also at each operator: a pass of a small network takes 10 % longer
};

/// The settings of an optimizer, in short.
struct StepSettings {
  double learning_rate = 0;    ///< of its first group
  std::uint32_t checksum = 0;  ///< of all settings of all groups; 0: not known
};

/// One copy of the model, on one device, with the user's own optimizer.
///
/// Parameters, gradients and buffers are one contiguous vector each, and the model's tensors are
/// views of it: a backward pass writes into the flat gradient, and a collective reduces it in
/// place.
///
/// Thread: one at a time.
class Replica {
 public:
  virtual ~Replica() = default;

  virtual std::vector<TensorInfo> layout(ReplicaVector which) const = 0;

  /// The host memory of a vector. On a CPU it is the vector itself. On an accelerator it is a
  /// pinned copy, which this call refreshes; a change to it takes effect with `store`.
  virtual std::span<float> view(ReplicaVector which) = 0;
  /// Copies the values of `view(which)` to the device.
  virtual void store(ReplicaVector which) = 0;
  /// The vector where it is, for reducers that take it there (`ReducerSpec::takes`). Such a reducer
  /// changes it in place, without `store`.
  virtual Values values(ReplicaVector which) { return view(which); }

  /// The allreduce that the program has, such as that of a process group of torch; null: it has
  /// none. It outlives the replica's training.
  virtual NativeAllreduce* allreduce_of_program() { return nullptr; }

  /// Moves the vectors in host memory, with their values, to memory that the other nodes of the
  /// host can access. Earlier results of `view` become invalid. Errors: DataError; a vector for
  /// which there is no shared memory is not moved.
  virtual void move_into(SharedMemory& /*memory*/) {}

  /// The settings that, besides gradient and state, determine a step of its optimizer. They must be
  /// the same on all workers that share gradients.
  virtual StepSettings step_settings() const { return {}; }

  /// The tensors that took part in the last pass; the gradient of the others is zero. The set
  /// always has the same length.
  virtual GradientSet gradient_set() const { return {}; }
  /// Called when `grads` combines several gradients: until the next pass, steps move only
  /// `tensors`, the tensors that have a gradient in any of them.
  virtual void use_gradients(const GradientSet& /*tensors*/) {}

  /// True if `backward` reports gradients to a sink. Such a replica has its gradient in host
  /// memory.
  virtual bool reports_gradients() const { return false; }

  /// Makes the gradient that of a pass without samples: zero.
  virtual void discard_gradient() {
    const std::span<float> grads = view(ReplicaVector::grads);
    std::fill(grads.begin(), grads.end(), 0.0F);
    store(ReplicaVector::grads);
  }

  /// From now on `backward` calls `progressed` repeatedly, from the threads of the pass. An empty
  /// function ends this. A replica with short passes may ignore it.
  virtual void on_progress(PassDetail /*detail*/, const std::function<void()>& /*progressed*/) {}

  /// Forward and backward: sets `grads` to the mean gradient of the loss over the batch. The
  /// gradient of an empty batch is zero, and so is that of parameters that do not affect the loss.
  ///
  /// Order: `sink`, if any, gets each value once, in any order, before the pass ends.
  virtual PassResult backward(const Batch& batch, GradientSink* sink) = 0;
  PassResult backward(const Batch& batch) { return backward(batch, nullptr); }
  /// Each `backward` calls `called`, in its own thread, when the forward pass is done. On an
  /// accelerator it is done when its work has been submitted to the device.
  void on_forward_done(std::function<void()> called) { forward_done_ = std::move(called); }
  /// Forward only, in evaluation mode. Changes nothing.
  virtual PassResult evaluate(const Batch& batch) = 0;

  /// Recomputes the running statistics of the inputs of layers (BatchNorm's mean and variance) at
  /// the current parameters: the mean over the batches that `next` fills until it returns false.
  /// Without a batch they do not change. Other layers compute as in `evaluate`. Changes nothing
  /// else.
  virtual void recompute_statistics(const std::function<bool(Batch& into)>& next) = 0;

  /// Draws new parameters from the model's own initial distribution.
  virtual void initialise(std::uint64_t seed) = 0;

  virtual void set_learning_rate(double rate) = 0;
  /// Called after each round, and also before each step by a scheme that takes several at once: the
  /// samples of all workers on which the parameters have been trained.
  virtual void trained_on(std::uint64_t /*samples*/) {}
  /// Scales `grads` so that its norm is at most the replica's limit; without a limit it does
  /// nothing. Called before the gradient leaves as an update of its own.
  virtual void clip_gradient() {}
  /// One step of the user's optimizer on `params` with `grads`, which it clips before.
  virtual void local_step() = 0;
  /// The same with the replica's own gradient over this number of samples. If a program's loop
  /// computes the gradients, a step without samples is skipped, so that not even a momentum moves
  /// the replica.
  void own_step(std::uint64_t samples) {
    if (samples > 0 || !follows_loop()) {
      local_step();
    }
  }

  virtual OptimizerState optimizer_state() const = 0;
  /// Errors: DataError if the state belongs to another optimizer or another model.
  virtual void load_optimizer_state(const OptimizerState& state) = 0;

 protected:
  /// True if a program's own loop computes the gradients.
  virtual bool follows_loop() const { return false; }

  void report_forward_done() const {
    if (forward_done_) {
      forward_done_();
    }
  }

 private:
  std::function<void()> forward_done_;
};

}  // namespace syncopate
