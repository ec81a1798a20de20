#pragma once

#include <syncopate.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <syncopate/error.hpp>
#include <syncopate/group.hpp>
#include <syncopate/replica.hpp>
#include <utility>

/// Schemes defined by a program. C++17, over `syncopate.h`.
namespace syncopate {
inline namespace v0 {

/// The values of a flat vector in host memory.
struct Values {
  float* first = nullptr;
  std::size_t count = 0;

  /// The first value.
  float* data() const { return first; }
  /// The number of values.
  std::size_t size() const { return count; }
  /// The first value, for iteration.
  float* begin() const { return first; }
  /// The end of an iteration.
  float* end() const { return first + count; }
  /// The value at an index below `size`.
  float& operator[](std::size_t index) const { return first[index]; }
};

/// The data and operations of a step that a scheme can use.
class SchemeStep {
 public:
  /// Syncopate makes one for each step; `samples` is its number of samples.
  SchemeStep(Replica& replica, Group& workers, std::uint32_t samples)
      : replica_(replica), workers_(workers), samples_(samples) {}

  /// The mean gradient of this worker's samples; the next `take_step` uses it.
  Values gradients() { return vector(SYNCOPATE_GRADIENTS, replica_.parameters()); }
  /// The parameters of this worker's replica.
  Values parameters() { return vector(SYNCOPATE_PARAMETERS, replica_.parameters()); }
  /// Floating-point state that is not trained, such as BatchNorm's running statistics.
  Values buffers() { return vector(SYNCOPATE_BUFFERS, replica_.buffers()); }

  /// Samples of this step on this worker.
  std::uint32_t samples() const { return samples_; }
  /// All workers of the job.
  Group& workers() { return workers_; }

  /// Takes one step of the program's optimizer with the gradients, at its learning rate times
  /// `rate_factor`. Call `parameters` again afterwards.
  void take_step(double rate_factor = 1) {
    store();
    replica_.take_step(rate_factor);
  }

  /// Applies changes of the vectors to the model. Syncopate calls it after the scheme.
  void store() {
    for (const syncopate_vector which :
         {SYNCOPATE_GRADIENTS, SYNCOPATE_PARAMETERS, SYNCOPATE_BUFFERS}) {
      if (std::exchange(viewed_[which], false)) {
        replica_.store(which);
      }
    }
  }

 private:
  Values vector(syncopate_vector which, std::size_t count) {
    viewed_[which] = true;
    return {replica_.view(which), count};
  }

  Replica& replica_;
  Group& workers_;
  std::uint32_t samples_;
  bool viewed_[3] = {false, false, false};  ///< since the last `store`, by vector
};

/// A scheme defined by a program: it handles a replica after each backward pass. One object serves
/// one worker.
///
/// Collectives: all workers call those of a step in the same order, except collectives of groups
///              and sends between two workers.
class Scheme {
 public:
  virtual ~Scheme() = default;
  /// Takes the step of this worker with the gradients of `step`. Returns once the replica has the
  /// parameters for the next step. Errors: the program's `step` throws an exception of this
  /// function.
  virtual void after_backward(SchemeStep& step) = 0;
};

/// Makes the scheme of one worker.
using MakeScheme = std::function<std::unique_ptr<Scheme>()>;

namespace detail {

inline std::map<std::string, MakeScheme>& own_schemes() {
  static std::map<std::string, MakeScheme> schemes;
  return schemes;
}

/// Returns null for a name that the program has not registered.
inline std::unique_ptr<Scheme> own_scheme(const std::string& name) {
  const auto found = own_schemes().find(name);
  return found == own_schemes().end() ? nullptr : found->second();
}

}  // namespace detail

/// Registers a scheme under a name, with which a `DistributedOptimizer` or a `Training` of this
/// program can be made. Call it before starting threads that make one. The command line of
/// `syncopate run` does not know the scheme, and its jobs have no run folder. Errors: ConfigError
/// if the name is registered already.
inline void register_scheme(const std::string& name, MakeScheme make) {
  if (!detail::own_schemes().emplace(name, std::move(make)).second) {
    throw ConfigError("this program has registered a scheme " + name + " already");
  }
}

/// The training of a replica by a scheme of the program.
class OwnTraining {
 public:
  /// Gives all replicas the parameters and buffers of worker 0.
  OwnTraining(std::unique_ptr<Scheme> scheme, Replica& replica, Group workers)
      : scheme_(std::move(scheme)), replica_(replica), workers_(std::move(workers)) {
    SchemeStep start(replica_, workers_, 0);
    workers_.broadcast(start.parameters());
    workers_.broadcast(start.buffers());
    start.store();
  }

  /// Takes a step with the gradients that the replica holds, the mean of `samples` samples.
  /// Errors: ConfigError after `finish`; exceptions of the scheme.
  void step(std::uint32_t samples) {
    if (finished_) {
      throw ConfigError("the loop has finished: its optimizer takes no further step");
    }
    SchemeStep step(replica_, workers_, samples);
    scheme_->after_backward(step);
    step.store();
  }

  /// Waits until every worker has called it.
  void align() { workers_.barrier(); }

  /// Waits for the loops of all workers.
  void finish() {
    if (!std::exchange(finished_, true)) {
      workers_.barrier();
    }
  }

 private:
  std::unique_ptr<Scheme> scheme_;
  Replica& replica_;
  Group workers_;
  bool finished_ = false;
};

}  // namespace v0
}  // namespace syncopate
