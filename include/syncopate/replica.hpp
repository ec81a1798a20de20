#pragma once

#include <syncopate.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace syncopate {
inline namespace v0 {

/// Memory that all workers of this host can read. It lives as long as this object.
using SharedMemory = std::shared_ptr<float>;

/// What the scheme of a job trains: the flat float32 vectors of a program's model, and a step of
/// its optimizer.
///
/// Thread: the members are called while the program is inside a call of `Training`, one at a time,
///         on a thread of the library.
/// Errors: an exception of a member ends the job, and leaves that call of `Training`.
class Replica {
 public:
  virtual ~Replica() = default;

  /// The number of values that are trained.
  virtual std::size_t parameters() const = 0;
  /// The number of values of floating state that is not trained: BatchNorm's running statistics.
  virtual std::size_t buffers() const = 0;

  /// The host memory of a vector, with its present values; a change takes effect with `store`. The
  /// gradient is the mean over the samples of a step, as long as the parameters.
  virtual float* view(syncopate_vector which) = 0;
  /// Copies the host memory back to where the model has the vector, where that is elsewhere.
  virtual void store(syncopate_vector /*which*/) {}
  /// True where the host memory is the model's own: a view costs nothing, and nobody calls `store`.
  virtual bool is_in_host_memory() const { return false; }
  /// The vector is to live in `memory` from now on, which holds its values already, so that workers
  /// of one host reduce it in place. A model elsewhere ignores it.
  virtual void move_into(syncopate_vector /*which*/, SharedMemory /*memory*/) {}

  /// One step of the program's optimizer on the parameters, with its learning rate times
  /// `rate_factor`.
  virtual void take_step(double rate_factor) = 0;

  /// The tensors of the model, where a step may leave some of them without a gradient
  /// (`Training::has_gradients`); 0: each has one in every step.
  virtual std::size_t tensor_count() const { return 0; }
  /// Steps move tensor i where `tensors[i]` is not 0, and leave the others as they are, until the
  /// next backward pass of the program. Of `tensor_count` tensors.
  virtual void use_gradients(const std::uint8_t* /*tensors*/) {}
};

}  // namespace v0
}  // namespace syncopate
