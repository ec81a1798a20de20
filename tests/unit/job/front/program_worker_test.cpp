// Goal:   a program drives its worker on the thread of its own loop: the scheme's work and the
//         calls of its replica happen there; an interruption, an abandoned loop, a failing replica
//         and a loop that ends early reach the other workers, and no call waits forever.
// Method: programs are threads of this process, beside a real coordinator; they wait only for each
//         other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/errors.hpp"
#include "base/interruption.hpp"
#include "job/front/loop_job.hpp"
#include "job/front/loop_training.hpp"
#include "tests/support/plain_replica.hpp"
#include "tests/support/program_coordinator.hpp"

namespace syncopate {
namespace {

using test::PlainReplica;
using testing::HasSubstr;

/// What a program does after its training has begun.
using Loop = std::function<void(std::uint32_t rank, LoopTraining& training, PlainReplica& replica)>;

/// The programs train by `scheme`, each in its own `loop`, which begins when all trainings have: a
/// loop that fails at once would end the others while they begin. Returns the error that ended the
/// job.
std::string train(std::uint32_t programs, const std::string& scheme, const Loop& loop) {
  test::ProgramCoordinator coordinator(programs);
  const std::string folder = test::new_run_folder();
  std::latch all_train(programs);
  std::vector<std::jthread> threads;
  for (std::uint32_t rank = 0; rank < programs; ++rank) {
    threads.emplace_back([&, rank] {
      const LoopJob job({.scheme = scheme,
                         .options = {{"run-dir", folder}},
                         .entry = JobEntry{.coordinator = coordinator.address(),
                                           .key = coordinator.key(),
                                           .rank = rank,
                                           .size = programs}});
      auto replica = std::make_unique<PlainReplica>();
      PlainReplica& own = *replica;
      LoopTraining training(
          job, std::move(replica),
          {.optimizer = {.learning_rate = 0.01, .rule = {{"optimizer", "sgd"}}}, .batch_size = 4});
      all_train.arrive_and_wait();
      loop(rank, training, own);
    });
  }
  return coordinator.run();
}

std::string train_two(const std::string& scheme, const Loop& loop) {
  return train(2, scheme, loop);
}

void take_steps(LoopTraining& training, PlainReplica& replica, int count) {
  for (int step = 0; step < count; ++step) {
    replica.compute_gradient();
    training.step(4);
  }
}

/// The message of the error that `call` throws; "none" without one.
template <class Kind = Error>
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Kind& error) {
    return error.what();
  }
  return "none";
}

TEST(ProgramWorkerTest, CallsTheReplicaOnTheThreadOfTheLoop) {
  for (const std::string scheme : {"ssgd", "esync", "local-sgd", "easgd", "nbssgd"}) {
    SCOPED_TRACE(scheme);
    std::array<int, 2> elsewhere{};
    std::array<int, 2> calls{};
    const std::string error =
        train_two(scheme, [&](std::uint32_t rank, LoopTraining& training, PlainReplica& replica) {
          replica.on_step = [&, rank, own = std::this_thread::get_id()] {
            ++calls.at(rank);
            elsewhere.at(rank) += std::this_thread::get_id() == own ? 0 : 1;
          };
          take_steps(training, replica, 20);
          training.finish();
        });
    EXPECT_EQ(error, "");
    EXPECT_THAT(calls, testing::Each(testing::Ge(1)));
    EXPECT_THAT(elsewhere, testing::Each(0));
  }
}

TEST(ProgramWorkerTest, TakesPartWithoutSamplesUntilTheLongerLoopHasEnded) {
  std::array<std::vector<float>, 2> models;
  const std::string error =
      train_two("ssgd", [&](std::uint32_t rank, LoopTraining& training, PlainReplica& replica) {
        take_steps(training, replica, rank == 0 ? 3 : 9);
        training.finish();
        const auto params = replica.view(ReplicaVector::params);
        models.at(rank) = {params.begin(), params.end()};
      });
  EXPECT_EQ(error, "");
  // A step without samples weighs nothing: nine steps of gradient descent by the rate 0.01.
  float expected = 1;
  for (int step = 0; step < 9; ++step) {
    expected -= 0.01F * expected;
  }
  EXPECT_THAT(models[0], testing::Each(testing::FloatNear(expected, 1e-6F)));
  EXPECT_EQ(models[0], models[1]);
}

TEST(ProgramWorkerTest, LoopsOfUnequalLengthAlignWithOneModel) {
  for (const std::string scheme :
       {"ssgd", "esync", "local-sgd", "diloco", "nbssgd", "asgd", "ssp", "backup", "hogwild"}) {
    SCOPED_TRACE(scheme);
    std::array<std::vector<std::vector<float>>, 2> models;
    std::array<int, 2> kept{};
    const std::string error =
        train_two(scheme, [&](std::uint32_t rank, LoopTraining& training, PlainReplica& replica) {
          for (int epoch = 0; epoch < 3; ++epoch) {
            take_steps(training, replica, rank == 0 ? 7 : 2);
            const std::span<float> gradient = replica.view(ReplicaVector::grads);
            std::ranges::fill(gradient, 0.5F);
            training.align("epoch " + std::to_string(epoch));
            kept.at(rank) += std::ranges::count(gradient, 0.5F) == PlainReplica::parameters ? 1 : 0;
            const auto params = replica.view(ReplicaVector::params);
            models.at(rank).emplace_back(params.begin(), params.end());
          }
          training.finish();
        });
    EXPECT_EQ(error, "");
    EXPECT_EQ(models[0], models[1]);
    EXPECT_LT(models[0].back().front(), models[0].front().front());  // training goes on in between
    EXPECT_THAT(kept, testing::Each(3));
  }
}

