#include "collective/part_reduction.hpp"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/errors.hpp"
#include "codec/half_floats.hpp"
#include "transport/tags.hpp"

namespace syncopate {
namespace {

/// The type in which terms are combined: unsigned for signed integers, which so wrap around.
template <class Value>
struct Term {
  using Type = typename std::conditional_t<std::is_integral_v<Value>, std::make_unsigned<Value>,
                                           std::type_identity<Value>>::type;
  static Type of(Value value) { return static_cast<Type>(value); }
  static Value to(Type result) { return static_cast<Value>(result); }
};

template <>
struct Term<Bfloat16> {
  using Type = float;
  static Type of(Bfloat16 value) { return from_bf16(value.bits); }
  static Bfloat16 to(Type result) { return {to_bf16(result)}; }
};

template <>
struct Term<Float16> {
  using Type = float;
  static Type of(Float16 value) { return from_f16(value.bits); }
  static Float16 to(Type result) { return {to_f16(result)}; }
};

template <class Value>
constexpr bool has_order_of_terms = !std::is_signed_v<Value> || !std::is_integral_v<Value>;

/// The better of two terms. Terms of signed integers are unsigned, so they are converted back to be
/// compared.
template <class Value, class Better>
typename Term<Value>::Type better(typename Term<Value>::Type one, typename Term<Value>::Type other,
                                  const Better& is_better) {
  if constexpr (has_order_of_terms<Value>) {
    return is_better(other, one) ? other : one;
  } else {
    return is_better(static_cast<Value>(other), static_cast<Value>(one)) ? other : one;
  }
}

/// Calls `run` with the function that combines the bits of two terms.
template <class Value, class Run>
void with_bits(Reduction reduction, const Run& run) {
  using Type = typename Term<Value>::Type;
  if constexpr (!std::is_integral_v<Value>) {
    throw ConfigError("floating values have no and, or, xor of bits; reduce integers, or bool");
  } else if (reduction == Reduction::bit_and) {
    run([](Type a, Type b) { return static_cast<Type>(a & b); });
  } else if (reduction == Reduction::bit_or) {
    run([](Type a, Type b) { return static_cast<Type>(a | b); });
  } else {
    run([](Type a, Type b) { return static_cast<Type>(a ^ b); });
  }
}

/// Calls `run` with the function that combines two terms.
template <class Value, class Run>
void with_combination(Reduction reduction, const Run& run) {
  using Type = typename Term<Value>::Type;
  switch (reduction) {
    case Reduction::sum: return run([](Type a, Type b) { return static_cast<Type>(a + b); });
    case Reduction::product: return run([](Type a, Type b) { return static_cast<Type>(a * b); });
    case Reduction::min:
      return run([](Type a, Type b) { return better<Value>(a, b, std::less<>()); });
    case Reduction::max:
      return run([](Type a, Type b) { return better<Value>(a, b, std::greater<>()); });
    case Reduction::bit_and:
    case Reduction::bit_or:
    case Reduction::bit_xor: return with_bits<Value>(reduction, run);
  }
}

/// The ranks other than this one, the nearest in the ring first, so that not all ranks send to the
/// same one first.
std::vector<Rank> others(const Group& group) {
  std::vector<Rank> ranks;
  for (std::uint32_t step = 1; step < group.size(); ++step) {
    ranks.push_back(group.neighbour(step));
  }
  return ranks;
}

template <class Value>
class PartReduction {
 public:
  PartReduction(Group& group, std::span<Value> values, Reduction reduction)
      : group_(group),
        values_(values),
        reduction_(reduction),
        others_(others(group)),
        terms_(group.size()) {}

  /// The part of the vector that a rank reduces.
  std::span<Value> part(Rank rank) const {
    const auto begin_of = [&](std::size_t index) { return values_.size() * index / group_.size(); };
    const std::size_t begin = begin_of(rank.value);
    return values_.subspan(begin, begin_of(rank.value + 1) - begin);
  }
  std::span<Value> own_part() const { return part(group_.rank()); }

