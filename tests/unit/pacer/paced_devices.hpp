#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "pacer/pacer.hpp"

namespace syncopate {

/// Devices that do steps, report them to a pacer and obey it, in virtual time. Every promise of the
/// pacer is checked during the run.
///
/// Messages take `latency`. A synchronization is complete when all present devices whose round it
/// is have entered it, and its result arrives `synchronization` later. A device that has to enter a
/// synchronization before it has the result of its last one waits for that result.
class PacedDevices {
 public:
  struct Device {
    Duration sample{};    ///< computing time of a sample
    Duration overhead{};  ///< fixed time that each step takes in addition
    std::uint32_t batch_size = 64;
  };
  struct Options {
    std::vector<Device> devices;
    PaceRule rule = PaceRule::timed;
    std::optional<Duration> round_time = {};
    bool overlap = true;
    std::uint32_t longest_period = 1;
    std::uint32_t global_batch = 0;
    Duration latency{};
    Duration synchronization{};
    double jitter = 0;     ///< a step takes up to this share more, or less
    double hiccups = 0;    ///< probability that a step takes twenty times as long
    double deaths = 0;     ///< probability that a device dies after a step
    double returns = 0;    ///< probability that a dead device returns after a step of another one
    Duration detection{};  ///< time until the pacer notices a death
  };
  /// A complete synchronization: its first and last entry, and the steps of its devices.
  struct Held {
    TimePoint first;
    TimePoint last;
    std::uint32_t last_rank = 0;
    std::map<std::uint32_t, std::uint64_t> steps = {};  ///< steps of the round, by rank
  };

  PacedDevices(Options options, std::uint64_t seed);

  /// Runs until this number of synchronizations is complete, all devices are dead, or a promise is
  /// broken.
  void run(std::uint64_t synchronizations);
  void slow_down(std::uint32_t rank, int times);
  void speed_up(std::uint32_t rank, int times);

  const std::vector<Held>& held() const { return held_; }  ///< from round 1 on
  const Pacer& pacer() const { return pacer_; }
  std::string broken() const { return broken_; }  ///< first broken promise; empty if none
  std::size_t alive() const;
  /// Returns the share of its time, since it began, that a device did not wait for a sum.
  double busy_share(std::uint32_t rank) const;
  /// The period that a device has adopted last.
  std::uint32_t period(std::uint32_t rank) const { return lives_[rank].period; }

 private:
  struct Life {
    bool alive = true;          ///< it computes, or waits
    bool present = true;        ///< the pacer counts it as present
    std::uint64_t life = 0;     ///< number of the life; events of an earlier life have no effect
    std::uint64_t round = 1;    ///< of its next synchronization
    std::uint64_t entered = 0;  ///< the round of its last one
    std::uint64_t next = 1;     ///< `round`, as its reports say
    std::uint32_t wanted_period = 1;  ///< the pacer's last decision
    std::uint32_t period = 1;         ///< that led to `round`
    std::uint64_t steps = 0;
    std::uint32_t size = 0;
    std::uint32_t in_hand = 0;  ///< samples of the current step
    std::optional<std::uint64_t> sync_after = {};
    std::uint64_t reduced = 0;  ///< its last round whose result the device has
    Duration communicated{};
    std::optional<TimePoint> waits_since = {};
    StepReport report{};  ///< report of the step after which it waits
    TimePoint born{};
    Duration waited{};
  };
  struct Mark {
    std::uint32_t rank;
    std::uint64_t life;
    std::uint64_t round;
    friend auto operator<=>(const Mark&, const Mark&) = default;
  };

  void promise(bool holds, const std::string& what);
  void after(Duration delay, std::function<void()> event);
  void live(std::uint32_t rank, std::function<void(Life&)> event, Duration delay);

  void begin_life(std::uint32_t rank);
  void begin_step(std::uint32_t rank);
  void end_step(std::uint32_t rank, Duration took);
  void enter(std::uint32_t rank);
  void wait(std::uint32_t rank);
  void go_on(std::uint32_t rank);
  void send(std::uint32_t rank, const StepReport& report);
  void die(std::uint32_t rank);
  void revive();

  void deliver_all(const Paces& paces);
  void deliver(const Pace& pace);
  bool is_complete() const;
  void complete_synchronizations();
  void deliver_result(std::uint64_t round, const std::set<std::uint32_t>& ranks);
  Duration draw(const Device& device, std::uint32_t samples);

  Options options_;
  Random random_;
  Pacer pacer_;
  std::vector<Life> lives_;
  std::multimap<TimePoint, std::function<void()>> events_;  ///< equal times: order of insertion
  TimePoint now_{};
  std::uint64_t open_ = 1;  ///< round of the synchronization that completes next
  /// By round: ranks that reported their entry to it.
  std::map<std::uint64_t, std::set<std::uint32_t>> entered_;
  std::map<std::uint64_t, Held> holding_;
  std::vector<Held> held_;
  std::set<Mark> decided_;
  std::string broken_;
};

}  // namespace syncopate
