#!/usr/bin/env python3
"""A folder includes or imports only folders below it, only certain folders use an outside library, and each header compiles by
itself.

The order of folders is that of the architecture page: a lower folder does not know the folders above it.
"""
import pathlib
import re

import source

# From low to high. Each folder of src/ may include itself and the folders before it.
SRC = ["base", "config", "wire", "telemetry", "data", "kernels", "codec", "optim", "device", "transport", "runtime",
       "pacer", "membership", "collective", "server", "scheme", "spec", "report", "checkpoint", "train"]

# Folders on the same level: none of them includes another.
BESIDE_EACH_OTHER = [{"collective", "server", "membership", "pacer"}]

# The leaf folders of job/ above the training code, low to high.
JOB = ["job/members", "job/launch", "job/host", "job/program", "job/front", "job/abi", "job/roles"]

# The leaf folders of cli/, and those of cli/ that each may include besides itself. A command that needs
# libtorch is in cli/compute; "cli" is the command line itself, with the two mains.
CLI = {
    "cli/view": [],
    "cli/bench": ["cli/view"],
    "cli/doctor": ["cli/view"],
    "cli/compare": ["cli/view"],
    "cli/report": ["cli/view", "cli/compare"],
    "cli/compute": ["cli/view", "cli/bench", "cli/doctor"],
    "cli": ["cli/view", "cli/bench", "cli/doctor", "cli/compare", "cli/compute", "cli/report"],
    "cli/commands": ["cli/view", "cli/bench", "cli/doctor", "cli/compare", "cli/report", "cli"],
}

# The folders outside the lower part of src/ that the leaf folders of cli/ may include. Only commands that
# compute, and the mains, may start a job with libtorch.
BELOW_CLI = {leaf: ["job/members", "job/launch"] for leaf in CLI}
BELOW_CLI["cli/compute"] = BELOW_CLI["cli"] = ["torch", *JOB]

# The folders of the project that the folders outside SRC may include. Only tests, benchmarks and
# WORLD_COMPOSER may include the simulator: other code must not know in which world it runs.
BESIDE_SRC = {
    "torch": SRC + ["torch"],  # and <syncopate/torch/flat.hpp>
    "job/members": SRC + JOB[:1],
    "job/launch": SRC + JOB[:2],
    "job/host": SRC + JOB[:3],
    "job/program": SRC + JOB[:4],
    "job/front": SRC + JOB[:5],
    "job/abi": SRC + JOB[:6],
    "job/roles": SRC + ["torch", *JOB[:3], "job/roles"],
    "include": [],  # installed headers include only installed headers, as <syncopate/…>
    "examples": [],
    **{leaf: [*SRC, *BELOW_CLI[leaf], *below, leaf] for leaf, below in CLI.items()},
    "sim": [*SRC[: SRC.index("runtime") + 1], "sim"],
    "sim/job": [*SRC, "job/members", "sim", "sim/job"],
    "bench": SRC + ["torch", *CLI, "sim", "bench"],
    "tests": SRC + ["torch", *JOB, *CLI, "sim", "sim/job", "tests"],
}

# The folder that sets up jobs, in the real world or in the simulated one.
WORLD_COMPOSER = "src/job/roles"

# Folders that may include a library's headers, by the beginning of the header's name.
HOMES = {
    "torch/": ["torch", "include", "examples"],
    "ATen/": ["torch"],
    "c10/": ["torch"],
    "asio": ["transport"],
    "mpi.h": ["transport"],
    "boost/context": ["sim"],
    "hwy/": ["codec", "kernels"],
    "spdlog/": ["base"],
    "CLI/": ["cli", "cli/commands"],
    "boost/crc.hpp": ["report"],
    "libexif/": ["data"],
    "zlib.h": ["data", "checkpoint", "spec", "report"],
    "toml++/": ["config"],
    "google/protobuf/": ["wire"],
    "gtest/": ["tests"],
    "gmock/": ["tests"],
}

# For each backend of the transport, the folders of transport/ that it may include.
BACKENDS_BELOW = {"tcp": ["mail", "shm"], "mpi": ["mail", "shm"]}

# Only the folders that set up a world may include a backend of the transport.
COMPOSERS = {*JOB[1:], *CLI, "bench", "tests"}

