#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/batch.hpp"
#include "optim/optimizer_state.hpp"
#include "transport/shared_memory.hpp"

namespace syncopate {

/// The three flat float32 vectors of a replica.
enum class Part {
  params,   ///< what is trained
  grads,    ///< the mean gradient over the samples of the last backward pass; as long as `params`
  buffers,  ///< floating state that is not trained: BatchNorm's running statistics
};

/// One tensor of a flat vector.
struct TensorInfo {
  std::string name;                 ///< the module's own, "conv1.weight"
  std::vector<std::int64_t> shape;  ///< row-major
  std::size_t offset = 0;           ///< of its first value in the flat vector
};

/// What a pass over a batch found.
struct PassResult {
  std::uint32_t samples = 0;
  double loss_sum = 0;        ///< over the samples
  std::uint32_t correct = 0;  ///< samples whose largest output was the label's
};

/// Takes a gradient while a backward pass makes it.
class GradientSink {
 public:
  virtual ~GradientSink() = default;

  /// Values [begin, end) of the flat gradient are final, and no longer the replica's: it neither reads nor writes them
  /// before the next pass.
  /// Thread: the one that called `backward`, which it must not keep waiting.
  virtual void ready(std::size_t begin, std::size_t end) = 0;
};

/// How finely a pass reports its progress.
enum class PassDetail {
  gradients,  ///< when the gradient of a parameter is complete
  operators,  ///< at each operator, too: a pass of a small network takes a tenth longer
};

/// One copy of the model, on one device, with the user's own optimizer.
///
/// Parameters, gradients and buffers are each one contiguous vector, of which the model's tensors
/// are views: a backward pass writes into the flat gradient, and a collective reduces it in place.
///
/// Thread: one at a time.
class Replica {
 public:
  virtual ~Replica() = default;

  virtual std::vector<TensorInfo> layout(Part part) const = 0;

  /// Host memory of a part. On a CPU it is the part itself. On an accelerator it is a pinned copy,
  /// refreshed by this call; a change to it takes effect with `store`.
  virtual std::span<float> view(Part part) = 0;
  /// Makes what was written into `view(part)` the replica's own.
  virtual void store(Part part) = 0;

  /// Moves the parts that lie in host memory to where the other nodes of the host reach them, values and
  /// all; what `view` gave before is then no longer valid. Errors: DataError; a part for which there is no
  /// memory stays where it is.
  virtual void move_into(SharedMemory& /*memory*/) {}

  /// Whether `backward` takes a sink. Such a replica has its gradient in host memory.
  virtual bool reports_gradients() const { return false; }

  /// Calls `progressed` from now on while `backward` makes progress, from the threads of the pass. Empty: no longer. A
  /// replica whose passes are short need not.
  virtual void on_progress(PassDetail /*detail*/, std::function<void()> /*progressed*/) {}

  /// Forward and backward: sets `grads` to the mean gradient of the loss over the batch. An empty
  /// batch gives zero gradients, and so do parameters that the loss does not depend on.
  ///
  /// Order: `sink`, where there is one, is told of each value once, in any order, the last by the end of the pass.
  virtual PassResult backward(const Batch& batch, GradientSink* sink) = 0;
  PassResult backward(const Batch& batch) { return backward(batch, nullptr); }
  /// `called` is called in each `backward`, by its thread, when the forward pass is done. On an accelerator that is
  /// when the work of the forward pass has been handed to the device.
  void on_forward_done(std::function<void()> called) { forward_done_ = std::move(called); }
  /// Forward alone, in evaluation mode. Changes nothing.
  virtual PassResult evaluate(const Batch& batch) = 0;

  /// Makes running statistics of the inputs of layers (BatchNorm's mean and variance) the mean of those of the
  /// batches that `next` makes, at the parameters as they are, until it returns false; where it makes none, they stay
  /// as they are. Other layers compute as in `evaluate`. Changes nothing else.
  virtual void recompute_statistics(const std::function<bool(Batch& into)>& next) = 0;

  /// Draws new parameters from the model's own initial distribution.
  virtual void initialise(std::uint64_t seed) = 0;

  virtual void set_learning_rate(double rate) = 0;
  /// One step of the user's optimizer on `params` with `grads`.
  virtual void local_step() = 0;

  virtual OptimizerState optimizer_state() const = 0;
  /// Errors: DataError, when the state is that of another optimizer or another model.
  virtual void load_optimizer_state(const OptimizerState& state) = 0;

 protected:
  void report_forward_done() const {
    if (forward_done_) {
      forward_done_();
    }
  }

 private:
  std::function<void()> forward_done_;
};

}  // namespace syncopate
