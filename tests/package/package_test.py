#!/usr/bin/python3
"""Goal:   another project can use Syncopate from an installation, from a build tree or as part of its own build, and can
        build and run the examples; the headers compile as C++17 without warnings, and the library exports only the C
        interface.
Method: the test installs Syncopate into a temporary folder, and configures, builds and runs each example as its README
        says, but without optimization, which would take half of the time.
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["SYNCOPATE_SOURCE"])
BUILD = pathlib.Path(os.environ["SYNCOPATE_BUILD"])
LIBTORCH = os.environ["SYNCOPATE_LIBTORCH"]
CMAKE = os.environ["CMAKE_COMMAND"]
CLUSTER = SOURCE / "clusters/mixed.toml"
CIFAR = SOURCE.parent / "shared/data/cifar-10-batches-bin"
LIMIT = 300  # seconds for one command
# With these settings ccache finds what another run has compiled in another temporary folder.
CACHE = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": tempfile.gettempdir(), "CCACHE_NOHASHDIR": "1",
         "CCACHE_DEPEND": "1"} if shutil.which("ccache") else {}
ENVIRONMENT = {**os.environ, **CACHE}

sys.path.insert(0, str(SOURCE / "tests/process"))
import mnist_files  # noqa: E402  (beside the tests of processes)

# A program with the five calls, so that the compiler instantiates the templates.
TORCH_CONSUMER = """#include <torch/torch.h>

#include <syncopate/torch.hpp>

namespace {

struct Points : torch::data::Dataset<Points> {
  torch::data::Example<> get(std::size_t) override { return {torch::ones({1}), torch::ones({1})}; }
  torch::optional<std::size_t> size() const override { return 8; }
};

}  // namespace

int main() {
  syncopate::set_log([](syncopate_log_level, const std::string&) {});
  syncopate::set_interruption([] { return false; });
  auto job = syncopate::init();
  auto data = job.partition_dataset(Points().map(torch::data::transforms::Stack<>()), 4);
  torch::nn::Linear net(1, 1);
  net->to(job.device());
  job.broadcast_parameters(*net);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  syncopate::DistributedOptimizer optimizer(job, *net, sgd);
  for (auto& batch : *data) {
    optimizer.zero_grad();
    torch::mse_loss(net->forward(batch.data), batch.target).backward();
    optimizer.step(batch.data.size(0));
  }
}
"""


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=LIMIT, check=False, **{"env": ENVIRONMENT, **options})
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: exit status {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="syncopate-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", cls.prefix)

    def configure(self, source, name, *, prefix=None):
        place = self.folder / name
        paths = [str(prefix or self.prefix), *([LIBTORCH] if LIBTORCH else [])]
        run(CMAKE, "-S", source, "-B", place, "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O0",
            f"-DCMAKE_PREFIX_PATH={';'.join(paths)}")
        return place

    def configure_and_build(self, source, name, *, prefix=None):
        place = self.configure(source, name, prefix=prefix)
        run(CMAKE, "--build", place)
        return place


class Package(Installed):
    def test_the_build_tree(self):
        built = self.configure_and_build(SOURCE / "examples/allreduce", "of-build-tree", prefix=BUILD / "cmake")
        self.assertIn("worker 0 of 1: every value is 1", run(built / "allreduce_c"))

    def test_the_build_tree_with_libtorch(self):
        self.configure(SOURCE / "examples/dist_mnist", "of-build-tree-with-libtorch", prefix=BUILD / "cmake")

    def test_as_a_part_of_another_build(self):
        """The project links both libraries in a directory above Syncopate's, which is the one that finds libtorch."""
        project = self.folder / "whole"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.25)
