#pragma once

#include <syncopate.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace syncopate {
inline namespace v0 {

/// Memory that all workers of this host can read. It lives as long as this object.
using SharedMemory = std::shared_ptr<float>;

/// The model that a job's scheme trains: the flat float32 vectors of a program's model, and a step
/// of its optimizer.
///
/// Thread: the members are called while the program is inside a call of `Training`, on the thread
///         of that call.
/// Errors: an exception of a member ends the job, and that call of `Training` rethrows it.
class Replica {
 public:
  virtual ~Replica() = default;

  /// The number of trained values.
  virtual std::size_t parameters() const = 0;
  /// The number of values of floating-point state that is not trained, such as BatchNorm's running
  /// statistics.
  virtual std::size_t buffers() const = 0;

  /// The host memory of a vector, with its current values; changes take effect with `store`. The
  /// gradient is the mean over the samples of a step and has the length of the parameters.
  virtual float* view(syncopate_vector which) = 0;
  /// Copies the host memory back to the model's own vector, if that is elsewhere.
  virtual void store(syncopate_vector /*which*/) {}
  /// True if the host memory is the model's own: a view then costs nothing, and `store` is not
  /// called.
  virtual bool is_in_host_memory() const { return false; }
  /// Moves a vector to `memory`, which holds its values already, so that workers of one host reduce
  /// it in place. A model outside of host memory ignores it.
  virtual void move_into(syncopate_vector /*which*/, SharedMemory /*memory*/) {}

  /// Takes one step of the program's optimizer on the parameters, at its learning rate times
  /// `rate_factor`.
  virtual void take_step(double rate_factor) = 0;

  /// The number of the model's tensors, if a step may leave some of them without a gradient
  /// (`Training::has_gradients`); 0: each tensor has one in every step.
  virtual std::size_t tensor_count() const { return 0; }
  /// Makes steps change tensor i only if `tensors[i]` is not 0, until the program's next backward
  /// pass. `tensors` has `tensor_count` elements.
  virtual void use_gradients(const std::uint8_t* /*tensors*/) {}
};

}  // namespace v0
}  // namespace syncopate
