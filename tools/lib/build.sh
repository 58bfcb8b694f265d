# shellcheck shell=bash
# Configuring and building, quietly. Needs common.sh.
: "${hearth_root:?}"

# build PRESET TARGET...: brings build/PRESET up to date. One progress line while it works; on
# failure what CMake or the compiler said, and the end of the process.
build() {
  local preset=$1 folder=$hearth_root/build/$1
  local log=$folder.log fresh=()
  shift
  hold_lock "$hearth_root/build/.$preset.lock"
  if moved "$folder"; then fresh=(--fresh); fi
  if [[ ! -e $folder/build.ninja || ${#fresh[@]} -gt 0 ]]; then
    say "configuring $preset"
    if ! (cd "$hearth_root" && cmake "${fresh[@]}" --preset "$preset") >"$log" 2>&1 </dev/null; then
      cat "$log" >&2
      die "configuring failed"
    fi
    tell_left_out "$log"
  fi
  if ! NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" \
    "$@" 2>&1 </dev/null | tee "$log" | progress; then
    grep -vE '^(\[[0-9]+/[0-9]+\] |ninja: Entering|-- )' "$log" >&2
    die "the build failed"
  fi
  tell_left_out "$log"
  release_lock
}

# moved FOLDER: whether FOLDER was configured for a source tree at another place.
moved() {
  [[ -e $1/CMakeCache.txt ]] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$hearth_root" "$1/CMakeCache.txt"
}

# What this machine's tools cannot do is worth a line; the rest of CMake's talk is not.
tell_left_out() { sed -n 's/^-- \(.*left out.*\)/hearth: \1/p' "$1" >&2; }

# Turns ninja's lines into one that rewrites itself on a terminal, and into a single one elsewhere.
progress() {
  local line shown=false
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+/[0-9]+)\]\  && $line != *"Re-checking globbed"* ]] || continue
    if [[ -t 2 ]]; then
      printf '\rhearth: building %s ' "${BASH_REMATCH[1]}" >&2
    elif ! $shown; then
      say "building"
    fi
    shown=true
  done
  if $shown && [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
}
