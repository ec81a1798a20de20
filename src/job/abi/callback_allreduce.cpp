#include "job/abi/callback_allreduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.hpp"
#include "base/mutex.hpp"
#include "transport/steady_time.hpp"

/// A sum that a program computes.
struct syncopate_sum {
  syncopate_sum(std::span<const float> of, std::vector<float> memory) : values(std::move(memory)) {
    values.assign(of.begin(), of.end());
  }

  /// Waits until it has ended, at most until `deadline`. Returns whether it has.
  bool wait(syncopate::TimePoint deadline) {
    syncopate::MutexLock lock(mutex);
    while (!ended && syncopate::steady_now() < deadline) {
      changed.wait_for(lock.native(), deadline - syncopate::steady_now());
    }
    return ended;
  }

  void end(const char* reason) {
    const syncopate::MutexLock lock(mutex);
    ended = true;
    if (reason != nullptr) {
      error = reason;
    }
    changed.notify_all();
  }

  std::vector<float> values;
  std::shared_ptr<syncopate_sum> of_program;  ///< until the program ends the sum

  syncopate::Mutex mutex;
  std::condition_variable changed;
  bool ended GUARDED_BY(mutex) = false;
  std::optional<std::string> error GUARDED_BY(mutex);
};

namespace syncopate::abi {

void CallbackAllreduce::allreduce(std::span<float> values, TimePoint deadline) {
  if (!under_way_) {
    under_way_ = std::make_shared<syncopate_sum>(values, std::move(memory_));
    under_way_->of_program = under_way_;
    begin_(user_, under_way_->values.data(), under_way_->values.size(), under_way_.get());
  }
  if (!under_way_->wait(deadline)) {
    throw TimedOut("the program's allreduce has not ended");
  }
  const auto sum = std::exchange(under_way_, nullptr);
  const MutexLock lock(sum->mutex);
  if (sum->error) {
    throw Error(fmt::format("the program's allreduce failed: {}", *sum->error));
  }
  std::ranges::copy(sum->values, values.begin());
  memory_ = std::move(sum->values);
}

}  // namespace syncopate::abi

void syncopate_sum_end(syncopate_sum* sum, const char* error) {
  if (sum != nullptr) {
    const std::shared_ptr<syncopate_sum> own = std::move(sum->of_program);
    own->end(error);
  }
}
