// Goal:   a process finds its launcher, its rank, the number of ranks, and the MPI library that the
//         launcher supports. It finds no launcher in any other environment.
// Method: maps with the environments that the launchers of Debian 12 set.

#include "job/launch/launcher.hpp"

#include <gmock/gmock.h>

#include <map>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Variables = std::map<std::string, std::string>;

std::optional<Launch> launch_with(const Variables& variables, std::string_view parent = {}) {
  return launch_in(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::string() : found->second;
      },
      parent);
}

std::string refusal_of(const Variables& variables) {
  try {
    launch_with(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "it was not refused";
}

const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "5"},
                         {"PMIX_NAMESPACE", "123/45"},
                         {"PMIX_RANK", "3"}};
const Variables hydra{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"HYDI_CONTROL_FD", "7"}};
const Variables slurm{{"SLURM_JOB_ID", "77"},
                      {"SLURM_STEP_ID", "2"},
                      {"SLURM_PROCID", "0"},
                      {"SLURM_STEP_NUM_TASKS", "4"}};

const Variables torchrun{
    {"TORCHELASTIC_RUN_ID", "none"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "29500"}};

Variables joined(Variables one, const Variables& other) {
  one.insert(other.begin(), other.end());
  return one;
}

TEST(Launcher, TorchrunKnowsNoMpiAlsoWithinAnotherLauncher) {
  const Launch expected{.launcher = "torchrun", .rank = 1, .size = 2, .job = "29500"};
  EXPECT_EQ(launch_with(torchrun), expected);
  EXPECT_EQ(launch_with(joined(torchrun, open_mpi)), expected);
  const Launch within_slurm = launch_with(joined(torchrun, slurm)).value();
  EXPECT_EQ(within_slurm.launcher, "torchrun");
  EXPECT_EQ(within_slurm.job, "29500.2");
}

