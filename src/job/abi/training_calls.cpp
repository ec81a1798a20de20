#include <memory>
#include <nlohmann/json.hpp>

#include "job/abi/c_calls.hpp"
#include "job/abi/callback_replica.hpp"
#include "job/abi/objects.hpp"
#include "telemetry/json_lines.hpp"

namespace syncopate::abi {
namespace {

LoopTraining::Options settings_of(const syncopate_training_options& options) {
  LoopTraining::Options own{.optimizer = {.learning_rate = options.learning_rate,
                                          .rule = options_of(options.rule, options.rule_count),
                                          .has_no_rule = text_of(options.has_no_rule)},
                            .scheme = text_of(options.scheme),
                            .options = options_of(options.options, options.option_count)};
  if (options.batch_size > 0) {
    own.batch_size = options.batch_size;
  }
  if (options.on_round != nullptr) {
    own.on_round = [call = options.on_round, user = options.on_round_user](
                       const std::string& line) { call(user, line.c_str()); };
  }
  return own;
}

std::unique_ptr<syncopate_training> start(syncopate_job* job, const syncopate_replica* replica,
                                          const syncopate_training_options* options) {
  const LoopJob& own = given(job, "job").job;
  auto callbacks = std::make_unique<CallbackReplica>(taken(replica, "syncopate_replica"));
  return std::make_unique<syncopate_training>(
      own, std::move(callbacks), settings_of(taken(options, "syncopate_training_options")));
}

syncopate_scheme_traits describe(syncopate_job& job, const LoopScheme& scheme) {
  const SchemeTraits& traits = scheme.traits;
  job.options = json_text(scheme.options);
  return {.size = 0,
          .scheme = scheme.name.data(),
          .options = job.options.c_str(),
          .in_rounds = traits.topology == Topology::allreduce ? 1 : 0,
          .in_lockstep = traits.sync_mode == SyncMode::lockstep || traits.balances ? 1 : 0,
          .local_steps = traits.local_steps ? 1 : 0,
          .takes_means = traits.takes_means ? 1 : 0,
          .waits_for_steps = traits.waits_for_steps ? 1 : 0,
          .pulls_each_step = traits.pull == Pull::each_step ? 1 : 0,
          .pulls_some_steps = traits.pull == Pull::some_steps ? 1 : 0};
}

}  // namespace
}  // namespace syncopate::abi

namespace abi = syncopate::abi;

syncopate_status syncopate_describe_scheme(syncopate_job* job, const char* scheme,
                                           const syncopate_option* options, size_t option_count,
                                           syncopate_scheme_traits* traits) {
  return abi::call([&] {
    const syncopate::LoopScheme described =
        abi::given(job, "job")
            .job.scheme_of(abi::text_of(scheme), abi::options_of(options, option_count));
    abi::fill(traits, abi::describe(*job, described), "syncopate_scheme_traits");
  });
}

syncopate_status syncopate_training_may_start(const syncopate_job* job) {
  return abi::call([&] { abi::given(job, "job").job.expect_untrained(); });
}

syncopate_status syncopate_training_start(syncopate_job* job, const syncopate_replica* replica,
                                          const syncopate_training_options* options,
                                          syncopate_training** training) {
  return abi::make(training, [&] { return abi::start(job, replica, options); });
}

int syncopate_training_server_steps(const syncopate_training* training) {
  return abi::value_of(
      [&] { return abi::given(training, "training").training.server_steps() ? 1 : 0; });
}

int syncopate_training_server_moves_all(const syncopate_training* training) {
  return abi::value_of(
      [&] { return abi::given(training, "training").training.server_moves_all() ? 1 : 0; });
}

int syncopate_training_shares_gradients(const syncopate_training* training) {
  return abi::value_of(
      [&] { return abi::given(training, "training").training.shares_gradients() ? 1 : 0; });
}

int syncopate_training_overlaps(const syncopate_training* training) {
  return abi::value_of(
      [&] { return abi::given(training, "training").training.overlaps() ? 1 : 0; });
}

uint32_t syncopate_training_batch_size(const syncopate_training* training) {
  return abi::value_of([&] { return abi::given(training, "training").training.batch_size(); });
}

uint64_t syncopate_training_samples(const syncopate_training* training) {
  return abi::value_of([&] { return abi::given(training, "training").training.samples(); });
}

uint32_t syncopate_training_next_samples(const syncopate_training* training) {
  return abi::value_of([&] { return abi::given(training, "training").training.next_samples(); });
}

syncopate_status syncopate_training_begin_pass(syncopate_training* training, uint32_t samples) {
  return abi::call([&] { abi::given(training, "training").training.begin_pass(samples); });
}

syncopate_status syncopate_training_gradients_ready(syncopate_training* training, uint64_t first,
                                                    uint64_t count) {
  return abi::call(
      [&] { abi::given(training, "training").training.gradients_ready(first, count); });
}

syncopate_status syncopate_training_use_settings(syncopate_training* training, double learning_rate,
                                                 uint32_t checksum) {
  return abi::call([&] {
    abi::given(training, "training")
        .training.use_settings({.learning_rate = learning_rate, .checksum = checksum});
  });
}

syncopate_status syncopate_training_has_gradients(syncopate_training* training,
                                                  const uint8_t* tensors) {
  return abi::call([&] {
    abi::given(training, "training").training.has_gradients(&abi::given(tensors, "tensors"));
  });
}

syncopate_status syncopate_training_step(syncopate_training* training, uint32_t samples) {
  return abi::call([&] { abi::given(training, "training").training.step(samples); });
}

syncopate_status syncopate_training_step_alone(syncopate_training* training, uint32_t samples,
                                               int finite) {
  return abi::call(
      [&] { abi::given(training, "training").training.step_alone(samples, finite != 0); });
}

syncopate_status syncopate_training_align(syncopate_training* training, const char* place) {
  return abi::call(
      [&] { abi::given(training, "training").training.align(&abi::given(place, "place")); });
}

syncopate_status syncopate_training_take_replica(syncopate_training* training) {
  return abi::call([&] { abi::given(training, "training").training.take_replica(); });
}

syncopate_status syncopate_training_finish(syncopate_training* training) {
  return abi::call([&] { abi::given(training, "training").training.finish(); });
}

void syncopate_training_abandon(syncopate_training* training, const char* reason) {
  if (training != nullptr) {
    // The only possible error is that memory for the reason is short; closing then finishes as
    // usual.
    static_cast<void>(abi::call([&] { training->training.abandon(abi::text_of(reason)); }));
  }
}

void syncopate_training_close(syncopate_training* training) {
  // In a forked process it would wait for others, with threads that are not there.
  if (training != nullptr && training->training.is_of_this_process()) {
    abi::dispose(training);
  }
}

void syncopate_memory_release(syncopate_memory* memory) {
  abi::dispose(memory);
}
