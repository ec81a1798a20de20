#include <algorithm>
#include <chrono>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "job/abi/c_calls.hpp"
#include "job/abi/objects.hpp"

namespace syncopate::abi {
namespace {

/// Longest object that a program can have.
constexpr std::size_t longest_memory = std::numeric_limits<std::size_t>::max() / 2;

/// Longest name of a type, in characters.
constexpr std::size_t longest_type = 63;

ConfigError too_long(const std::string& found) {
  return ConfigError("memory has at most " + std::to_string(longest_memory) +
                     " bytes, found a length of " + found + "; pass its real length");
}

/// Errors: ConfigError if the product is longer than any memory.
std::size_t product(std::size_t count, std::size_t length) {
  if (length > 0 && count > longest_memory / length) {
    throw too_long(std::to_string(count) + " times " + std::to_string(length));
  }
  return count * length;
}

template <class Value>
std::span<Value> span_of(void* values, std::size_t count) {
  static_cast<void>(product(count, sizeof(Value)));  // refuses a length too long for any memory
  auto* const first = static_cast<Value*>(values);
  return count > 0 ? std::span(&given(first, "values"), count) : std::span<Value>();
}

std::span<std::byte> writable(void* values, std::size_t bytes) {
  return span_of<std::byte>(values, bytes);
}

std::span<const std::byte> readable(const void* values, std::size_t bytes) {
  return span_of<std::byte>(const_cast<void*>(values), bytes);
}

ValueType value_type(syncopate_type type) {
  switch (type) {
    case SYNCOPATE_FLOAT32: return ValueType::float32;
    case SYNCOPATE_FLOAT64: return ValueType::float64;
    case SYNCOPATE_INT32: return ValueType::int32;
    case SYNCOPATE_INT64: return ValueType::int64;
    case SYNCOPATE_BFLOAT16: return ValueType::bfloat16;
    case SYNCOPATE_FLOAT16: return ValueType::float16;
    case SYNCOPATE_INT8: return ValueType::int8;
    case SYNCOPATE_UINT8: return ValueType::uint8;
  }
  throw ConfigError("a collective was given a type that syncopate_type does not have: " +
                    std::to_string(static_cast<int>(type)));
}

Values values_of(void* values, std::size_t count, syncopate_type given_type) {
  const ValueType type = value_type(given_type);
  return {writable(values, product(count, bytes_of(type))).data(), type, count};
}

Reduction reduction_of(syncopate_operation operation) {
  switch (operation) {
    case SYNCOPATE_SUM: return Reduction::sum;
    case SYNCOPATE_PRODUCT: return Reduction::product;
    case SYNCOPATE_MIN: return Reduction::min;
    case SYNCOPATE_MAX: return Reduction::max;
    case SYNCOPATE_BIT_AND: return Reduction::bit_and;
    case SYNCOPATE_BIT_OR: return Reduction::bit_or;
    case SYNCOPATE_BIT_XOR: return Reduction::bit_xor;
  }
  throw ConfigError("a collective was given an operation that syncopate_operation does not have: " +
                    std::to_string(static_cast<int>(operation)));
}

LoopGroup& group_of(syncopate_group* group) {
  return given(group, "group").group;
}

/// Returns a collective, with the type that the program has named for its bytes.
template <class Make>
LoopGroup::Collective typed(syncopate_group* group, const Make& collective) {
  std::string type = std::exchange(given(group, "group").next_type, {});
  LoopGroup::Collective made = collective(group_of(group));
  made.call.of_type = std::move(type);
  return made;
}

/// Starts a collective and stores its work in *work; if `work` is null, runs it to its end.
template <class Make>
syncopate_status carry_out(syncopate_group* group, syncopate_work** work,
                           const Make& collective) noexcept {
  if (work == nullptr) {
    return call([&] { group_of(group).run(typed(group, collective)); });
  }
  return make(work, [&] {
    return std::make_unique<syncopate_work>(group_of(group).start(typed(group, collective)));
  });
}

/// Does the same for a message between two workers.
template <class Start>
syncopate_status transfer(syncopate_work** work, const Start& start) noexcept {
  if (work == nullptr) {
    return call([&] { start().wait(); });
  }
  return make(work, [&] { return std::make_unique<syncopate_work>(start()); });
}

/// Cuts `all` into the blocks of all workers, which lie one behind the other.
template <class Byte>
std::vector<std::span<Byte>> blocks_of(std::span<Byte> all, const std::size_t* bytes,
                                       std::uint32_t count) {
  std::vector<std::span<Byte>> blocks;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    blocks.push_back(all.first(bytes[rank]));
    all = all.subspan(bytes[rank]);
  }
  return blocks;
}

std::size_t total_of(const std::size_t* bytes, std::uint32_t count, const char* name) {
  std::size_t total = 0;
  for (const std::size_t block : std::span<const std::size_t>(&given(bytes, name), count)) {
    if (block > longest_memory - total) {
      throw too_long(std::to_string(block) + " behind " + std::to_string(total));
    }
    total += block;
  }
  return total;
}

}  // namespace
}  // namespace syncopate::abi

namespace abi = syncopate::abi;
using syncopate::LoopGroup;

syncopate_status syncopate_next_type(syncopate_group* group, const char* type) {
  return abi::call([&] {
    const std::string text = abi::text_of(type);
    if (text.size() > abi::longest_type) {
      throw syncopate::ConfigError("a type has a name of at most " +
                                   std::to_string(abi::longest_type) + " bytes, found " + text);
    }
    abi::given(group, "group").next_type = text;
  });
}

