# What the scripts of this folder share. Sourced, with the script's own arguments, before anything
# else: goes to the root of the repository and answers --help with the script's opening comment.

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

# Asked for anywhere before a lone --, which begins the arguments of another program.
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

# bootstrap [OPTION...]: installs what is missing, unless told that everything is in place.
bootstrap() { [ -n "${SYNCOPATE_NO_BOOTSTRAP:-}" ] || script/bootstrap "$@"; }

# read_torch [ARGUMENT...]: sets `torch` by the --torch with which the arguments may begin, and
# `torch_words` to the number of arguments that this takes.
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

# install_pip_torch: installs PyPI's torch, where it is missing, into a virtual environment below
# build, unless told that everything is in place, and what scripts in tests use besides. build/torch-pip
# leads to its libtorch.
install_pip_torch() {
  local packages=(torch==2.13.0 numpy lightning==2.6.6 accelerate==1.15.0 tensorboard) venv=build/torch-pip-venv
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

# available_memory: kilobytes that the machine has left, or fewer where a container may take no more.
available_memory() {
  {
    awk '/^MemAvailable:/ { print $2 }' /proc/meminfo
    # Of either version of cgroups; without a limit the first says "max".
    cat "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/memory.max" \
      /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null | awk '/^[0-9]+$/ { printf "%.0f\n", $1 / 1024 }'
  } | sort -n | head -n 1
}

# compilers_for KILOBYTES PROCESSORS: how many compilers run at a time. The largest sources take 2 GB each.
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

# place_ccache: ccache ends each compilation with an error where it cannot write, as in a home that is
# read-only or does not exist.
place_ccache() {
  local folder
  if folder=$(ccache --get-config cache_dir 2>/dev/null) && mkdir -p "$folder/tmp" 2>/dev/null &&
    [ -w "$folder/tmp" ]; then
    return 0
  fi
  export CCACHE_DIR=$PWD/build/ccache
}

# build_programs TARGET...: builds these in build/release, without the libraries that only tests and benchmarks need.
build_programs() { build_with "-DSYNCOPATE_TESTS=OFF -DSYNCOPATE_BENCHMARKS=OFF" release "$@"; }

# build PRESET [TARGET...]: configures build/PRESET where CMake files changed, and builds it.
build() { build_with "" "$@"; }

# build_with OPTIONS PRESET [TARGET...]: OPTIONS are those of CMake beside the preset's.
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
  cmake --build "build/$preset" --parallel "$(compilers_for "$(available_memory)" "$(nproc)")" ${1:+--target "$@"}
}

# run_tests PRESET [CTEST_OPTION...]: two tests more at a time than there are processors, since many of them mostly wait; one
# that keeps several processes busy counts as two. One more takes longer, since processes that poll take turns, and one less
# leaves processors idle. A test that hangs ends after the time that its CMakeLists.txt gives it, or after five minutes.
# Kernels of other hosts may place a program where a sanitizer's shadow memory has to be: setarch switches that randomisation
# off, where a container lets it.
run_tests() {
  local fixed=()
  case $1 in
    asan* | tsan) ! setarch --addr-no-randomize true 2>/dev/null || fixed=(setarch --addr-no-randomize) ;;
  esac
  "${fixed[@]}" ctest --preset "$1" --parallel "$(($(nproc) + 2))" --timeout 300 "${@:2}"
}

log_of() {
  printf 'build/%s/configure.log' "$1"
}
