#include "job/front/loop_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>
#include <utility>

#include "base/log.hpp"
#include "job/front/program_worker.hpp"
#include "job/launch/loop_config.hpp"
#include "optim/update_rule.hpp"
#include "scheme/scheme_options.hpp"
#include "scheme/scheme_spec.hpp"

namespace syncopate {
namespace {

constexpr auto names_of_rules = std::to_array<std::string_view>(
    {"optimizer", "momentum", "weight-decay", "beta1", "beta2", "epsilon", "alpha"});

/// Errors: ConfigError, for a name that describes no rule, such as another option of the job.
void expect_rule(const std::map<std::string, std::string>& rule) {
  for (const auto& [name, value] : rule) {
    if (std::ranges::find(names_of_rules, name) == names_of_rules.end()) {
      throw ConfigError(fmt::format("the rule of an optimizer has no option {}: expected {}", name,
                                    fmt::join(names_of_rules, ", ")));
    }
  }
}

/// The rate of a program that warms up from 0 is a factor of another one: the job knows none of 0.
GivenOptions with_optimizer(GivenOptions options, const LoopOptimizer& optimizer) {
  expect_rule(optimizer.rule);
  options.insert(optimizer.rule.begin(), optimizer.rule.end());
  const double rate = optimizer.learning_rate > 0 ? optimizer.learning_rate : 1;
  options["learning-rate"] = fmt::format("{}", rate);
  return options;
}

/// The sizes of this worker's steps. Errors: ConfigError, where nothing says them.
ShareSizes sizes_of(const LoopJob::Member& job, const LoopTraining::Options& options) {
  if (options.batch_size && job.sizes() && job.sizes()->division == Division::by_speed) {
    throw ConfigError(
        "the steps of a global batch have the sizes that the job decides: leave out the "
        "optimizer's option batch_size, or pass batch_size in place of global_batch");
  }
  if (options.batch_size) {
    const std::uint64_t samples = job.sizes() ? job.sizes()->samples : 0;
    const std::uint32_t own = *options.batch_size;
    return {.samples = std::max(samples, std::uint64_t{own} * job.size()),
            .batch_size = own,
            .step_size = own};
  }
  if (!job.sizes()) {
    throw ConfigError(
        "the job does not know how many samples a step has: call partition_dataset before, or give "
        "the optimizer's option batch_size");
  }
  return *job.sizes();
}

/// True where a parameter server takes the steps of the program's optimizer.
bool server_takes_steps(const TrainConfig& config) {
  if (!server_keeps_model(config)) {
    return false;
  }
  const ServerPolicy policy = server_policy_of(config);
  return !policy.optimizer && policy.consistency.kind != ConsistencyOptions::Kind::elastic;
}

/// True where a server's rule moves all of the model in each step.
bool rule_moves_all(const TrainConfig& config) {
  if (!server_keeps_model(config)) {
    return false;
  }
  const ServerPolicy policy = server_policy_of(config);
  const Optimizer rule = policy.optimizer ? policy.optimizer->optimizer : config.optimizer;
  return policy.consistency.kind != ConsistencyOptions::Kind::elastic &&
         moves_without_gradient(
             {.name = std::string(name_of_value(rule)), .weight_decay = config.weight_decay});
}

/// Errors: ConfigError, where the program is to reduce and cannot.
void expect_allreduce(const TrainConfig& config, ProgramReplica& replica) {
  const auto* const reducer = config.scheme_options[option::aggregate].reducer;
  const bool reduces = config.workers > 1 && averages_workers(config);
  if (reduces && reducer != nullptr && reducer->of_program &&
      replica.allreduce_of_program() == nullptr) {
    throw ConfigError(fmt::format(
        "aggregate {} needs a process group that the program hands to its training; choose another "
        "aggregate or auto",
        reducer->name));
  }
}

/// True where a step takes the mean gradient of all workers.
bool has_steps_of_all(const TrainConfig& config) {
  const SchemeTraits& traits = scheme_named(config.scheme).traits;
  return traits.topology == Topology::allreduce && traits.sync_mode == SyncMode::lockstep &&
         !traits.local_steps;
}

LoopDefinition definition_of(const LoopJob::Member& job, ProgramReplica& replica,
                             const LoopTraining::Options& options, const ShareSizes& sizes) {
  GivenOptions given = job.given_with(options.scheme, options.options);
  set_batch(given, sizes.batch_size, sizes.division);
  return {.options = with_optimizer(std::move(given), options.optimizer),
          .model = {.parameters = replica.view(ReplicaVector::params).size(),
                    .buffers = replica.view(ReplicaVector::buffers).size(),
                    .samples = sizes.samples}};
}

}  // namespace

LoopTraining::LoopTraining(const LoopJob& job, std::unique_ptr<ProgramReplica> replica,
                           const Options& options)
    : job_(job.member()), sizes_(sizes_of(*job_, options)) {
  const LoopDefinition definition = definition_of(*job_, *replica, options, sizes_);
  TrainConfig config = loop_config(definition.options, job_->size());
  server_steps_ = !job_->is_alone() && server_takes_steps(config);
  server_moves_all_ = !job_->is_alone() && rule_moves_all(config);
  shares_gradients_ = !job_->is_alone() && has_steps_of_all(config);
  overlaps_ = has_steps_of_all(config) && config.scheme_options[option::overlap] == Overlap::on;
  if (server_steps_ && !options.optimizer.has_no_rule.empty()) {
    throw ConfigError(fmt::format("the server of scheme {} takes the optimizer's steps, but {}",
                                  config.scheme, options.optimizer.has_no_rule));
  }
  if (server_steps_ && !(options.optimizer.learning_rate > 0)) {
    throw ConfigError(
        fmt::format("the server of scheme {} takes the optimizer's steps at its first learning "
                    "rate, which is "
                    "0; set it before, or choose another scheme",
                    config.scheme));
  }
  expect_allreduce(config, *replica);
  job_->begin_training();
  gradients_ = GradientSet(replica->tensors(), /*all=*/true);
  replica->attach({.learning_rate = config.learning_rate.value(), .overlaps = overlaps_});
  job_->waits()->loop_is_here();
  if (job_->is_alone()) {
    worker_ = lone_worker(std::move(replica), config, sizes_.samples);
    return;
  }
  const wire::Training training = job_->node().define(definition);
  worker_ = std::make_unique<ProgramWorker>(
      job_->node(), std::move(replica),
      ProgramWorker::Options{.config = config,
                             .model = definition.model,
                             .training = training,
                             .rank = Rank{job_->rank()},
                             .loop = {.waits = job_->waits(), .on_round = options.on_round}});
  job_->want_samples(worker_->next_samples(), worker_->next_parts());
}

LoopTraining::~LoopTraining() {
  if (job_->is_alone()) {
    return;
  }
  try {
    end_loop();
  } catch (const std::exception& error) {
    log::debug("{}", error.what());  // a destructor cannot throw; `finish` does
  }
}

void LoopTraining::begin_pass(std::uint32_t samples) {
  const LoopJob::Member::Use use(*job_);
  expect_unfinished();
  if (pass_) {
    throw ConfigError("the pass of this step has begun: take the step before the next one");
  }
  pass_ = samples;
  worker_->begin_pass(samples);
}

void LoopTraining::gradients_ready(std::size_t first, std::size_t count) {
  const LoopJob::Member::Use use(*job_);
  if (!pass_) {
    throw ConfigError("a gradient is ready before its pass has begun");
  }
  worker_->ready(first, first + count);
}

void LoopTraining::step(std::uint32_t samples) {
  const LoopJob::Member::Use use(*job_);
  expect_unfinished();
  if (pass_.value_or(samples) != samples) {
    throw ConfigError(
        fmt::format("the pass of this step began with {} samples, found {}: other "
                    "workers have weighed its gradient with them",
                    *pass_, samples));
  }
  take(samples);
}

void LoopTraining::step_alone(std::uint32_t samples, bool finite) {
  const LoopJob::Member::Use use(*job_);
  expect_unfinished();
  pass_.reset();
  worker_->step_alone(samples, finite);
}

void LoopTraining::take_replica() {
  const LoopJob::Member::Use use(*job_);
  expect_unfinished();
  if (pass_) {
    throw ConfigError("the pass of a step has begun: set the replica before, or after the step");
  }
  worker_->take_replica();
}

std::uint32_t LoopTraining::next_samples() const {
  const std::uint32_t wanted = worker_->next_samples();
  return wanted > 0 ? wanted : sizes_.step_size;
}

void LoopTraining::align(const std::string& place) {
  const LoopJob::Member::Use use(*job_);
  expect_unfinished();
  if (pass_) {
    throw ConfigError("the pass of a step has begun: align before it, or after the step");
  }
  const ProgramWaits::Operation operation(*job_->waits(), [&] { return place; });
  const ProgramWaits::Wait wait(job_->waits().get());
  worker_->align(place);
}

void LoopTraining::use_settings(const StepSettings& settings) {
  const LoopJob::Member::Use use(*job_);
  expect_unfinished();
  settings_ = settings;
}

void LoopTraining::has_gradients(const std::uint8_t* flags) {
  const LoopJob::Member::Use use(*job_);
  expect_unfinished();
  gradients_ = GradientSet(std::span(flags, gradients_.tensors()));
}

void LoopTraining::abandon(const std::string& reason) {
  if (is_of_this_process()) {
    worker_->abandon(reason);
  }
}

void LoopTraining::finish() {
  const LoopJob::Member::Use use(*job_);
  end_loop();
}

/// Others have weighed the gradient of a pass that has begun, so its step belongs to the loop.
void LoopTraining::end_loop() {
  try {
    if (pass_ && !finished_) {
      take(*pass_);
    }
  } catch (const std::exception& error) {
    log::debug("{}", error.what());  // what follows throws the same
  }
  finished_ = true;
  job_->waits()->loop_ends();
  worker_->finish();
}

void LoopTraining::expect_unfinished() const {
  if (finished_) {
    throw ConfigError("the loop has finished: its optimizer takes no further step");
  }
}

void LoopTraining::take(std::uint32_t samples) {
  pass_.reset();
  worker_->step(samples, settings_, gradients_);
  job_->want_samples(worker_->next_samples(), worker_->next_parts());
}

}  // namespace syncopate