/// A step of `backup` closes with two of three gradients, so the last workers to come are late.
TEST(ProgramWorkerTest, ALateWorkerOfBackupDoesNotHoldAnAlignUp) {
  for (int job = 0; job < 5; ++job) {
    std::array<std::vector<float>, 3> models;
    const std::string error =
        train(3, "backup", [&](std::uint32_t rank, LoopTraining& training, PlainReplica& replica) {
          take_steps(training, replica, 5 * (2 - static_cast<int>(rank)));
          training.align("the end");
          const auto params = replica.view(ReplicaVector::params);
          models.at(rank).assign(params.begin(), params.end());
          training.finish();
        });
    EXPECT_EQ(error, "");
    EXPECT_THAT(models, testing::Each(models[0]));
  }
}

TEST(ProgramWorkerTest, RefusesTwoPlacesInOneCall) {
  for (const std::string scheme : {"ssgd", "esync", "asgd"}) {
    SCOPED_TRACE(scheme);
    const std::string error =
        train_two(scheme, [&](std::uint32_t rank, LoopTraining& training, PlainReplica& replica) {
          take_steps(training, replica, 2);
          EXPECT_THAT(error_of([&] { training.align("place " + std::to_string(rank)); }),
                      HasSubstr(" is elsewhere: workers take different numbers of steps"));
        });
    EXPECT_THAT(error, testing::ContainsRegex("waits for all workers at place ., but worker . is"));
  }
}

TEST(ProgramWorkerTest, AnInterruptedWaitEndsTheJob) {
  std::latch interrupted(1);
  std::array<std::string, 2> errors;
  std::string later;
  const std::string error =
      train_two("ssgd", [&](std::uint32_t rank, LoopTraining& training, PlainReplica& replica) {
        replica.compute_gradient();
        if (rank == 0) {
          interruption::ask([] { return true; });
          errors[0] = error_of<Cancelled>([&] { training.step(4); });
          later = error_of([&] { training.step(4); });
          interruption::ask({});
          interrupted.count_down();
        } else {
          interrupted.wait();  // the other one waits for this one's gradient
          errors[1] = error_of([&] { training.step(4); });
        }
      });
  EXPECT_EQ(errors[0], interruption::reason);
  EXPECT_THAT(later, HasSubstr(interruption::reason));
  EXPECT_THAT(errors[1], HasSubstr(interruption::reason));
  EXPECT_THAT(error, HasSubstr(interruption::reason));
}

TEST(ProgramWorkerTest, AnotherThreadAbandonsALoopThatWaits) {
  std::latch ended(1);
  std::array<std::string, 2> errors;
  const std::string error =
      train_two("ssgd", [&](std::uint32_t rank, LoopTraining& training, PlainReplica& replica) {
        replica.compute_gradient();
        if (rank == 0) {
          const std::jthread other([&] { training.abandon("the script gave up"); });
          errors[0] = error_of([&] { training.step(4); });
          ended.count_down();
        } else {
          ended.wait();
          errors[1] = error_of([&] { training.step(4); });
        }
      });
  EXPECT_THAT(errors[0], HasSubstr("the script gave up"));
  EXPECT_THAT(errors[1], HasSubstr("the script gave up"));
  EXPECT_THAT(error, HasSubstr("the script gave up"));
}

TEST(ProgramWorkerTest, AnOptimizerDoesNotCallTheJobWithinAStep) {
  std::array<std::string, 2> refusals;
  const std::string error =
      train_two("ssgd", [&](std::uint32_t rank, LoopTraining& training, PlainReplica& replica) {
        replica.on_step = [&] { refusals.at(rank) = error_of([&] { training.step(4); }); };
        take_steps(training, replica, 1);
        training.finish();
      });
  EXPECT_EQ(error, "");  // the refusal has no other effect
  EXPECT_THAT(refusals, testing::Each(HasSubstr("is under way in this thread")));
}

TEST(ProgramWorkerTest, AReplicaThatFailsEndsTheJobByItsReason) {
  std::array<std::string, 2> errors;
  const std::string error = train_two(
      "local-sgd", [&](std::uint32_t rank, LoopTraining& training, PlainReplica& replica) {
        if (rank == 0) {
          replica.on_step = [] { throw DataError("no room for the momentum"); };
        }
        errors.at(rank) = error_of([&] { take_steps(training, replica, 1000); });
      });
  EXPECT_THAT(errors[0], HasSubstr("no room for the momentum"));
  EXPECT_THAT(errors[1], HasSubstr("no room for the momentum"));
  EXPECT_THAT(error, HasSubstr("no room for the momentum"));
}

}  // namespace
}  // namespace syncopate