# The folders of the Python package, from low to high. Each may import itself and the folders before it.
ROOMS = ["core", "training", "distributed", "integrations"]
PACKAGE = ("python", "syncopate_torch")

_IMPORT = re.compile(r"^[ \t]*(?:from|import) syncopate_torch\b\.?(\w*)", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">]', re.MULTILINE)


def folder_of(path):
    """Returns the folder of `path`: wire for src/wire/x.hpp, job/abi for src/job/abi/x.hpp, cli for cli/x.hpp."""
    parts = path.parts[1:] if path.parts[0] == "src" else path.parts
    leaf = "/".join(parts[:2])
    return leaf if len(parts) > 2 and (parts[0] in ("job", "cli") or leaf in BESIDE_SRC) else parts[0]


def allowed(folder):
    if folder not in SRC:
        return BESIDE_SRC.get(folder)
    beside = set().union(*(group for group in BESIDE_EACH_OTHER if folder in group)) - {folder}
    return [known for known in SRC[: SRC.index(folder) + 1] if known not in beside]


def composes(path, target):
    return target in ("sim", "sim/job") and path.parent.as_posix() == WORLD_COMPOSER


def own_include(root, path, name):
    """Returns the complaint about an include of one of the project's own headers, or None."""
    folder, target = folder_of(path), folder_of(pathlib.PurePosixPath(name))
    if target in SRC + list(BESIDE_SRC):
        known = allowed(folder)
        if known is not None and target not in known and not composes(path, target):
            return f"{folder} must not include {target}"
        backend = re.match(r"transport/(\w+)/", name)
        home = re.search(r"transport/(\w+)/", path.as_posix())
        inside = backend and home and backend[1] in [home[1], *BACKENDS_BELOW.get(home[1], [])]
        if backend and not inside and folder not in COMPOSERS:
            return f"only {', '.join(sorted(COMPOSERS))} may choose a backend of the transport"
    if folder == "examples" and (root / path.parent / name).is_file():
        return None  # each example is a project of its own
    made = [name, name + ".in"]  # a header, or the template from which CMake makes it
    if not name.endswith(".pb.h") and not any(
        (root / base / file).is_file() for base in ("src", "") for file in made
    ):
        return f'"{name}" is not a file under src/ or the root'
    return None


def outside_include(path, name):
    """Returns the complaint about an include of a library's header, or None."""
    for prefix, homes in HOMES.items():
        if name.startswith(prefix) and folder_of(path) not in homes + ["tests", "bench"]:
            return f"<{name}> belongs in {' and '.join(homes)} alone"
    if folder_of(path) == "tests" and name.startswith(("torch/", "ATen/", "c10/")):
        if path.parts[1] not in ("torch", "extension"):
            return f"<{name}> belongs in torch, tests/torch and tests/extension alone"
    return None


def own_header_first(root, path, text):
    """Returns the complaint about a source that does not include its own header first, or None.

    A header that comes first compiles only if it includes what it needs. CMakeLists.txt compiles
    headers without a source by themselves.
    """
    header = path.with_suffix(".hpp")
    first = _INCLUDE.search(text)
    if path.suffix == ".cpp" and (root / header).is_file() and (not first or not header.as_posix().endswith(first[2])):
        return f'include "{header.as_posix().removeprefix("src/")}" first'
    return None


def check_rooms(root):
    for path in source.files(root, {".py"}):
        if path.parts[:2] != PACKAGE or len(path.parts) == 3:
            continue
        room, text = path.parts[2], source.read(root, path)
        known = ROOMS[: ROOMS.index(room) + 1] if room in ROOMS else []
        for match in _IMPORT.finditer(text):
            if match[1] not in known:
                line = source.line_of(text, match.start(1))
                yield f"{path}:{line}: {room} must not import syncopate_torch.{match[1]}"


def check(root):
    yield from check_rooms(root)
    for path in source.files(root, source.CPP):
        text = source.read(root, path)
        if complaint := own_header_first(root, path, text):
            yield f"{path}:1: {complaint}"
        for match in _INCLUDE.finditer(text):
            quote, name = match.groups()
            complaint = own_include(root, path, name) if quote == '"' else outside_include(path, name)
            if complaint:
                yield f"{path}:{source.line_of(text, match.start(1))}: {complaint}"


if __name__ == "__main__":
    source.main(__doc__, check)