// NOLINTBEGIN(readability-function-size): C has neither spans nor default arguments
syncopate_status syncopate_allreduce(syncopate_group* group, void* values, size_t count,
                                     syncopate_type type, syncopate_operation operation,
                                     syncopate_work** work) {
  return abi::carry_out(group, work, [&](const LoopGroup& of) {
    return of.allreduce(abi::values_of(values, count, type), abi::reduction_of(operation));
  });
}

syncopate_status syncopate_reduce(syncopate_group* group, void* values, size_t count,
                                  syncopate_type type, syncopate_operation operation, uint32_t root,
                                  syncopate_work** work) {
  return abi::carry_out(group, work, [&](const LoopGroup& of) {
    return of.reduce(abi::values_of(values, count, type), abi::reduction_of(operation), root);
  });
}

syncopate_status syncopate_reduce_scatter(syncopate_group* group, const void* values, void* mine,
                                          size_t count, syncopate_type type,
                                          syncopate_operation operation, syncopate_work** work) {
  return abi::carry_out(group, work, [&](const LoopGroup& of) {
    const std::size_t all = abi::product(of.size(), count);
    return of.reduce_scatter(abi::values_of(const_cast<void*>(values), all, type),
                             abi::values_of(mine, count, type), abi::reduction_of(operation));
  });
}

syncopate_status syncopate_broadcast(syncopate_group* group, void* values, size_t bytes,
                                     uint32_t root, syncopate_work** work) {
  return abi::carry_out(group, work, [&](const LoopGroup& of) {
    return of.broadcast(abi::writable(values, bytes), root);
  });
}

syncopate_status syncopate_allgather(syncopate_group* group, const void* mine, size_t bytes,
                                     void* all, syncopate_work** work) {
  return abi::carry_out(group, work, [&](const LoopGroup& of) {
    return of.allgather(abi::readable(mine, bytes),
                        abi::writable(all, abi::product(of.size(), bytes)));
  });
}

syncopate_status syncopate_gather(syncopate_group* group, const void* mine, size_t bytes, void* all,
                                  uint32_t root, syncopate_work** work) {
  return abi::carry_out(group, work, [&](const LoopGroup& of) {
    const std::size_t blocks = of.rank() == root ? of.size() : 0;
    return of.gather(abi::readable(mine, bytes), abi::writable(all, abi::product(blocks, bytes)),
                     root);
  });
}

syncopate_status syncopate_scatter(syncopate_group* group, const void* all, size_t bytes,
                                   void* mine, uint32_t root, syncopate_work** work) {
  return abi::carry_out(group, work, [&](const LoopGroup& of) {
    const std::size_t blocks = of.rank() == root ? of.size() : 0;
    return of.scatter(abi::readable(all, abi::product(blocks, bytes)), abi::writable(mine, bytes),
                      root);
  });
}

syncopate_status syncopate_alltoall(syncopate_group* group, const void* to, const size_t* to_bytes,
                                    void* from, const size_t* from_bytes, syncopate_work** work) {
  return abi::carry_out(group, work, [&](const LoopGroup& of) {
    const auto own = abi::readable(to, abi::total_of(to_bytes, of.size(), "to_bytes"));
    const auto places = abi::writable(from, abi::total_of(from_bytes, of.size(), "from_bytes"));
    return of.alltoall(abi::blocks_of(own, to_bytes, of.size()),
                       abi::blocks_of(places, from_bytes, of.size()));
  });
}

syncopate_status syncopate_barrier(syncopate_group* group, syncopate_work** work) {
  return abi::carry_out(group, work, [&](const LoopGroup& of) { return of.barrier(); });
}

syncopate_status syncopate_send(syncopate_group* group, const void* values, size_t bytes,
                                uint32_t to, uint32_t tag, syncopate_work** work) {
  return abi::transfer(
      work, [&] { return abi::group_of(group).send(abi::readable(values, bytes), to, tag); });
}

syncopate_status syncopate_receive(syncopate_group* group, void* values, size_t bytes,
                                   uint32_t from, uint32_t tag, syncopate_work** work) {
  return abi::transfer(work, [&] {
    LoopGroup& of = abi::group_of(group);
    const auto place = abi::writable(values, bytes);
    return from == SYNCOPATE_ANY ? of.receive_any(place, tag) : of.receive(place, from, tag);
  });
}

int syncopate_work_is_done(const syncopate_work* work) {
  return abi::value_of([&] { return abi::given(work, "work").work.done() ? 1 : 0; });
}

syncopate_status syncopate_work_wait(syncopate_work* work) {
  return abi::call([&] { abi::given(work, "work").work.wait(); });
}

syncopate_status syncopate_work_wait_for(syncopate_work* work, double seconds, int* ended) {
  return abi::call([&] {
    const auto limit = std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e8));
    int& result = abi::given(ended, "ended");
    result = 0;
    syncopate::CollectiveWork& of = abi::given(work, "work").work;
    try {
      result = of.wait_for(std::chrono::duration_cast<syncopate::Duration>(limit)) ? 1 : 0;
    } catch (...) {
      result = of.done() ? 1 : 0;  // 0 if another thread waits for the same receive
      throw;
    }
  });
}

uint32_t syncopate_work_source(const syncopate_work* work) {
  return abi::value_of(
      [&] {
        const auto source = abi::given(work, "work").work.source();
        return source ? source->value : SYNCOPATE_ANY;
      },
      SYNCOPATE_ANY);
}

void syncopate_work_free(syncopate_work* work) {
  abi::dispose(work);
}
// NOLINTEND(readability-function-size)
