#pragma once

#include <syncopate.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <syncopate/error.hpp>
#include <syncopate/job.hpp>
#include <syncopate/options.hpp>
#include <syncopate/replica.hpp>
#include <syncopate/scheme.hpp>
#include <thread>
#include <utility>
#include <vector>

namespace syncopate {
inline namespace v0 {

/// The properties of a program's optimizer that a job needs.
struct OptimizerRule {
  double learning_rate = 0;
  /// Options of `syncopate train` that describe its rule: {"optimizer", "momentum"}, {"momentum",
  /// "0.9"}. A parameter server that keeps the model applies the rule.
  Options options = {};
  std::string has_no_rule = {};  ///< why a server cannot apply it; empty: it can
};

/// The training of one replica in a program's own loop: the replica holds the gradients, and the
/// job's scheme decides how they are used.
///
/// Thread: as the job.
class Training {
 public:
  /// Sums of a training by an engine of the program, such as a process group of torch, for option
  /// `aggregate` `torch`.
  struct Sums {
    /// Replaces `count` values by their sums over `members` workers (`Job::ranks_of_sums`). Each of
    /// them calls it as often as the others, in a thread of its own, one call after another. Errors
    /// end the training.
    std::function<void(float* values, std::size_t count)> sum = {};
    std::uint32_t members = 0;
  };

  /// Settings of a training besides job and replica.
  struct Settings {
    OptimizerRule optimizer = {};
    std::string scheme = {};  ///< as `InitOptions::scheme`, or one of `register_scheme`
    Options options = {};     ///< as `InitOptions::options`
    /// Samples in a step of this worker, if `Job::share` was not called.
    std::optional<std::uint32_t> batch_size = {};
    /// Receives the values that this worker logs for each synchronization round, as a JSON object
    /// in one line (`docs/reference/records.md`, workers/N.jsonl), on the thread of the replica's
    /// members. A job of one process has no rounds.
    std::function<void(const std::string& json)> on_round = {};
    Sums sums = {};
  };

  /// Waits until every worker has made one, and gives all replicas the same parameters. Only once
  /// in a job of more than one process. Errors: ConfigError; the error that ended the job.
  Training(const Job& job, std::unique_ptr<Replica> replica, const Settings& settings);
  /// Finishes the training. During an exception it ends the job for all workers instead; with a
  /// scheme of the program the others get an error once this program leaves the job.
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// True if a parameter server takes the optimizer's steps.
  bool server_steps() const { return !own_ && syncopate_training_server_steps(training_) != 0; }
  /// True if a parameter server takes steps of the whole model by a rule that changes tensors whose
  /// gradient is zero, such as one with a momentum or a weight decay.
  bool server_moves_all() const {
    return !own_ && syncopate_training_server_moves_all(training_) != 0;
  }
  /// True if gradients are sent during the backward pass as soon as the program reports them:
  /// scheme ssgd with option overlap on.
  bool overlaps() const { return !own_ && syncopate_training_overlaps(training_) != 0; }
  /// Samples in a usual step.
  std::uint32_t batch_size() const {
    return own_ ? own_batch_size_ : syncopate_training_batch_size(training_);
  }

  /// Begins the backward pass of a step of `samples` samples, if the training overlaps. Optional,
  /// and at most once per step. Errors: those of `step`.
  void begin_pass(std::uint32_t samples) {
    check(syncopate_training_begin_pass(training_, samples));
  }
  /// Reports that `count` values of the gradient from `first` on are final: the program neither
  /// reads nor writes them until its step has returned. Values without a report are final at the
  /// step. Errors: ConfigError for a value that was reported before, and before a pass has begun.
  void gradients_ready(std::size_t first, std::size_t count) {
    check(syncopate_training_gradients_ready(training_, first, count));
  }

  /// Sets the settings of the program's optimizer for later steps: the learning rate of its first
  /// group, and a checksum, other than 0, of all settings of all groups. If workers share gradients
  /// and their settings differ in a step, the job ends for all of them with a ConfigError.
  void use_settings(double learning_rate, std::uint32_t checksum) {
    if (!own_) {
      check(syncopate_training_use_settings(training_, learning_rate, checksum));
    }
  }

  /// Sets which tensors have a gradient in later steps: those whose flag is not 0, of
  /// `Replica::tensor_count` tensors; the gradient of the others is zero. Before the first call
  /// every tensor has one. If workers share gradients, a step does not change a tensor without a
  /// gradient on any worker; if only some workers have one, the mean counts that of the others as
  /// zero.
  ///
  /// Has no effect with a scheme of the program: every tensor then has a gradient.
  void has_gradients(const std::vector<std::uint8_t>& flags) {
    if (!own_) {
      check(syncopate_training_has_gradients(training_, flags.data()));
    }
  }

  /// Samples of all workers on which the parameters have been trained, as known to this worker;
  /// during `Replica::take_step`, those before that step. 0 with a scheme of the program.
  std::uint64_t samples() const { return own_ ? 0 : syncopate_training_samples(training_); }

  /// Samples that the scheme wants in the next step; those of a usual step, unless it follows the
  /// speeds of the devices (`Job::share_by_speed`). For a program that reads data of its own.
  std::uint32_t next_samples() const {
    return own_ ? own_batch_size_ : syncopate_training_next_samples(training_);
  }

  /// Takes a step; the replica holds the mean gradient of `samples` samples. Returns once it holds
  /// the parameters for the next step. Errors: the error that ended the job; Cancelled once the
  /// user has ended it; ConfigError after `finish`, and if the pass began with another number of
  /// samples.
  void step(std::uint32_t samples) {
    if (own_) {
      replica_->use_gradients(std::vector<std::uint8_t>(replica_->tensor_count(), 1).data());
      own_->step(samples);
    } else {
      check(syncopate_training_step(training_, samples));
    }
  }

  /// Waits until every worker has called it, even after different numbers of steps: before a test,
  /// a checkpoint or another call of all workers in the middle of training. While it waits, this
  /// worker takes part in the rounds of the others without samples. All replicas are equal
  /// afterwards, except in `local`, `downpour`, `easgd` and `nbssgd` with `commit` `racy`, where
  /// each worker keeps its own. Gradients do not change. With a scheme of the program it only
  /// waits. `place`: a name for this call, the same on all workers.
  /// Errors: those of `step`; ConfigError if workers pass different names.
  void align(const std::string& place = "align") {
    if (own_) {
      own_->align();
    } else {
      check(syncopate_training_align(training_, place.c_str()));
    }
  }

  /// Ends this worker's steps and waits for the loops of all workers. The replica then holds the
  /// job's model.
  /// Errors: the error that ended the job.
  void finish() {
    if (own_) {
      own_->finish();
    } else {
      check(syncopate_training_finish(training_));
    }
  }

 private:
  static Training& of(void* user) { return *static_cast<Training*>(user); }
  static std::uint32_t usual_step(const Job& job, const Settings& settings);
  syncopate_replica callbacks();
  static void begin_sum(void* user, float* values, std::uint64_t count, syncopate_sum* sum);
  /// Calls a member of the replica. Its exception is stored, and the program's own call throws it.
  template <class Body>
  const char* guarded(const Body& body) noexcept;
  void check(syncopate_status status);

  std::unique_ptr<Replica> replica_;
  std::function<void(const std::string&)> on_round_;
  Sums sums_;
  std::exception_ptr failure_;  ///< of the replica
  std::string reason_;          ///< its message
  const int exceptions_ = std::uncaught_exceptions();
  syncopate_training* training_ = nullptr;  ///< null with a scheme of the program
  std::unique_ptr<OwnTraining> own_;
  std::uint32_t own_batch_size_ = 0;
};

template <class Body>
const char* Training::guarded(const Body& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    failure_ = std::current_exception();
    reason_ = error.what();
  } catch (...) {
    failure_ = std::current_exception();
    reason_ = "the program's replica threw something that is no std::exception";
  }
  return reason_.c_str();
}

inline syncopate_replica Training::callbacks() {
  syncopate_replica replica{};
  replica.size = sizeof replica;
  replica.user = this;
  replica.parameter_count = replica_->parameters();
  replica.buffer_count = replica_->buffers();
  replica.view = [](void* user, syncopate_vector which, float** values) {
    return of(user).guarded([&] { *values = of(user).replica_->view(which); });
  };
  if (!replica_->is_in_host_memory()) {
    replica.store = [](void* user, syncopate_vector which) {
      return of(user).guarded([&] { of(user).replica_->store(which); });
    };
  }
  replica.move = [](void* user, syncopate_vector which, float* values, syncopate_memory* memory) {
    const auto release = [memory](float* /*values*/) { syncopate_memory_release(memory); };
    return of(user).guarded(
        [&] { of(user).replica_->move_into(which, SharedMemory(values, release)); });
  };
  replica.take_step = [](void* user, double rate_factor) {
    return of(user).guarded([&] { of(user).replica_->take_step(rate_factor); });
  };
  if (sums_.sum) {
    replica.begin_sum = begin_sum;
    replica.sum_members = sums_.members;
  }
  replica.tensor_count = replica_->tensor_count();
  replica.use_gradients = [](void* user, const std::uint8_t* tensors) {
    return of(user).guarded([&] { of(user).replica_->use_gradients(tensors); });
  };
  return replica;
}

/// The thread may outlive a training that fails meanwhile.
inline void Training::begin_sum(void* user, float* values, std::uint64_t count,
                                syncopate_sum* sum) {
  std::thread([compute = of(user).sums_.sum, values, count, sum] {
    const auto failure = [&]() -> std::optional<std::string> {
      try {
        compute(values, count);
        return std::nullopt;
      } catch (const std::exception& error) {
        return error.what();
      } catch (...) {
        return "the program's sum threw something that is no std::exception";
      }
    }();
    syncopate_sum_end(sum, failure ? failure->c_str() : nullptr);
  }).detach();
}

inline Training::Training(const Job& job, std::unique_ptr<Replica> replica,
                          const Settings& settings)
    : replica_(std::move(replica)), on_round_(settings.on_round), sums_(settings.sums) {
  job.expect_untrained();
  if (auto scheme = detail::own_scheme(settings.scheme)) {
    own_batch_size_ = usual_step(job, settings);
    own_ = std::make_unique<OwnTraining>(std::move(scheme), *replica_, job.begin_own_training());
    return;
  }
  const detail::OptionList list(settings.options);
  const detail::OptionList rule(settings.optimizer.options);
  syncopate_training_options options{};
  options.size = sizeof options;
  options.scheme = detail::text_or_null(settings.scheme);
  options.options = list.data();
  options.option_count = list.size();
  options.batch_size = settings.batch_size.value_or(0);
  options.learning_rate = settings.optimizer.learning_rate;
  options.rule = rule.data();
  options.rule_count = rule.size();
  options.has_no_rule = detail::text_or_null(settings.optimizer.has_no_rule);
  if (on_round_) {
    options.on_round_user = this;
    options.on_round = [](void* user, const char* json) {
      of(user).guarded([&] { of(user).on_round_(json); });
    };
  }
  const syncopate_replica calls = callbacks();
  check(syncopate_training_start(job.handle(), &calls, &options, &training_));
}

/// Errors: ConfigError if the number of samples in a step is unknown.
inline std::uint32_t Training::usual_step(const Job& job, const Settings& settings) {
  const std::uint32_t given = settings.batch_size.value_or(0);
  const std::uint32_t samples = given > 0 ? given : job.usual_step();
  if (samples == 0) {
    throw ConfigError(
        "the job does not know how many samples a step has: call partition_dataset before, or give "
        "the optimizer's option batch_size");
  }
  return samples;
}

inline Training::~Training() {
  const bool exception_flies = std::uncaught_exceptions() > exceptions_;
  if (exception_flies) {
    syncopate_training_abandon(training_, "the program left its loop by an exception");
  } else if (own_) {
    try {
      own_->finish();
    } catch (const Error&) {  // a destructor cannot throw; `finish` does
    }
  }
  syncopate_training_close(training_);
}

inline void Training::check(syncopate_status status) {
  if (failure_) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  detail::check(status);
}

}  // namespace v0
}  // namespace syncopate