  /// Puts this rank's part of the reduction into `result`, which may be the part itself.
  void reduce_into(std::span<Value> result) {
    // Refuses an impossible reduction before anything is sent.
    with_combination<Value>(reduction_, [&](auto combine) {
      exchange_terms();
      combine_terms(combine, result);
    });
  }

  /// Sends this rank's part to all other ranks, and receives their parts.
  void share_parts() {
    Transfers receives;
    Transfers sends;
    for (const Rank other : others_) {
      receives.push_back(start_receive(other, tags::sums, part(other)));
      sends.push_back(start_send(other, tags::sums, own_part()));
    }
    wait_for(receives, sends);
  }

  /// Sends `own`, this rank's part, to rank `root`, which receives the parts of all.
  void collect_parts(Rank root, std::span<const Value> own) {
    if (group_.rank() != root) {
      start_send(root, tags::sums, own)->wait(group_.deadline());
      return;
    }
    Transfers receives;
    for (const Rank other : others_) {
      receives.push_back(start_receive(other, tags::sums, part(other)));
    }
    wait_for(receives, {});
  }

 private:
  using Transfers = std::vector<std::unique_ptr<Transfer>>;

  void exchange_terms() {
    Transfers receives;
    for (const Rank from : others_) {
      std::vector<Value>& term = terms_[from.value];
      term.resize(own_part().size());
      receives.push_back(start_receive(from, tags::parts, term));
    }
    Transfers sends;
    for (const Rank to : others_) {
      sends.push_back(start_send(to, tags::parts, part(to)));
    }
    wait_for(receives, sends);
  }

  template <class Combine>
  void combine_terms(const Combine& combine, std::span<Value> result) {
    std::vector<const Value*> terms;
    for (std::uint32_t rank = 0; rank < group_.size(); ++rank) {
      terms.push_back(rank == group_.rank().value ? own_part().data() : terms_[rank].data());
    }
    for (std::size_t i = 0; i < result.size(); ++i) {
      auto combined = Term<Value>::of(terms[0][i]);
      for (std::uint32_t rank = 1; rank < group_.size(); ++rank) {
        combined = combine(combined, Term<Value>::of(terms[rank][i]));
      }
      result[i] = Term<Value>::to(combined);
    }
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
      group_.await(*receives[i], others_[i], "reduction");
    }
    for (const auto& send : sends) {
      send->wait(group_.deadline());
    }
  }

  Group& group_;
  std::span<Value> values_;
  Reduction reduction_;
  std::vector<Rank> others_;
  std::vector<std::vector<Value>>
      terms_;  ///< of this rank's part, by rank; its own is in `values_`
};

}  // namespace

void expect_combination(const Values& values, Reduction reduction) {
  with_typed(values, [&]<class Value>(std::span<Value>) {
    with_combination<Value>(reduction, [](auto) {});
  });
}

void part_allreduce(Group& group, const Values& values, Reduction reduction) {
  with_typed(values, [&](auto typed) {
    PartReduction parts(group, typed, reduction);
    parts.reduce_into(parts.own_part());
    parts.share_parts();
  });
}

void reduce_scatter(Group& group, const Values& values, const Values& mine, Reduction reduction) {
  if (mine.type() != values.type() || mine.size() * group.size() != values.size()) {
    throw ConfigError(
        "reduce_scatter needs a block of the same type for each rank, all of the length of the "
        "result");
  }
  with_typed(values, [&]<class Value>(std::span<Value> typed) {
    PartReduction(group, typed, reduction).reduce_into(mine.as<Value>());
  });
}

void reduce(Group& group, const Values& values, Reduction reduction, Rank root) {
  with_typed(values, [&]<class Value>(std::span<Value> typed) {
    PartReduction parts(group, typed, reduction);
    std::vector<Value> own(group.rank() == root ? 0 : parts.own_part().size());
    const std::span<Value> result = group.rank() == root ? parts.own_part() : std::span(own);
    parts.reduce_into(result);
    parts.collect_parts(root, result);
  });
}

}  // namespace syncopate
