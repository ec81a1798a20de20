// The peer of `syncopate bench allreduce`: Gloo over TCP on loopback, with each of its algorithms.
//
//     peer_gloo RANKS SECONDS BYTES,... FOLDER
//
// The program starts its own ranks. They find each other through files in FOLDER, which must be
// new. It prints one line of JSON, in which each result names its algorithm.

#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "bench/peer_rounds.hpp"

namespace {

using Context = std::shared_ptr<gloo::Context>;

struct Options {
  int ranks = 2;
  peer::Effort effort;
  std::string folder;
};

/// Makes new connections for each measurement: Gloo's older algorithms and its newer functions hang
/// now and then when they share connections.
class Contexts {
 public:
  Contexts(int rank, const Options& options)
      : rank_(rank), ranks_(options.ranks), store_(options.folder) {
    gloo::transport::tcp::attr loopback;
    loopback.iface = "lo";
    device_ = gloo::transport::tcp::CreateDevice(loopback);
  }

  Context connect() {
    gloo::rendezvous::PrefixStore store(std::to_string(made_.size()), store_);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank_, ranks_);
    context->connectFullMesh(store, device_);
    made_.push_back(context);
    return context;
  }

 private:
  int rank_;
  int ranks_;
  gloo::rendezvous::FileStore store_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::vector<Context> made_;  // kept to the end of the process: destruction may hang, too
};

peer::Library library_of(const Context& context) {
  return {.rank = context->rank,
          .ranks = context->size,
          .barrier =
              [context] {
                gloo::BarrierOptions options(context);
                gloo::barrier(options);
              },
          .greatest =
              [context](std::vector<double>& numbers) {
                gloo::AllreduceOptions options(context);
                options.setOutput(numbers.data(), numbers.size());
                options.setReduceFunction(
                    static_cast<void (*)(void*, const void*, const void*, std::size_t)>(
                        &gloo::max<double>));
                gloo::allreduce(options);
              }};
}

/// The function that torch.distributed calls.
void sum_by_function(const Context& context, std::vector<float>& values) {
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
  options.setOutput(values.data(), values.size());
  options.setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
  gloo::allreduce(options);
}

using Sum = std::function<void()>;

template <class Algorithm>
Sum sum_by(const Context& context, std::vector<float>& values) {
  const std::vector<float*> pointers{values.data()};
  const auto algorithm =
      std::make_shared<Algorithm>(context, pointers, static_cast<int>(values.size()));
  return [algorithm] { algorithm->run(); };
}

const std::vector<std::pair<std::string, Sum (*)(const Context&, std::vector<float>&)>> algorithms{
    {"ring (function)",
     [](const Context& context, std::vector<float>& values) -> Sum {
       return [context, &values] { sum_by_function(context, values); };
     }},
    {"ring", sum_by<gloo::AllreduceRing<float>>},
    {"ring chunked", sum_by<gloo::AllreduceRingChunked<float>>},
    {"halving doubling", sum_by<gloo::AllreduceHalvingDoubling<float>>}};

void run_rank(int rank, const Options& options) {
  Contexts contexts(rank, options);
  nlohmann::json results = nlohmann::json::array();
  for (const std::size_t bytes : options.effort.bytes) {
    for (const auto& [name, make] : algorithms) {
      std::vector<float> values(bytes / sizeof(float));
      const auto library = library_of(contexts.connect());
      const auto with = contexts.connect();
      results.push_back(peer::measure(library, options.effort.seconds, values, make(with, values)));
      results.back()["algorithm"] = name;
      library.barrier();
    }
  }
  if (rank == 0) {
    std::cout << nlohmann::json{{"results", results}}.dump() << std::endl;
  }
  ::_exit(0);
}

int run(const Options& options) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < options.ranks; ++rank) {
    children.push_back(::fork());
    if (children.back() == 0) {
      run_rank(rank, options);
    }
  }
  bool failed = false;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    failed |= status != 0;
  }
  return failed ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "peer_gloo RANKS SECONDS BYTES,... FOLDER\n";
    return 2;
  }
  return run({.ranks = std::stoi(argv[1]),
              .effort = {.bytes = peer::read_list(argv[3]), .seconds = std::stod(argv[2])},
              .folder = argv[4]});
}
