// Goal:   the program of docs/guides/cpp.md, "Your own loop", compiles and trains.
// Method: CMake extracts the program from the page; it runs here as a job of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

int own_loop_main();  // its `main`

namespace syncopate::test {
namespace {

TEST(OwnLoopSnippetTest, TrainsByItself) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(own_loop_main(), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::HasSubstr("worker 0 of 1: loss 0.0"));
}

}  // namespace
}  // namespace syncopate::test
