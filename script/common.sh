# Functions that the scripts of this folder share. Each script sources this file first, with its own
# arguments: it changes to the root of the repository and prints the script's opening comment for --help.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }

# die STATUS MESSAGE...
die() {
  local status=$1
  shift
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit "$status"
}

help() { sed -n '2,/^$/s/^# \{0,1\}//p' "script/$(basename "$0")"; }

# --help counts anywhere before a lone --, which begins the arguments of another program.
for argument in "$@"; do
  case $argument in
    --) break ;;
    -h | --help)
      help
      exit 0
      ;;
  esac
done
unset argument

# bootstrap [OPTION...]: installs missing packages, unless SYNCOPATE_NO_BOOTSTRAP is set.
bootstrap() { [ -n "${SYNCOPATE_NO_BOOTSTRAP:-}" ] || script/bootstrap "$@"; }

# read_torch [ARGUMENT...]: sets `torch` to the value of --torch, if the arguments begin with that option,
# and `torch_words` to the number of arguments that the option takes.
read_torch() {
  torch=debian
  torch_words=0
  case ${1:-} in
    --torch=*) torch=${1#*=} torch_words=1 ;;
    --torch) torch=${2:-} torch_words=2 ;;
  esac
  case $torch in
    debian | pip) ;;
    *) die 2 "--torch '$torch': expected debian or pip" ;;
  esac
}

# install_pip_torch: installs PyPI's torch, and other packages that scripts in tests use, into a virtual
# environment in build, unless they are there already or SYNCOPATE_NO_BOOTSTRAP is set. The link
# build/torch-pip leads to the torch package, which contains libtorch.
install_pip_torch() {
  local packages=(torch==2.13.0 numpy lightning==2.6.6 accelerate==1.15.0 tensorboard "ray[train]==2.60.0"
    kubernetes-validate==1.37.0 kubeflow-trainer-api==2.3.0) venv=build/torch-pip-venv
  [ -z "${SYNCOPATE_NO_BOOTSTRAP:-}" ] || return 0
  [ ! -e build/torch-pip/lib/libtorch.so ] || ! grep -qsxF "${packages[*]}" "$venv/installed" || return 0
  say "install ${packages[*]} from PyPI into $venv"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" --quiet --disable-pip-version-check install "${packages[@]}"
  ln -sfn "$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch" \
    build/torch-pip
  echo "${packages[*]}" >"$venv/installed"
}

# available_memory: prints the available memory of the machine in kilobytes, or the container's limit if that is less.
available_memory() {
  {
    awk '/^MemAvailable:/ { print $2 }' /proc/meminfo
    # The limits of cgroups, version 2 and version 1; without a limit version 2 says "max".
    cat "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/memory.max" \
      /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null | awk '/^[0-9]+$/ { printf "%.0f\n", $1 / 1024 }'
  } | sort -n | head -n 1
}

# compilers_for KILOBYTES PROCESSORS: prints how many compilers may run at a time. The largest sources take 2 GB each.
compilers_for() {
  local fitting=$(($1 / 2000000)) most=$(($2 + 1))
  if [ "$fitting" -lt 1 ]; then
    echo 1
  elif [ "$fitting" -lt "$most" ]; then
    echo "$fitting"
  else
    echo "$most"
  fi
}

# place_ccache: moves ccache's folder into build if ccache cannot write to its own, as in a home that is
# read-only or does not exist: it would end each compilation with an error.
place_ccache() {
  local folder
  if folder=$(ccache --get-config cache_dir 2>/dev/null) && mkdir -p "$folder/tmp" 2>/dev/null &&
    [ -w "$folder/tmp" ]; then
    return 0
  fi
  export CCACHE_DIR=$PWD/build/ccache
}

# build_programs TARGET...: builds these targets in build/release, without the libraries that only tests and benchmarks need.
build_programs() { build_with "-DSYNCOPATE_TESTS=OFF -DSYNCOPATE_BENCHMARKS=OFF" release "$@"; }

# build PRESET [TARGET...]: configures and builds build/PRESET.
build() { build_with "" "$@"; }

# build_with OPTIONS PRESET [TARGET...]: does the same with OPTIONS for CMake in addition to the preset's. The variable
# `ninja_options` has options for Ninja.
build_with() {
  local options=$1 preset=$2
  shift 2
  mkdir -p "build/$preset" 2>/dev/null && [ -w "build/$preset" ] ||
    die 2 "cannot write to $PWD/build/$preset as user $(id -un 2>/dev/null || true): clone the repository as this user, or own the clone"
  place_ccache
  say "build $preset"
  # shellcheck disable=SC2086
  cmake --preset "$preset" $options >"$(log_of "$preset")" || {
    cat "$(log_of "$preset")" >&2
    return 1
  }
  # shellcheck disable=SC2086
  cmake --build "build/$preset" --parallel "$(compilers_for "$(available_memory)" "$(nproc)")" ${1:+--target "$@"} -- ${ninja_options:-}
}

# at_fixed_addresses COMMAND...: runs a command without the randomisation of addresses, if the container allows that: some
# kernels may place a program at the addresses of a sanitizer's shadow memory.
at_fixed_addresses() {
  local fixed=()
  ! setarch --addr-no-randomize true 2>/dev/null || fixed=(setarch --addr-no-randomize)
  "${fixed[@]}" "$@"
}

# run_tests PRESET [CTEST_OPTION...]: runs tests, two more at a time than the machine has processors, since many of them mostly
# wait; a test that keeps several processes busy counts as two. With one more the tests take longer, since processes that poll
# take turns; with one less processors are idle. A test that hangs ends after the time limit in its CMakeLists.txt, by default
# five minutes.
run_tests() {
  local run=(ctest --preset "$1" --parallel "$(($(nproc) + 2))" --timeout 300 "${@:2}")
  case $1 in
    asan* | tsan) at_fixed_addresses "${run[@]}" ;;
    *) "${run[@]}" ;;
  esac
}

log_of() {
  printf 'build/%s/configure.log' "$1"
}
