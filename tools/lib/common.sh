# shellcheck shell=bash
# What every script of tools/ shares. Sourced, never run. Everything here talks on stderr, because
# stdout belongs to the program that is started in the end.

# shellcheck disable=SC2034  # Used by the scripts that source this one.
hearth_root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." && pwd)

# The private prefix: what the distribution's packages cannot give. Exported, so that CMake and
# programs started from here see the same folder. third_party/third_party.cmake repeats the rule.
HEARTH_DEPS=${HEARTH_DEPS:-${XDG_CACHE_HOME:-${HOME:-$(cd ~ && pwd)}/.cache}/hearth/deps}
export HEARTH_DEPS

say() { printf 'hearth: %s\n' "$*" >&2; }

die() {
  say "$*"
  exit 1
}

is_root() { [[ $EUID -eq 0 ]]; }

have() { type -P -- "$1" >/dev/null; }

# hold_lock FILE: waits until no other process holds FILE, then holds it until release_lock or until
# this process ends, however it ends. Other clones and other runs on this machine wait meanwhile.
hold_lock() {
  mkdir -p -- "$(dirname -- "$1")"
  exec {lock_fd}>>"$1"
  if ! flock --nonblock "$lock_fd"; then
    say "waiting for another run that is at work on this machine"
    flock "$lock_fd"
  fi
}

release_lock() { exec {lock_fd}>&-; }
