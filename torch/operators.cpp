#include "torch/operators.hpp"

#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/utils.h>

#include <memory>
#include <string_view>
#include <utility>

#include "torch/scoped_modes.hpp"

namespace syncopate::torch_backend {
namespace {

/// libtorch calls plain functions, which find the observer of their thread here.
thread_local const std::function<void()>* observing = nullptr;

std::unique_ptr<at::ObserverContext> operator_begins(const at::RecordFunction&) {
  if (observing != nullptr) (*observing)();
  return nullptr;
}

/// The count of this thread. libtorch passes it to the plain functions below.
struct Tally : c10::DebugInfoBase {
  std::int64_t multiply_adds = 0;
  /// Operators inside a convolution are not counted again.
  std::uint32_t open_convolutions = 0;
};

/// An enumerator in libtorch 1, an object of its library in libtorch 2.
c10::DebugInfoKind tally_kind() {
  return c10::DebugInfoKind::INFERENCE_CONTEXT;
}

Tally& current_tally() {
  return *static_cast<Tally*>(c10::ThreadLocalDebugInfo::get(tally_kind()));
}

/// A product or convolution between its start and its end.
struct Running : at::ObserverContext {
  bool convolution = false;
  std::int64_t per_output = 0;  ///< multiply-adds for one value of the output
  std::int64_t fixed = 0;       ///< multiply-adds that do not depend on the output
};

/// aten::convolution(input, weight, bias, stride, padding, dilation, transposed, …). Each output is
/// a product with one filter; of a transposed convolution, each input is spread by one.
std::unique_ptr<at::ObserverContext> start_convolution(const at::RecordFunction& function) {
  constexpr std::size_t transposed = 6;
  const at::Tensor& weight = function.inputs()[1].toTensor();
  const std::int64_t filter = weight.numel() / weight.size(0);
  auto running = std::make_unique<Running>();
  running->convolution = true;
  if (function.inputs()[transposed].toBool()) {
    running->fixed = function.inputs()[0].toTensor().numel() * filter;
  } else {
    running->per_output = filter;
  }
  ++current_tally().open_convolutions;
  return running;
}

/// `left` is the index of the left factor among the arguments. Each output is a product with one of
/// its rows.
std::unique_ptr<at::ObserverContext> start_product(const at::RecordFunction& function,
                                                   std::size_t left) {
  if (current_tally().open_convolutions > 0) return nullptr;
  auto running = std::make_unique<Running>();
  running->per_output = function.inputs()[left].toTensor().size(-1);
  return running;
}

std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  if (name == "aten::convolution") return start_convolution(function);
  if (name == "aten::mm" || name == "aten::bmm") return start_product(function, 0);
  if (name == "aten::addmm" || name == "aten::baddbmm") return start_product(function, 1);
  return nullptr;
}

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context == nullptr) return;
  const Running& running = *static_cast<Running*>(context);
  Tally& tally = current_tally();
  const std::int64_t outputs = function.outputs()[0].toTensor().numel();
  tally.multiply_adds += running.fixed + running.per_output * outputs;
  if (running.convolution) --tally.open_convolutions;
}

/// Counts the operators of this thread during its life.
class Observation {
 public:
  Observation()
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(start, end)
                                               .needsInputs(true)
                                               .needsOutputs(true)
                                               .scopes({at::RecordScope::FUNCTION}))) {}
  ~Observation() { at::removeCallback(handle_); }
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

 private:
  at::RecordFunctionGuard enabled_{true};
  at::CallbackHandle handle_;
};

}  // namespace

OperatorObserver::OperatorObserver(const std::function<void()>& on_operator)
    : before_(std::exchange(observing, &on_operator)),
      callback_(at::addThreadLocalCallback(
          at::RecordFunctionCallback(&operator_begins).scopes({at::RecordScope::FUNCTION}))) {}

OperatorObserver::~OperatorObserver() {
  at::removeCallback(callback_);
  observing = before_;
}

std::uint64_t multiply_adds(const Network& network, const SampleShape& input) {
  const auto tally = std::make_shared<Tally>();
  const c10::DebugInfoGuard guard(tally_kind(), tally);
  const torch::NoGradGuard no_grad;
  const EvaluationMode mode(*network.module);
  const torch::Tensor sample = torch::zeros({1, input.channels, input.height, input.width});
  const Observation observation;
  network.forward(sample);
  return static_cast<std::uint64_t>(tally->multiply_adds);
}

}  // namespace syncopate::torch_backend
