#pragma once

#include <syncopate.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job/front/loop_group.hpp"
#include "job/front/loop_job.hpp"
#include "job/front/loop_training.hpp"
#include "job/program/host_thread.hpp"

// The objects behind the handles of the C interface.

struct syncopate_group {
  explicit syncopate_group(syncopate::LoopGroup of_worker) : group(std::move(of_worker)) {}

  syncopate::LoopGroup group;
  std::string next_type{};  ///< name of the type of the next collective's bytes
};

struct syncopate_job {
  explicit syncopate_job(const syncopate::InitOptions& options)
      : job(options), everyone(syncopate::LoopGroup(job)) {}

  syncopate::LoopJob job;
  syncopate_group everyone;  ///< declared after the job, which it uses
  std::string options{};     ///< options of the last described scheme, as JSON
};

struct syncopate_host {
  syncopate_host(std::uint32_t workers, const syncopate::ProgramHostThread::Options& options)
      : thread(workers, options) {}

  syncopate::ProgramHostThread thread;
};

struct syncopate_work {
  explicit syncopate_work(syncopate::CollectiveWork started) : work(std::move(started)) {}

  syncopate::CollectiveWork work;
};

struct syncopate_share {
  explicit syncopate_share(syncopate::LoopShare of_worker) : share(std::move(of_worker)) {}

  syncopate::LoopShare share;
  std::vector<std::uint64_t> indices{};  ///< indices of the last step
};

struct syncopate_training {
  syncopate_training(const syncopate::LoopJob& job,
                     std::unique_ptr<syncopate::ProgramReplica> replica,
                     const syncopate::LoopTraining::Options& options)
      : training(job, std::move(replica), options) {}

  syncopate::LoopTraining training;
};

struct syncopate_memory {
  std::shared_ptr<float> values;
};
