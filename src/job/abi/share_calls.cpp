#include "job/abi/c_calls.hpp"
#include "job/abi/objects.hpp"

namespace abi = syncopate::abi;

namespace syncopate::abi {
namespace {

syncopate_status open(syncopate_job* job, uint64_t samples, uint64_t batch_size, Division division,
                      syncopate_share** share) {
  return make(share, [&] {
    return std::make_unique<syncopate_share>(
        given(job, "job").job.share(samples, batch_size, division));
  });
}

}  // namespace
}  // namespace syncopate::abi

syncopate_status syncopate_share_open(syncopate_job* job, uint64_t samples, uint64_t batch_size,
                                      syncopate_share** share) {
  return abi::open(job, samples, batch_size, syncopate::Division::equal, share);
}

syncopate_status syncopate_share_open_by_speed(syncopate_job* job, uint64_t samples,
                                               uint64_t global_batch, syncopate_share** share) {
  return abi::open(job, samples, global_batch, syncopate::Division::by_speed, share);
}

void syncopate_share_close(syncopate_share* share) {
  abi::dispose(share);
}

uint64_t syncopate_share_step_size(const syncopate_share* share) {
  return abi::value_of([&] { return abi::given(share, "share").share.step_size(); });
}

syncopate_status syncopate_share_next(syncopate_share* share, const uint64_t** indices,
                                      size_t* count) {
  return abi::call([&] {
    auto& own = abi::given(share, "share");
    auto& begin = abi::given(indices, "indices");
    auto& length = abi::given(count, "count");
    const auto next = own.share.next();
    own.indices.assign(next.begin(), next.end());
    begin = own.indices.data();
    length = own.indices.size();
  });
}

syncopate_status syncopate_share_next_epoch(syncopate_share* share) {
  return abi::call([&] { abi::given(share, "share").share.next_epoch(); });
}

syncopate_status syncopate_share_resume(syncopate_share* share, uint64_t epoch, uint64_t step) {
  return abi::call([&] { abi::given(share, "share").share.resume(epoch, step); });
}

syncopate_status syncopate_share_length(syncopate_share* share, uint64_t* steps,
                                        uint64_t* samples) {
  return abi::call([&] {
    const auto length = abi::given(share, "share").share.length();
    if (steps != nullptr) {
      *steps = length.steps;
    }
    if (samples != nullptr) {
      *samples = length.samples;
    }
  });
}

uint64_t syncopate_share_epoch(const syncopate_share* share) {
  return abi::value_of([&] { return abi::given(share, "share").share.epoch(); });
}

uint64_t syncopate_share_step(const syncopate_share* share) {
  return abi::value_of([&] { return abi::given(share, "share").share.step(); });
}
