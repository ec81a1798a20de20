#pragma once

#include <torch/csrc/autograd/function.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "torch/flat.hpp"

namespace syncopate::torch_backend {

/// Tells a sink of gradients as libtorch's backward pass completes them.
///
/// Autograd has one node a parameter that adds what comes to its gradient, once a pass, when all has come: from
/// each place at which the parameter is used. A parameter that is not used in a pass has no turn; it is told
/// of at the end. Nothing is assumed of the graph, which may be another in every pass.
///
/// Thread: that of the pass, which on a CPU is the one that called `backward`.
class GradientTeller {
 public:
  /// `params` outlive this. Their gradients have their places in a flat vector of the same layout.
  explicit GradientTeller(const FlatTensors& params);
  ~GradientTeller();
  GradientTeller(const GradientTeller&) = delete;
  GradientTeller& operator=(const GradientTeller&) = delete;

  /// Calls `completed` from now on whenever the gradient of a parameter is complete; empty: no longer.
  void on_complete(std::function<void()> completed) { completed_ = std::move(completed); }

  /// Runs a backward pass, and tells `sink` of each gradient once, if there is one.
  /// Errors: those of the pass; ConfigError, where a gradient changes after it was complete, as it does in a
  ///         network that runs backward passes of its own.
  template <class Pass>
  auto tell(GradientSink* sink, const Pass& pass) {
    const Telling telling(*this, sink);
    auto result = pass();
    tell_rest();
    return result;
  }

 private:
  class Hook;

  /// The sink is there for one pass, however that ends.
  class Telling {
   public:
    Telling(GradientTeller& teller, GradientSink* sink);
    ~Telling() { teller_.sink_ = nullptr; }
    Telling(const Telling&) = delete;
    Telling& operator=(const Telling&) = delete;

   private:
    GradientTeller& teller_;
  };

  struct Watched {
    std::shared_ptr<torch::autograd::Node>
        node;  ///< kept, for a parameter refers to it only weakly
    std::uintptr_t hook;
  };

  void complete(std::size_t tensor);
  void tell_rest();
  void tell(std::size_t tensor);

  const FlatTensors& params_;
  std::vector<Watched> watched_;  ///< by tensor
  std::vector<bool> told_;        ///< by tensor, of the pass under way
  GradientSink* sink_ = nullptr;
  std::function<void()> completed_;
};

}  // namespace syncopate::torch_backend
