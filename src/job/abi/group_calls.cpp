#include <cstdint>
#include <vector>

#include "job/abi/c_calls.hpp"
#include "job/abi/objects.hpp"

namespace syncopate::abi {
namespace {

LoopGroup opened(syncopate_job* job, const syncopate_group_options* options) {
  const LoopJob& of = given(job, "job").job;
  const auto own = taken(options, "syncopate_group_options");
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; own.ranks == nullptr && rank < of.size(); ++rank) {
    ranks.push_back(rank);
  }
  if (own.ranks != nullptr) {
    ranks.assign(own.ranks, own.ranks + own.rank_count);
  }
  return LoopGroup(of, ranks, wait_limit_of(own.wait_seconds));
}

}  // namespace
}  // namespace syncopate::abi

namespace abi = syncopate::abi;

syncopate_group* syncopate_everyone(syncopate_job* job) {
  return abi::value_of([&] { return &abi::given(job, "job").everyone; });
}

syncopate_status syncopate_group_open(syncopate_job* job, const syncopate_group_options* options,
                                      syncopate_group** group) {
  return abi::make(group,
                   [&] { return std::make_unique<syncopate_group>(abi::opened(job, options)); });
}

void syncopate_group_close(syncopate_group* group) {
  abi::dispose(group);
}

uint32_t syncopate_group_rank(const syncopate_group* group) {
  return abi::value_of([&] { return abi::given(group, "group").group.rank(); });
}

uint32_t syncopate_group_size(const syncopate_group* group) {
  return abi::value_of([&] { return abi::given(group, "group").group.size(); });
}
