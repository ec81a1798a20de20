#include "tests/support/toy_replica.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "kernels/optimizer_steps.hpp"

namespace syncopate {
namespace {

constexpr float buffer_momentum = 0.1F;
constexpr double initial_deviation = 0.1;

std::span<const float> sample_of(const Batch& batch, std::size_t index) {
  const std::size_t values = batch.shape.values();
  return std::span(batch.features).subspan(index * values, values);
}

}  // namespace

ToyReplica::ToyReplica(Options options, std::size_t params)
    : options_(options),
      params_(params),
      grads_(params),
      feature_mean_(options.features),
      velocity_(params) {}

std::vector<TensorInfo> ToyReplica::layout(ReplicaVector which) const {
  const auto length = [](const std::vector<float>& values) {
    return std::vector{static_cast<std::int64_t>(values.size())};
  };
  if (which == ReplicaVector::buffers) {
    return {{"feature_mean", length(feature_mean_), 0}};
  }
  return {{"weight", length(params_), 0}};
}

std::span<float> ToyReplica::view(ReplicaVector which) {
  switch (which) {
    case ReplicaVector::params: return params_;
    case ReplicaVector::grads: return grads_;
    case ReplicaVector::buffers: return feature_mean_;
  }
  throw InternalError("a replica has three vectors");
}

PassResult ToyReplica::backward(const Batch& batch, GradientSink* sink) {
  std::fill(grads_.begin(), grads_.end(), 0.0F);
  for (std::size_t i = 0; i < batch.samples(); ++i) {
    move_feature_mean(sample_of(batch, i), buffer_momentum);
  }
  report_forward_done();
  const PassResult result = pass_over(batch, grads_);
  if (sink != nullptr) {
    report(*sink);
  }
  return result;
}

void ToyReplica::report(GradientSink& sink) const {
  const std::size_t piece = grads_.size() / 3 + 1;
  for (std::size_t end = grads_.size(); end > 0;) {
    const std::size_t begin = end - std::min(end, piece);
    sink.ready(begin, end);
    end = begin;
  }
}

PassResult ToyReplica::evaluate(const Batch& batch) {
  return pass_over(batch, {});
}

PassResult ToyReplica::pass_over(const Batch& batch, std::span<float> grads) const {
  PassResult result{.samples = static_cast<std::uint32_t>(batch.samples())};
  for (std::size_t i = 0; i < batch.samples(); ++i) {
    const SampleResult sample = pass(sample_of(batch, i), batch.labels[i],
                                     1.0F / static_cast<float>(batch.samples()), grads);
    result.loss_sum += sample.loss;
    result.correct += sample.correct ? 1 : 0;
  }
  return result;
}

void ToyReplica::move_feature_mean(std::span<const float> features, float share) {
  for (std::size_t j = 0; j < features.size(); ++j) {
    feature_mean_[j] += share * (features[j] - feature_mean_[j]);
  }
}

void ToyReplica::recompute_statistics(const std::function<bool(Batch& into)>& next) {
  Batch batch;
  std::uint64_t samples = 0;
  while (next(batch)) {
    for (std::size_t i = 0; i < batch.samples(); ++i) {
      ++samples;
      move_feature_mean(sample_of(batch, i), 1.0F / static_cast<float>(samples));
    }
  }
}

void ToyReplica::initialise(std::uint64_t seed) {
  Random random(seed);
  std::generate(params_.begin(), params_.end(),
                [&] { return static_cast<float>(initial_deviation * random.normal()); });
  std::fill(feature_mean_.begin(), feature_mean_.end(), 0.0F);
}

void ToyReplica::clip_gradient() {
  const double norm =
      std::sqrt(std::transform_reduce(grads_.begin(), grads_.end(), 0.0, std::plus<>(),
                                      [](float value) { return double{value} * double{value}; }));
  if (options_.clip_norm && norm > *options_.clip_norm) {
    const auto factor = static_cast<float>(*options_.clip_norm / norm);
    std::ranges::for_each(grads_, [&](float& value) { value *= factor; });
  }
}

void ToyReplica::local_step() {
  clip_gradient();
  for (std::size_t i = 0; i < params_.size(); ++i) {
    velocity_[i] = static_cast<float>(options_.momentum) * velocity_[i] + grads_[i];
    params_[i] -= rate_ * velocity_[i];
  }
}

OptimizerState ToyReplica::optimizer_state() const {
  return {.slots = {{"momentum_buffer", velocity_}}, .counters = {}};
}

void ToyReplica::load_optimizer_state(const OptimizerState& state) {
  const auto found = state.slots.find("momentum_buffer");
  if (state.slots.size() != 1 || found == state.slots.end() ||
      found->second.size() != velocity_.size()) {
    throw DataError(
        fmt::format("expected one slot, momentum_buffer, of {} values", velocity_.size()));
  }
  velocity_ = found->second;
}

ToyReplica::SampleResult QuadraticReplica::pass(std::span<const float> features,
                                                std::int64_t /*label*/, float share,
                                                std::span<float> grads) const {
  SampleResult result;
  for (std::size_t i = 0; i < features.size(); ++i) {
    const float distance = params()[i] - features[i];
    result.loss += 0.5 * double{distance} * double{distance};
    if (!grads.empty()) {
      grads[i] += share * distance;
    }
  }
  return result;
}

ToyReplica::SampleResult LogisticReplica::pass(std::span<const float> features, std::int64_t label,
                                               float share, std::span<float> grads) const {
  const std::size_t row = features.size() + 1;  // weights, then the bias
  std::vector<double> outputs(options().classes);
  for (std::size_t c = 0; c < outputs.size(); ++c) {
    const auto weights = params().subspan(c * row, row);
    outputs[c] = std::transform_reduce(
        features.begin(), features.end(), weights.begin(), double{weights.back()}, std::plus<>(),
        [](float feature, float weight) { return double{feature} * double{weight}; });
  }
  const auto largest = std::max_element(outputs.begin(), outputs.end());
  const double top = *largest;
  const bool correct = largest - outputs.begin() == label;
  double sum = 0;
  for (double& output : outputs) {
    output = std::exp(output - top);
    sum += output;
  }
  const double probability = outputs[static_cast<std::size_t>(label)] / sum;
  for (std::size_t c = 0; !grads.empty() && c < outputs.size(); ++c) {
    const double target = static_cast<std::int64_t>(c) == label ? 1 : 0;
    const float error = share * static_cast<float>(outputs[c] / sum - target);
    const auto into = grads.subspan(c * row, row);
    add_scaled(into.first(features.size()), error, features);
    into.back() += error;
  }
  return {.loss = -std::log(probability), .correct = correct};
}

}  // namespace syncopate
