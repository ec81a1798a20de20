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

# build PRESET [TARGET...]: configures build/PRESET where CMake files changed, and builds it.
build() {
  local preset=$1
  shift
  say "build $preset"
  cmake --preset "$preset" >"$(log_of "$preset")" || {
    cat "$(log_of "$preset")" >&2
    return 1
  }
  cmake --build "build/$preset" ${1:+--target "$@"}
}

log_of() {
  mkdir -p "build/$1"
  printf 'build/%s/configure.log' "$1"
}
