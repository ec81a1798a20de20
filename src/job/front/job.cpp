#include "job/front/job.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/log.hpp"
#include "base/random.hpp"
#include "job/front/program_site.hpp"
#include "job/host/coordinate.hpp"
#include "job/host/join.hpp"
#include "job/launch/run_claim.hpp"
#include "runtime/real_world.hpp"
#include "telemetry/json_lines.hpp"
#include "transport/transport_registry.hpp"

namespace syncopate {
namespace {

constexpr Duration time_to_join = std::chrono::seconds(600);

std::vector<float> params_of(RoleRunner& worker) {
  const auto params = worker.replica()->view(ReplicaVector::params);
  return {params.begin(), params.end()};
}

/// The local workers, and all members of other roles.
std::vector<std::unique_ptr<RoleRunner>> local_members(const HostSite& site,
                                                       std::uint32_t local_workers) {
  std::vector<std::unique_ptr<RoleRunner>> members;
  for (const MemberRole& role : member_roles()) {
    const std::uint32_t count =
        role.role == Role::worker ? local_workers : role.count(site.plan().membership());
    for (std::uint32_t index = 0; index < count; ++index) {
      members.push_back(role.make(site, Rank{index}));
    }
  }
  return members;
}

}  // namespace

/// This process's side of a job.
class Job::Member {
 public:
  virtual ~Member() = default;
  virtual void stop() = 0;
  virtual JobResult wait() = 0;

  std::string address;
  std::string token;
};

namespace {

class StartedJob final : public Job::Member {
 public:
  StartedJob(const JobSpec& spec, ModelAndData what)
      : claim_(request_of(spec, what.name)),
        site_(claim_.request().config, std::move(what), std::nullopt),
        local_workers_(std::min(spec.local_workers.value_or(spec.workers), spec.workers)),
        members_(local_members(site_, local_workers_)) {
    token = unguessable_token();
    const TransportKind kind = site_.config().transport;
    auto transport = listen_over(kind == TransportKind::tcp ? "tcp" : "shm",
                                 {.token = token, .control_only = true});
    address = transport->address();
    world_.emplace(std::move(transport));
    in_process_.emplace(*world_,
                        CoordinatorEndpoint{.address = address, .token = token, .transport = kind},
                        members_);
    coordinator_ = world_->spawn("coordinator", [this] { coordinate(); });
    claim_.keep();
  }

  ~StartedJob() override {
    stop();
    try {
      finish();
    } catch (const std::exception& error) {
      log::debug("{}", error.what());  // the program did not call `wait`
    }
  }

  void stop() override { stopping_ = true; }

  JobResult wait() override {
    finish();
    JobResult result{.summary = summary_, .accuracy = {}, .params = {}};
    const auto accuracy = nlohmann::ordered_json::parse(summary_).value("accuracy", Json());
    if (accuracy.is_number()) {
      result.accuracy = accuracy.get<double>();
    }
    for (std::uint32_t rank = 0; rank < local_workers_; ++rank) {
      result.params.push_back(params_of(*members_[rank]));
    }
    return result;
  }

 private:
  using Json = Recorder::Json;

  void coordinate() {
    const bool by_hand = local_workers_ < site_.config().workers;
    run_coordinator(*world_, site_,
                    {.membership = membership_of(
                         site_, by_hand ? time_to_join : JobRequest{}.gather_limit, by_hand),
                     .description = site_.described(),
                     .emit =
                         [this](const Json& event) {
                           if (event.at("event") == "finished") {
                             summary_ = json_text(event.at("summary"));
                           }
                         },
                     .interrupted = [this] { return stopping_.load(); }});
  }

  /// Waits for all threads of the job, also after an error. Errors: the error that ended the job.
  void finish() {
    if (!coordinator_) {
      return;
    }
    std::exception_ptr failure;
    try {
      std::exchange(coordinator_, nullptr)->join();
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    world_->transport().close(world_->now());  // ends members that an error left behind
    in_process_->join();
    if (failure) {
      std::rethrow_exception(failure);
    }
  }

  RunClaim claim_;
  const ProgramSite site_;
  const std::uint32_t local_workers_;
  std::vector<std::unique_ptr<RoleRunner>> members_;  ///< workers first, by rank
  std::atomic<bool> stopping_ = false;
  std::string summary_;  ///< written by the coordinator's task, read once it has ended
  std::optional<RealWorld> world_;
  std::optional<InProcessMembers> in_process_;
  std::unique_ptr<Task> coordinator_;  ///< last: it uses the members above
};

class JoinedJob final : public Job::Member {
 public:
  JoinedJob(const JoinRequest& request, ModelAndData what)
      : node_(reach_coordinator(request), request) {
    address = request.address;
    token = request.token;
    node_.prepare([&](const TrainConfig& config, std::optional<std::filesystem::path> resume_from) {
      return std::make_unique<ProgramSite>(config, std::move(what), std::move(resume_from));
    });
    worker_ = node_.world().spawn("worker", [this] { node_.run(); });
  }

  ~JoinedJob() override {
    if (worker_) {
      node_.world().cancel(std::make_exception_ptr(Cancelled("the program has left the job")));
    }
  }

  void stop() override {}

  JobResult wait() override {
    std::exchange(worker_, nullptr)->join();
    return {.summary = {}, .accuracy = {}, .params = {params_of(node_.member())}};
  }

 private:
  JoinedMember node_;
  std::unique_ptr<Task> worker_;  ///< last: it uses the node
};

}  // namespace

Job Job::start(const JobSpec& spec, ModelAndData what) {
  return Job(std::make_unique<StartedJob>(spec, std::move(what)));
}

Job Job::join(const std::string& address, const std::string& token, ModelAndData what) {
  const JoinRequest request{.role = Role::worker,
                            .address = address,
                            .token = token,
                            .index = {},
                            .gather_limit = time_to_join,
                            .given = {}};
  return Job(std::make_unique<JoinedJob>(request, std::move(what)));
}

Job::Job(std::unique_ptr<Member> member) : member_(std::move(member)) {}
Job::~Job() = default;
Job::Job(Job&&) noexcept = default;
Job& Job::operator=(Job&&) noexcept = default;

const std::string& Job::address() const {
  return member_->address;
}

const std::string& Job::token() const {
  return member_->token;
}

void Job::stop() {
  member_->stop();
}

JobResult Job::wait() {
  return member_->wait();
}

}  // namespace syncopate
