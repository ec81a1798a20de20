#include "job/front/loop_job.hpp"

#include <fmt/format.h>

#include <atomic>
#include <limits>
#include <utility>

#include "base/freed_memory.hpp"
#include "base/log.hpp"
#include "job/front/loop_member.hpp"
#include "job/launch/environment.hpp"
#include "job/launch/launcher.hpp"
#include "job/launch/loop_config.hpp"
#include "spec/job_plan.hpp"

namespace syncopate {
namespace {

/// For the programs of another launcher to start on this host.
constexpr Duration time_to_come = std::chrono::seconds(600);

/// Jobs that this process has joined without `syncopate run`. One that it did not come into keeps
/// its number when it tries again: the others may wait in it.
std::atomic<unsigned>& jobs_so_far() {
  static std::atomic<unsigned> jobs = 0;
  return jobs;
}

/// Errors: ConfigError, for a rank that the job does not have.
ProgramLaunch launch_of(const JobEntry& entry) {
  if (entry.rank >= entry.size) {
    throw ConfigError(
        fmt::format("the entry calls this process worker {} of {}: expected a rank from 0 on below "
                    "the number of workers",
                    entry.rank, entry.size));
  }
  const bool between_hosts = entry.encrypted || entry.unencrypted;
  const OwnPlace place = between_hosts ? own_place(from_environment) : OwnPlace();
  return {.coordinator = entry.coordinator,
          .key = entry.key,
          .rank = entry.rank,
          .size = entry.size,
          .local_rank = entry.local_rank,
          .address = entry.address,
          .encrypted = entry.encrypted,
          .unencrypted = entry.unencrypted,
          .place = place};
}

GivenOptions options_of(const InitOptions& options, const GivenOptions& of_command_line) {
  const GivenOptions own = given_in(options.scheme, options.options);
  return merged_options({of_command_line, "on the command line"}, {own, "in the program"});
}

}  // namespace

GivenOptions given_in(const std::string& scheme, GivenOptions options) {
  if (scheme.empty()) {
    return options;
  }
  const auto [found, added] = options.emplace("scheme", scheme);
  if (!added && found->second != scheme) {
    throw ConfigError(fmt::format("scheme is {}, but {} among the options; give it in one place",
                                  scheme, found->second));
  }
  return options;
}

namespace {

/// Errors: ConfigError, for a process that nothing numbers.
std::optional<Launch> launcher_of_this() {
  auto launcher = own_launch();
  if (!launcher && known_coordinator(from_environment)) {
    throw ConfigError(
        fmt::format("{} says that this process is one of several, but no launcher numbers it: "
                    "start it by mpirun, srun, torchrun or `syncopate run`",
                    coordinator_variable));
  }
  return launcher;
}

}  // namespace

LoopJob::Member::Member(const InitOptions& options)
    : launch_(options.entry ? launch_of(*options.entry) : program_launch_in(from_environment)),
      given_(options_of(options, launch_ ? launch_->options : GivenOptions())),
      process_(process_id()) {
  const auto launcher = launch_ ? std::nullopt : launcher_of_this();
  // Refuses impossible options before it waits for others.
  const TrainConfig config = loop_config(given_, launcher ? launcher->size : size());
  if (!sets_malloc(from_environment)) {
    keep_freed_memory();
  }
  if (launcher) {
    launch_ = launch_by(*launcher);
  }
  if (launch_) {
    node_.emplace(*launch_, config.transport, options.wait_limit);
  }
  if (launcher) {
    ++jobs_so_far();
  }
}

/// Worker 0 becomes the host of the others.
ProgramLaunch LoopJob::Member::launch_by(const Launch& launcher) {
  ProgramLaunch launch{.rank = launcher.rank,
                       .size = launcher.size,
                       .local_rank = launcher.local.value_or(launcher.rank)};
  if (const auto known = known_coordinator(from_environment)) {
    meet_between_hosts(*known, launch);
  } else {
    meet_on_this_host(launcher, launch);
  }
  return launch;
}

/// Errors: ConfigError for a second job: its workers could come to the coordinator of the first
/// one, which has the same address.
void LoopJob::Member::meet_between_hosts(const KnownCoordinator& known, ProgramLaunch& launch) {
  if (jobs_so_far() > 0) {
    throw ConfigError(
        fmt::format("with {} a process joins one job; for several, one after another, start it by "
                    "`syncopate run`",
                    coordinator_variable));
  }
  if (launch.rank == 0) {
    host_ = std::make_unique<ProgramHostThread>(
        launch.size, ProgramHostThread::Options{
                         .address = known.address, .place = known.place, .key = known.key});
  }
  launch.coordinator = known.address;
  launch.key = known.key;
  launch.address = {};
  launch.place = known.place;
  launch.encrypted = true;
}

void LoopJob::Member::meet_on_this_host(const Launch& launcher, ProgramLaunch& launch) {
  constexpr const char* advice =
      "set SYNCOPATE_COORDINATOR=HOST:PORT and SYNCOPATE_KEY_FILE=FILE on all ranks";
  expect_one_host(launcher, advice);
  const std::string job = fmt::format("{}-program-{}", launcher.job, jobs_so_far().load());
  if (launcher.rank == 0) {
    host_ = std::make_unique<ProgramHostThread>(launcher.size);
    host_->publish(job);
  }
  const Rendezvous::Place place =
      host_ ? host_->place() : Rendezvous(job).await(time_to_come, advice);
  launch.coordinator = place.address;
  launch.key = place.token;
}

GivenOptions LoopJob::Member::given_with(const std::string& scheme,
                                         const GivenOptions& options) const {
  const GivenOptions own = given_in(scheme, options);
  for (const std::string_view name : {data_order_option.name, std::string_view("transport")}) {
    if (own.contains(std::string(name))) {
      throw ConfigError(fmt::format("{} has no effect in the optimizer; give it to init", name));
    }
  }
  return merged_options({given_, "in init or on the command line"}, {own, "in the optimizer"});
}

void LoopJob::Member::want_samples(std::uint32_t samples, std::span<const std::uint32_t> parts) {
  *next_samples_ = samples;
  if (!parts.empty()) {
    const MutexLock lock(mutex_);
    wanted_parts_.assign(parts.begin(), parts.end());
  }
}

std::vector<std::uint32_t> LoopJob::Member::wanted_parts() const {
  const MutexLock lock(mutex_);
  return wanted_parts_;
}

ProgramNode& LoopJob::Member::node() {
  return node_.value();
}

void LoopJob::Member::begin_training() {
  expect_untrained();
  trained_ = true;
}

void LoopJob::Member::expect_untrained() const {
  if (trained_) {
    throw ConfigError(
        "this job has trained already, or trains: a job has one optimizer. Put all networks into "
        "one "
        "module, and all of its parameters into the groups of one optimizer");
  }
}

bool LoopJob::Member::is_of_this_process() const {
  return process_ == process_id();
}

void LoopJob::Member::expect_own_process() const {
  if (!is_of_this_process()) {
    throw ConfigError(
        "a forked process cannot use the job of the process that forked it; call syncopate::init "
        "after fork, or leave the job to the other process");
  }
}

void LoopJob::Member::leave_groups() {
  left_ = true;
  if (node_ && groups_ > 0) {
    node_->close();
    host_.reset();
  }
}

LoopJob::Member::Use::Use(Member& member) : member_(member) {
  member.expect_own_process();
  std::thread::id user{};
  if (member.in_use_by_.compare_exchange_strong(user, std::this_thread::get_id())) {
    return;
  }
  throw ConfigError(
      user == std::this_thread::get_id()
          ? "a call of this job is under way in this thread: the program's optimizer, and a signal "
            "handler that runs meanwhile, may not call the job; let the handler set a flag"
          : "two threads use this job at the same time; call it from one, or give each its turn");
}

LoopJob::LoopJob(const InitOptions& options) : member_(std::make_shared<Member>(options)) {}
LoopJob::~LoopJob() {
  if (member_ && !member_->is_of_this_process()) {
    abandon(std::move(member_));
  } else if (member_) {
    member_->leave_groups();
  }
}

LoopJob::LoopJob(LoopJob&&) noexcept = default;
LoopJob& LoopJob::operator=(LoopJob&&) noexcept = default;

std::uint32_t LoopJob::rank() const {
  return member_->rank();
}

std::uint32_t LoopJob::size() const {
  return member_->size();
}

std::uint32_t LoopJob::local_rank() const {
  return member_->local_rank();
}

std::uint32_t LoopJob::host_of(std::uint32_t rank) const {
  if (rank >= size()) {
    throw ConfigError(fmt::format("the job has {} workers, found rank {}", size(), rank));
  }
  return is_alone() ? 0 : member_->node().host_of(Rank{rank});
}

bool LoopJob::is_alone() const {
  return member_->is_alone();
}

LoopScheme LoopJob::scheme_of(const std::string& scheme,
                              const std::map<std::string, std::string>& options) const {
  GivenOptions given = member_->given_with(scheme, options);
  GivenOptions with_batch = given;
  const auto sizes = member_->sizes();
  if (sizes && sizes->division == Division::by_speed) {
    set_batch(with_batch, sizes->batch_size, sizes->division);
  }
  const TrainConfig config = loop_config(with_batch, size());
  return {.name = scheme_named(config.scheme).name,
          .traits = traits_of(config),
          .options = std::move(given)};
}

void LoopJob::expect_untrained() const {
  member_->expect_untrained();
}

LoopShare LoopJob::share(std::size_t samples, std::size_t batch_size, Division division) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  division = size() == 1 ? Division::equal : division;
  const std::uint64_t parts = division == Division::equal ? size() : 1;
  if (batch_size / parts > most) {
    throw ConfigError(
        fmt::format("a worker takes at most {} samples in a step, found a batch of {} for {}; "
                    "choose a smaller one",
                    most, batch_size, parts));
  }
  if (samples > most) {
    throw ConfigError(fmt::format(
        "a dataset has at most {} samples, found {}; divide it into several", most, samples));
  }
  if (division == Division::equal && (batch_size == 0 || batch_size % parts != 0)) {
    throw ConfigError(fmt::format(
        "a batch of {} samples does not divide into {} equal parts, one for each worker; choose {}",
        batch_size, size(), (batch_size / size() + 1) * size()));
  }
  const Member::Use use(*member_);
  return LoopShare(
      member_->share(samples, static_cast<std::uint32_t>(batch_size / parts), division));
}

}  // namespace syncopate
