// Collectives of vectors in C++, blocking and while the program does something else.
// Usage: allreduce_cpp
#include <cstdint>
#include <cstdio>
#include <syncopate/job.hpp>
#include <vector>

namespace {

void run() {
  syncopate::Job job = syncopate::join();

  std::vector<double> sum(1000, job.rank() + 1.0);
  syncopate::CollectiveWork pending = job.allreduce_async(sum);
  std::vector<std::int64_t> first{job.rank() + 41, 7};  // the sum goes on meanwhile
  pending.wait();

  job.broadcast(first);
  const std::vector<std::int64_t> ranks =
      job.allgather(std::vector<std::int64_t>{static_cast<std::int64_t>(job.rank())});
  job.barrier();
  std::printf("worker %u of %u: sum %g, from worker 0 %lld, %zu ranks, the last %lld\n", job.rank(),
              job.size(), sum.back(), static_cast<long long>(first.front()), ranks.size(),
              static_cast<long long>(ranks.back()));
}

}  // namespace

int main() {
  try {
    run();
  } catch (const syncopate::Error& error) {
    std::fprintf(stderr, "allreduce_cpp: %s\n", error.what());
    return 1;
  }
  return 0;
}
