#include "collective/sum_allreduce.hpp"

#include <memory>
#include <type_traits>
#include <vector>

#include "codec/bfloat16.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// The type in which terms are added: integers wrap around without their sign.
template <class Value>
struct Sum {
  using Type = typename std::conditional_t<std::is_integral_v<Value>, std::make_unsigned<Value>,
                                           std::type_identity<Value>>::type;
  static Type of(Value value) { return static_cast<Type>(value); }
  static Value to(Type sum) { return static_cast<Value>(sum); }
};

template <>
struct Sum<Bfloat16> {
  using Type = float;
  static Type of(Bfloat16 value) { return from_bf16(value.bits); }
  static Bfloat16 to(Type sum) { return {to_bf16(sum)}; }
};

/// The ranks other than this one, the nearest in the ring first, so that no rank is everybody's
/// first.
std::vector<Rank> others(const Group& group) {
  std::vector<Rank> ranks;
  for (std::uint32_t step = 1; step < group.size(); ++step) {
    ranks.push_back(group.neighbour(step));
  }
  return ranks;
}

template <class Value>
class PartwiseSum {
 public:
  PartwiseSum(Group& group, std::span<Value> values)
      : group_(group), values_(values), others_(others(group)), terms_(group.size()) {}

  void run() {
    exchange_terms();
    add_terms();
    exchange_sums();
  }

 private:
  using Transfers = std::vector<std::unique_ptr<Transfer>>;

  /// The part of the vector that a rank sums.
  std::span<Value> part(Rank rank) const {
    const auto begin_of = [&](std::size_t index) { return values_.size() * index / group_.size(); };
    const std::size_t begin = begin_of(rank.value);
    return values_.subspan(begin, begin_of(rank.value + 1) - begin);
  }

  void exchange_terms() {
    Transfers receives;
    for (const Rank from : others_) {
      std::vector<Value>& term = terms_[from.value];
      term.resize(part(group_.rank()).size());
      receives.push_back(start_receive(from, tags::parts, term));
    }
    Transfers sends;
    for (const Rank to : others_) {
      sends.push_back(start_send(to, tags::parts, part(to)));
    }
    wait_for(receives, sends);
  }

  void add_terms() {
    const std::span<Value> own = part(group_.rank());
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto term = [&](std::uint32_t rank) {
        return Sum<Value>::of(rank == group_.rank().value ? own[i] : terms_[rank][i]);
      };
      auto sum = term(0);
      for (std::uint32_t rank = 1; rank < group_.size(); ++rank) {
        sum += term(rank);
      }
      own[i] = Sum<Value>::to(sum);
    }
  }

  void exchange_sums() {
    Transfers receives;
    Transfers sends;
    for (const Rank other : others_) {
      receives.push_back(start_receive(other, tags::sums, part(other)));
      sends.push_back(start_send(other, tags::sums, part(group_.rank())));
    }
    wait_for(receives, sends);
  }

  std::unique_ptr<Transfer> start_receive(Rank from, Tag tag, std::span<Value> into) {
    return group_.transport().start_receive(group_.node(from), group_.tag(tag),
                                            std::as_writable_bytes(into));
  }

  std::unique_ptr<Transfer> start_send(Rank to, Tag tag, std::span<const Value> values) {
    return group_.transport().start_send(group_.node(to), group_.tag(tag), std::as_bytes(values));
  }

  void wait_for(const Transfers& receives, const Transfers& sends) {
    for (std::size_t i = 0; i < receives.size(); ++i) {
      group_.await(*receives[i], others_[i]);
    }
    for (const auto& send : sends) {
      send->wait(group_.deadline());
    }
  }

  Group& group_;
  std::span<Value> values_;
  std::vector<Rank> others_;
  std::vector<std::vector<Value>>
      terms_;  ///< of this rank's part, by rank; its own is in `values_`
};

}  // namespace

void sum_allreduce(Group& group, std::span<double> values) {
  PartwiseSum(group, values).run();
}

void sum_allreduce(Group& group, std::span<std::int32_t> values) {
  PartwiseSum(group, values).run();
}

void sum_allreduce(Group& group, std::span<std::int64_t> values) {
  PartwiseSum(group, values).run();
}

void sum_allreduce(Group& group, std::span<Bfloat16> values) {
  PartwiseSum(group, values).run();
}

}  // namespace syncopate