TEST(Launcher, TellsTheRankOnThisHost) {
  EXPECT_EQ(launch_with(torchrun)->local, std::nullopt);
  EXPECT_EQ(launch_with(joined(torchrun, {{"LOCAL_RANK", "1"}}))->local, 1U);
  EXPECT_EQ(launch_with(joined(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_RANK", "2"}}))->local, 2U);
  EXPECT_EQ(launch_with(joined(hydra, {{"MPI_LOCALRANKID", "0"}}))->local, 0U);
  EXPECT_EQ(launch_with(joined(slurm, {{"SLURM_LOCALID", "3"}}))->local, 3U);
}

const Variables plain{
    {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29501"}};

TEST(Launcher, MayBeAnyThatSetsTheVariablesOfTorchDistributed) {
  const Launch expected{
      .launcher = "a launcher that sets MASTER_ADDR", .rank = 1, .size = 2, .job = "29501"};
  EXPECT_EQ(launch_with(plain), expected);
  EXPECT_EQ(launch_with(joined(plain, open_mpi))->launcher, "Open MPI's mpirun");
  EXPECT_THAT(refusal_of(joined({{"RANK", "2"}}, plain)), HasSubstr("rank 2 of 2"));
  for (const auto& [name, value] : plain) {
    Variables without = plain;
    without.erase(name);
    EXPECT_EQ(launch_with(without), std::nullopt) << name;
  }
}

TEST(Launcher, OnSeveralHostsIsRefusedAtOnceWhereItSaysSo) {
  const auto refusal = [](const Variables& variables) -> std::string {
    try {
      expect_one_host(launch_with(variables).value(), "use one");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(plain), "");
  EXPECT_EQ(refusal(joined(torchrun, {{"LOCAL_WORLD_SIZE", "2"}})), "");
  EXPECT_EQ(refusal(joined(torchrun, {{"LOCAL_WORLD_SIZE", "1"}})),
            "torchrun has started 1 of 2 ranks on this host, but these ranks find each other only "
            "on one host: use one");
  EXPECT_THAT(refusal(joined(plain, {{"LOCAL_WORLD_SIZE", "1"}})), HasSubstr("1 of 2 ranks"));
  EXPECT_THAT(refusal(joined(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}})),
              HasSubstr("3 of 5 ranks"));
  EXPECT_THAT(refusal(joined(hydra, {{"MPI_LOCALNRANKS", "2"}})), HasSubstr("2 of 4 ranks"));
  // Several Slurm nodes may be on one host.
  EXPECT_EQ(refusal(joined(slurm, {{"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}})), "");
}

TEST(Launcher, IsNobodyInAnEmptyEnvironment) {
  EXPECT_EQ(launch_with({}), std::nullopt);
}

TEST(Launcher, OpenMpiNamesItsJob) {
  EXPECT_EQ(launch_with(open_mpi), (Launch{.launcher = "Open MPI's mpirun",
                                           .rank = 3,
                                           .size = 5,
                                           .job = "123_45",
                                           .mpi = mpi::Library::open_mpi}));
}

TEST(Launcher, MpichIsToldApartByTheProcessThatStartsItsRanks) {
  const auto launch = launch_with(hydra);
  ASSERT_TRUE(launch.has_value());
  EXPECT_EQ(launch->launcher, "MPICH's mpiexec");
  EXPECT_EQ(launch->rank, 1);
  EXPECT_EQ(launch->size, 4);
  EXPECT_THAT(launch->job, StartsWith("of-"));
  EXPECT_EQ(launch->mpi, mpi::Library::mpich);
}

TEST(Launcher, AStepOfSlurmCountsWithoutAnyMpi) {
  EXPECT_EQ(launch_with(slurm),
            (Launch{.launcher = "srun", .rank = 0, .size = 4, .job = "77.2", .mpi = {}}));
}

TEST(Launcher, WhatAnInteractiveShellOfSlurmStartsIsNoRank) {
  const Variables with_terminal = joined(slurm, {{"SLURM_PTY_PORT", "41000"}});
  EXPECT_TRUE(launch_with(with_terminal, "slurmstepd")) << "the program of the step itself";
  EXPECT_TRUE(launch_with(slurm, "bash")) << "a script";
  try {
    launch_with(with_terminal, "bash");
    ADD_FAILURE() << "it was not refused";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                AllOf(StartsWith("this shell is the first of 4 tasks of `srun --pty`"),
                      HasSubstr("`srun --overlap --ntasks=4 syncopate ...`")));
  }
  EXPECT_FALSE(launch_with({{"SLURM_PTY_PORT", "41000"}}, "bash"));
}

TEST(Launcher, UnderSlurmTheInterfaceTellsWhichLibraryComesTogether) {
  EXPECT_EQ(launch_with(joined(slurm, {{"PMIX_RANK", "0"}}))->mpi, mpi::Library::open_mpi);
  EXPECT_EQ(launch_with(joined(slurm, {{"PMI_RANK", "0"}}))->mpi, mpi::Library::mpich);
}

TEST(Launcher, TheBatchScriptOfSlurmStartsNothing) {
  Variables batch = slurm;
  batch.erase("SLURM_STEP_ID");
  EXPECT_EQ(launch_with(batch), std::nullopt);
}

TEST(Launcher, TheInnerOfTwoCounts) {
  EXPECT_EQ(launch_with(joined(open_mpi, slurm))->size, 5);
  const auto launch = launch_with(joined(hydra, slurm));
  EXPECT_EQ(launch->launcher, "MPICH's mpiexec");
  EXPECT_EQ(launch->rank, 1);
}

TEST(Launcher, OfOneProcessIsNone) {
  EXPECT_EQ(launch_with({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}),
            std::nullopt);
}

TEST(Launcher, IsRefusedWhereItContradictsItself) {
  EXPECT_THAT(refusal_of(joined({{"OMPI_COMM_WORLD_RANK", "5"}}, open_mpi)),
              HasSubstr("rank 5 of 5"));
  EXPECT_THAT(
      refusal_of(joined({{"OMPI_COMM_WORLD_RANK", "many"}}, open_mpi)),
      HasSubstr(
          "expected Open MPI's mpirun to set OMPI_COMM_WORLD_RANK to a number, found 'many'"));
  EXPECT_THAT(refusal_of({{"OMPI_COMM_WORLD_SIZE", "2"}}), HasSubstr("found ''"));
}

}  // namespace
}  // namespace syncopate
