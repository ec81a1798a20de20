#include <functional>

#include "base/interruption.hpp"
#include "base/log.hpp"
#include "job/abi/c_calls.hpp"
#include "job/abi/objects.hpp"
#include "job/launch/job_key.hpp"

namespace syncopate::abi {
namespace {

JobEntry entry_of(const syncopate_entry& entry) {
  JobEntry own{.coordinator = text_of(entry.coordinator),
               .key = text_of(entry.key),
               .rank = entry.rank,
               .size = entry.worker_count,
               .local_rank = entry.local_rank,
               .unencrypted = entry.unencrypted != 0};
  if (entry.address != nullptr) {
    own.address = entry.address;
  }
  if (entry.key_file != nullptr) {
    own.key = read_key(entry.key_file, "key_file");
    own.encrypted = true;
    own.unencrypted = false;
  }
  return own;
}

std::unique_ptr<syncopate_host> host_of(std::uint32_t workers,
                                        const syncopate_host_options* options) {
  ProgramHostThread::Options own;
  if (options != nullptr) {
    const auto given = taken(options, "syncopate_host_options");
    own.unencrypted = given.unencrypted != 0;
    if (given.address != nullptr) {
      own.address = given.address;
    }
    if (given.key_file != nullptr) {
      own.key = read_key(given.key_file, "key_file");
      own.unencrypted = false;
    }
  }
  if (workers == 0) {
    throw ConfigError("a job has at least one worker");
  }
  return std::make_unique<syncopate_host>(workers, own);
}

InitOptions init_options(const syncopate_join_options* options) {
  if (options == nullptr) {
    return {};
  }
  const auto own = taken(options, "syncopate_join_options");
  InitOptions init{.scheme = text_of(own.scheme),
                   .options = options_of(own.options, own.option_count),
                   .entry = {},
                   .wait_limit = wait_limit_of(own.wait_seconds)};
  if (own.entry != nullptr) {
    init.entry = entry_of(taken(own.entry, "syncopate_entry"));
  }
  return init;
}

syncopate_log_level level_of(log::Level level) {
  switch (level) {
    case log::Level::debug: return SYNCOPATE_LOG_DEBUG;
    case log::Level::info: return SYNCOPATE_LOG_INFO;
    case log::Level::warning: return SYNCOPATE_LOG_WARNING;
  }
  return SYNCOPATE_LOG_WARNING;
}

log::Level level_of(syncopate_log_level level) {
  if (level <= SYNCOPATE_LOG_DEBUG) {
    return log::Level::debug;
  }
  return level == SYNCOPATE_LOG_INFO ? log::Level::info : log::Level::warning;
}

}  // namespace
}  // namespace syncopate::abi

using syncopate::abi::given;
using syncopate::abi::make;
using syncopate::abi::value_of;

void syncopate_set_log(syncopate_log_function log, void* user, syncopate_log_level least) {
  namespace abi = syncopate::abi;
  if (log == nullptr) {
    syncopate::log::send_to({}, syncopate::log::Level::warning);
    return;
  }
  const auto take = [log, user](syncopate::log::Level level, const std::string& line) {
    log(user, abi::level_of(level), line.c_str());
  };
  syncopate::log::send_to(take, abi::level_of(least));
}

void syncopate_set_interruption(syncopate_interruption_function requested, void* user) {
  syncopate::interruption::ask(requested == nullptr ? std::function<bool()>() : [requested, user] {
    return requested(user) != 0;
  });
}

syncopate_status syncopate_join(const syncopate_join_options* options, syncopate_job** job) {
  return make(
      job, [&] { return std::make_unique<syncopate_job>(syncopate::abi::init_options(options)); });
}

void syncopate_leave(syncopate_job* job) {
  syncopate::abi::dispose(job);
}

syncopate_status syncopate_host_open(uint32_t worker_count, const syncopate_host_options* options,
                                     syncopate_host** host) {
  return make(host, [&] { return syncopate::abi::host_of(worker_count, options); });
}

const char* syncopate_host_coordinator(const syncopate_host* host) {
  return value_of([&] { return given(host, "host").thread.place().address.c_str(); });
}

const char* syncopate_host_key(const syncopate_host* host) {
  return value_of([&] { return given(host, "host").thread.place().token.c_str(); });
}

void syncopate_host_close(syncopate_host* host) {
  syncopate::abi::dispose(host);
}

uint32_t syncopate_rank(const syncopate_job* job) {
  return value_of([&] { return given(job, "job").job.rank(); });
}

uint32_t syncopate_worker_count(const syncopate_job* job) {
  return value_of([&] { return given(job, "job").job.size(); });
}

uint32_t syncopate_local_rank(const syncopate_job* job) {
  return value_of([&] { return given(job, "job").job.local_rank(); });
}

uint32_t syncopate_host_of(const syncopate_job* job, uint32_t rank) {
  return value_of([&] { return given(job, "job").job.host_of(rank); });
}

int syncopate_is_alone(const syncopate_job* job) {
  return value_of([&] { return given(job, "job").job.is_alone() ? 1 : 0; });
}