project(whole CXX)
include(FetchContent)
set(SYNCOPATE_TORCH ON)
set(SYNCOPATE_LIBTORCH "{LIBTORCH}" CACHE PATH "")
FetchContent_Declare(Syncopate SOURCE_DIR "{SOURCE}")
FetchContent_MakeAvailable(Syncopate)
add_executable(with_core "{SOURCE}/examples/allreduce/allreduce.cpp")
target_link_libraries(with_core PRIVATE Syncopate::core)
add_executable(with_torch "{SOURCE}/examples/dist_mnist/dist_mnist.cpp")
target_link_libraries(with_torch PRIVATE Syncopate::torch)
""", encoding="utf-8")
        self.configure(project, "whole-build")

    def test_the_headers_are_quiet_cpp17(self):
        compiler = shutil.which("clang++-14")
        if compiler is None:
            self.skipTest("clang++-14 is missing")
        noise = ["c++98-compat", "c++98-compat-pedantic", "padded", "weak-vtables", "exit-time-destructors"]
        consumer = self.folder / "consumer.cpp"
        consumer.write_text("#include <syncopate.h>\n#include <syncopate/training.hpp>\n"
                            "int main() { syncopate::Job job; std::vector<float> v(3); job.allreduce(v);\n"
                            "  return job.allgather(v).size() == 3 && job.allreduce_async(v).done() ? 0 : 1; }\n")
        program = self.folder / "consumer"
        run(compiler, "-std=c++17", "-Weverything", "-Werror", *(f"-Wno-{name}" for name in noise),
            f"-I{self.prefix}/include", consumer, f"-L{self.prefix}/lib", "-lsyncopate",
            f"-Wl,-rpath,{self.prefix}/lib", "-o", program)
        run(program)
        torch = ["-isystem", f"{LIBTORCH}/include", "-isystem",
                 f"{LIBTORCH}/include/torch/csrc/api/include"] if LIBTORCH else [
                     "-isystem", "/usr/include/torch/csrc/api/include"]
        consumer.write_text(TORCH_CONSUMER, encoding="utf-8")
        run(compiler, *([] if LIBTORCH else ["-std=c++17"]), *(["-std=c++20"] if LIBTORCH else []), "-Weverything",
            "-Werror", *(f"-Wno-{name}" for name in noise), f"-I{self.prefix}/include", *torch, "-fsyntax-only", consumer)
        c_file = self.folder / "consumer.c"
        c_file.write_text("#include <syncopate.h>\nint main(void) { return syncopate_version() == 0; }\n")
        run("clang-14", "-std=c99", "-pedantic", "-Weverything", "-Werror", "-fsyntax-only",
            f"-I{self.prefix}/include", c_file)

    def test_the_library_shows_the_c_interface_alone(self):
        header = (self.prefix / "include/syncopate.h").read_text(encoding="utf-8")
        declared = set(re.findall(r"SYNCOPATE_API [\w *]*?(syncopate_\w+)\(", header))
        symbols = run("nm", "--dynamic", "--defined-only", self.prefix / "lib/libsyncopate.so")
        self.assertEqual({line.split()[-1].split("@")[0] for line in symbols.splitlines()}, declared)
        self.assertGreater(len(declared), 25)
        headers = "".join(path.read_text(encoding="utf-8") for path in (self.prefix / "include").rglob("*.hpp"))
        self.assertEqual(re.findall(r"#include\s+.*(?:google|asio|fmt|spdlog|base/|job/).*", headers), [])

    def test_a_version_that_is_not_there(self):
        project = self.folder / "later"
        project.mkdir()
        (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.18)\nproject(later CXX)\n"
                                                "find_package(Syncopate 99 REQUIRED)\n")
        with self.assertRaisesRegex(AssertionError, r"(?s)Syncopate.*99"):
            self.configure_and_build(project, "later-build")


class Examples(Installed):
    """ctest runs each case as a separate test: an example with libtorch takes 15 s to compile."""

    def example(self, name):
        copy = self.folder / f"{name}-sources"  # below ccache's base directory, so that it uses a relative path
        shutil.copytree(SOURCE / "examples" / name, copy)
        return self.configure_and_build(copy, name)

    def start(self, *words):
        """Runs `syncopate run` of the installation and returns its output."""
        return run(self.prefix / "bin/syncopate", "run", *words, cwd=self.folder)

    def lines(self, output, pattern):
        found = re.findall(pattern, output, re.MULTILINE)
        self.assertTrue(found, output)
        return sorted(found)

    def test_allreduce_in_c_and_cpp(self):
        built = self.example("allreduce")
        output = self.start("-n", 3, "--", built / "allreduce_c", 1000)
        self.assertEqual(self.lines(output, r"^\[worker \d\] (worker \d of 3: every value is \S+)$"),
                         [f"worker {rank} of 3: every value is 6" for rank in range(3)])
        output = self.start("-n", 3, "--", built / "allreduce_cpp")
        self.assertEqual(self.lines(output, r"worker \d of 3: (sum .*)$"),
                         ["sum 6, from worker 0 41, 3 ranks, the last 2"] * 3)

    def test_dist_mnist(self):
        built = self.example("dist_mnist")
        output = self.start("-n", 2, "--", built / "dist_mnist", mnist_files.folder(), 1, 16384)
        self.assertEqual(len(set(self.lines(output, r"of 2: sum of weights (\S+)$"))), 1)
        self.assertGreater(float(self.lines(output, r"epoch 1: accuracy (\S+)$")[0]), 0.5)
        alone = run(built / "dist_mnist", mnist_files.folder(), 1, 640, cwd=self.folder)
        self.assertIn("worker 0 of 1: ", alone)
        for arguments, line in [
                ((mnist_files.folder(), "abc"), "EPOCHS: expected a whole number from 1 on, found 'abc'"),
                ((mnist_files.folder(), 1, "-5"), "IMAGES: expected a whole number from 1 on, found '-5'"),
                (("nowhere",), "FOLDER: expected the four unpacked files of MNIST, found no "
                               "nowhere/train-images-idx3-ubyte")]:
            refused = subprocess.run([built / "dist_mnist", *map(str, arguments)], capture_output=True, text=True,
                                     timeout=LIMIT, check=False, cwd=self.folder)
            self.assertEqual((refused.returncode, refused.stdout, refused.stderr), (2, "", f"dist_mnist: {line}\n"))

    def test_cifar10_resnet9(self):
        built = self.example("cifar10_resnet9")
        real = CIFAR.is_dir()
        images = CIFAR if real else self.coloured_images()
        epochs = 2 if real else 10
        output = self.start("-n", 2, "--", built / "cifar10_resnet9", images, epochs)
        accuracy = float(self.lines(output, rf"epoch {epochs}: loss \S+, accuracy (\S+), \S+ s$")[0])
        self.assertGreater(accuracy, 0.25 if real else 0.5)

    def coloured_images(self):
        """Files of CIFAR's format whose images have the colour of their label."""
        folder = self.folder / "cifar"
        folder.mkdir()
        colours = [(255 * (label & 1), 255 * (label >> 1 & 1), 255 * (label >> 2 & 1)) for label in range(8)]
        colours += [(128, 128, 0), (0, 128, 128)]
        records = b"".join(struct.pack("B", label) + b"".join(bytes([value]) * 1024 for value in colour)
                           for label, colour in enumerate(colours)) * 26
        for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
            (folder / name).write_bytes(records)
        return folder

    def test_parameter_server_asgd(self):
        built = self.example("parameter_server_asgd")
        output = self.start("-n", 2, "--", built / "parameter_server_asgd", 10)
        for accuracy in self.lines(output, r"worker \d of 2: accuracy (\S+)$"):
            self.assertGreater(float(accuracy), 0.9)

    def test_esync_unequal(self):
        built = self.example("esync_unequal")
        output = self.start("--cluster", CLUSTER, "--", built / "esync_unequal", 3)
        steps = [int(of_worker) for of_worker in self.lines(output, r"steps of all workers: (.*)$")[0].split()]
        self.assertGreater(steps[0], 2 * steps[3])  # 4 in the cluster file
        self.assertEqual(len(set(self.lines(output, r"worker \d: \d+ steps, (loss \S+)$"))), 1)

    def test_your_own_scheme(self):
        built = self.example("your_own_scheme")
        output = self.start("-n", 3, "--", built / "your_own_scheme", 400)
        together = [float(loss) for loss in self.lines(output, r"worker \d of 3: loss (\S+)$")]
        alone = float(self.lines(run(built / "your_own_scheme", 0), r"loss (\S+)$")[0])
        self.assertEqual(len(together), 3)
        self.assertLess(max(together), alone / 2)
        self.assertLess(max(together), 1.05 * min(together))


if __name__ == "__main__":
    unittest.main()
