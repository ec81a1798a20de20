#include <fmt/core.h>
#include <fmt/ranges.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "torch/optimizers.hpp"

namespace syncopate::torch_backend {
namespace {

namespace optim = torch::optim;
using ParamState = optim::OptimizerParamState;
using States = std::remove_reference_t<decltype(std::declval<optim::Optimizer&>().state())>;

/// The state that one kind of optimizer keeps for a parameter.
struct Form {
  std::string optimizer = {};
  std::unique_ptr<ParamState> (*make)() = nullptr;
  std::int64_t& (*step)(ParamState&) = nullptr;  ///< null: counts no steps
  std::map<std::string, torch::Tensor& (*)(ParamState&)> slots = {};
  bool remembers_from_the_start = false;
};

template <class State>
std::unique_ptr<ParamState> make_state() {
  return std::make_unique<State>();
}

template <class State>
std::int64_t& step(ParamState& state) {
  return static_cast<State&>(state).step();
}

template <class State>
torch::Tensor& momentum(ParamState& state) {
  return static_cast<State&>(state).momentum_buffer();
}

Form sgd_form(const optim::SGDOptions& options) {
  using State = optim::SGDParamState;
  Form form{.optimizer = "SGD", .make = make_state<State>};
  if (options.momentum() != 0) form.slots["momentum_buffer"] = momentum<State>;
  return form;
}

Form rmsprop_form(const optim::RMSpropOptions& options) {
  using State = optim::RMSpropParamState;
  Form form{.optimizer = "RMSprop", .make = make_state<State>, .step = step<State>};
  form.slots["square_avg"] = [](ParamState& state) -> torch::Tensor& {
    return static_cast<State&>(state).square_avg();
  };
  if (options.momentum() != 0) form.slots["momentum_buffer"] = momentum<State>;
  if (options.centered()) {
    form.slots["grad_avg"] = [](ParamState& state) -> torch::Tensor& {
      return static_cast<State&>(state).grad_avg();
    };
  }
  return form;
}

/// Adam and AdamW.
template <class State>
Form adam_form(const std::string& optimizer, bool amsgrad) {
  Form form{.optimizer = optimizer, .make = make_state<State>, .step = step<State>};
  form.slots["exp_avg"] = [](ParamState& state) -> torch::Tensor& {
    return static_cast<State&>(state).exp_avg();
  };
  form.slots["exp_avg_sq"] = [](ParamState& state) -> torch::Tensor& {
    return static_cast<State&>(state).exp_avg_sq();
  };
  if (amsgrad) {
    form.slots["max_exp_avg_sq"] = [](ParamState& state) -> torch::Tensor& {
      return static_cast<State&>(state).max_exp_avg_sq();
    };
  }
  return form;
}

Form adagrad_form() {
  using State = optim::AdagradParamState;
  Form form{.optimizer = "Adagrad", .make = make_state<State>, .step = step<State>};
  form.slots["sum"] = [](ParamState& state) -> torch::Tensor& {
    return static_cast<State&>(state).sum();
  };
  form.remembers_from_the_start = true;
  return form;
}

Form form_of(optim::Optimizer& optimizer) {
  const auto& options = optimizer.param_groups().front().options();
  if (const auto* sgd = dynamic_cast<const optim::SGDOptions*>(&options)) return sgd_form(*sgd);
  if (const auto* rmsprop = dynamic_cast<const optim::RMSpropOptions*>(&options)) {
    return rmsprop_form(*rmsprop);
  }
  if (const auto* adam = dynamic_cast<const optim::AdamOptions*>(&options)) {
    return adam_form<optim::AdamParamState>("Adam", adam->amsgrad());
  }
  if (const auto* adamw = dynamic_cast<const optim::AdamWOptions*>(&options)) {
    return adam_form<optim::AdamWParamState>("AdamW", adamw->amsgrad());
  }
  if (dynamic_cast<const optim::AdagradOptions*>(&options) != nullptr) return adagrad_form();
  throw ConfigError(
      "this optimizer cannot be checkpointed: expected SGD, RMSprop, Adam, AdamW or Adagrad of "
      "libtorch; run without checkpoints");
}

/// The key of a parameter in an optimizer's map: libtorch 1 prints the address, libtorch 2 takes
/// it.
template <class Key = States::key_type>
Key key_of(const torch::Tensor& parameter) {
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream address;
    address << parameter.unsafeGetTensorImpl();
    return address.str();
  } else {
    return parameter.unsafeGetTensorImpl();
  }
}

std::vector<torch::Tensor> parameters_of(optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> all;
  for (const auto& group : optimizer.param_groups()) {
    all.insert(all.end(), group.params().begin(), group.params().end());
  }
  return all;
}

std::size_t values_in(const std::vector<torch::Tensor>& tensors) {
  std::size_t values = 0;
  for (const torch::Tensor& tensor : tensors) values += static_cast<std::size_t>(tensor.numel());
  return values;
}

/// The states of all parameters, in their order; empty before the first step.
std::vector<ParamState*> states_of(optim::Optimizer& optimizer) {
  std::vector<ParamState*> states;
  if (optimizer.state().empty()) return states;
  for (const torch::Tensor& parameter : parameters_of(optimizer)) {
    states.push_back(optimizer.state().at(key_of(parameter)).get());
  }
  return states;
}

void append(std::vector<float>& values, const torch::Tensor& tensor) {
  const torch::Tensor host = tensor.cpu().contiguous();
  const float* const begin = host.data_ptr<float>();
  values.insert(values.end(), begin, begin + host.numel());
}

std::string summary(std::size_t values, const std::set<std::string>& slots,
                    const std::set<std::string>& counters) {
  if (slots.empty() && counters.empty()) return "nothing";
  return fmt::format("{} values in each of [{}] and the counters [{}]", values,
                     fmt::join(slots, ", "), fmt::join(counters, ", "));
}

template <class Value>
std::set<std::string> names_of(const std::map<std::string, Value>& named) {
  std::set<std::string> names;
  for (const auto& [name, value] : named) names.insert(name);
  return names;
}

/// Throws unless `state` has the slots and counters of `form`, each slot of `values` values.
void expect_fit(const Form& form, std::size_t values, const OptimizerState& state) {
  const std::set<std::string> slots = names_of(form.slots);
  const std::set<std::string> counters =
      form.step != nullptr ? std::set<std::string>{"step"} : std::set<std::string>{};
  std::size_t found = values;
  for (const auto& [name, slot] : state.slots) {
    if (slot.size() != values) found = slot.size();
  }
  if (found == values && slots == names_of(state.slots) && counters == names_of(state.counters)) {
    return;
  }
  throw DataError(fmt::format("optimizer state does not fit: {} here remembers {}, found {}",
                              form.optimizer, summary(values, slots, counters),
                              summary(found, names_of(state.slots), names_of(state.counters))));
}

/// A copy of the values of `slot` from `begin` as a tensor of the shape of `parameter`.
torch::Tensor part_of(const std::vector<float>& slot, std::size_t begin,
                      const torch::Tensor& parameter) {
  auto* const values = const_cast<float*>(slot.data()) + begin;  // only read
  return torch::from_blob(values, parameter.sizes(), torch::kFloat32)
      .to(parameter.device(), torch::kFloat32, /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

OptimizerState state_of(optim::Optimizer& optimizer) {
  const Form form = form_of(optimizer);
  const std::vector<ParamState*> states = states_of(optimizer);
  OptimizerState result;
  if (states.empty()) return result;
  for (const auto& [name, tensor_in] : form.slots) {
    std::vector<float>& slot = result.slots[name];
    slot.reserve(values_in(parameters_of(optimizer)));
    for (ParamState* state : states) append(slot, tensor_in(*state));
  }
  if (form.step != nullptr) result.counters["step"] = form.step(*states.front());
  return result;
}

void load_state(optim::Optimizer& optimizer, const OptimizerState& state) {
  const Form form = form_of(optimizer);
  const std::vector<torch::Tensor> parameters = parameters_of(optimizer);
  const bool before_first_step = state.slots.empty() && state.counters.empty();
  if (before_first_step && !form.remembers_from_the_start) {
    optimizer.state().clear();
    return;
  }
  expect_fit(form, values_in(parameters), state);
  std::size_t begin = 0;
  for (const torch::Tensor& parameter : parameters) {
    auto one = form.make();
    for (const auto& [name, tensor_in] : form.slots) {
      tensor_in(*one) = part_of(state.slots.at(name), begin, parameter);
    }
    if (form.step != nullptr) form.step(*one) = state.counters.at("step");
    optimizer.state()[key_of(parameter)] = std::move(one);
    begin += static_cast<std::size_t>(parameter.numel());
  }
}

}  // namespace syncopate::torch_backend
