# shellcheck shell=bash
# Configuring and building, with progress. Needs common.sh.
: "${hearth_root:?}"

# build PRESET TARGET...: brings build/PRESET up to date and shows how far it is. Where only `hearth`
# was ever asked for, the tests are not even configured. On failure it prints what CMake or the
# compiler said and ends the process.
build() {
  local preset=$1 folder=$hearth_root/build/$1 testing=ON
  local log=$folder.log fresh=() ninja
  shift
  hold_lock "$hearth_root/build/.$preset.lock"
  if moved "$folder"; then fresh=(--fresh); fi
  if [[ $1 == hearth ]] && ! has_tests "$folder"; then testing=OFF; fi
  if [[ ! -e $folder/build.ninja || ${#fresh[@]} -gt 0 ]] ||
    { [[ $testing == ON ]] && ! has_tests "$folder"; }; then
    say "configuring $preset"
    if ! (cd "$hearth_root" && cmake "${fresh[@]}" --preset "$preset" -DBUILD_TESTING=$testing) \
      >"$log" 2>&1 </dev/null; then
      cat "$log" >&2
      die "configuring failed"
    fi
    tell_left_out "$log"
  fi
  ninja=(ninja -C "$folder" -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}")
  export NINJA_STATUS='[%f/%t] '
  if ! "${ninja[@]}" "$@" 2>&1 </dev/null | tee "$log" |
    build_progress "$("${ninja[@]}" -t commands "$@" 2>/dev/null </dev/null | mean_weight)"; then
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

# has_tests FOLDER: whether FOLDER was configured with the tests.
has_tests() { grep -qxF 'BUILD_TESTING:BOOL=ON' "$1/CMakeCache.txt" 2>/dev/null; }

# Shows what this machine's tools cannot do, and hides the rest of CMake's output.
tell_left_out() { sed -n 's/^-- \(.*left out.*\)/hearth: \1/p' "$1" >&2; }

# weigh TEXT: sets weight to roughly how long a build step takes, in tenths of a second on one core.
# The text is the step's command, or the line that ninja prints for it. A link's command names
# object files as well, so only commands that compile (-c) count as such.
weigh() {
  case $1 in
    *"Re-checking globbed"*) weight=0 ;;
    *"Building "*/Unity/* | *" -c "*/Unity/*) weight=160 ;;
    *"Building "* | *" -c "*) weight=40 ;;
    *) weight=2 ;;
  esac
}

# Reads commands, one per line, and prints the mean of their weights, in hundredths.
mean_weight() {
  local line weight sum=0 count=0
  while IFS= read -r line; do
    weigh "$line"
    sum=$((sum + weight))
    count=$((count + 1))
  done
  echo $((count > 0 ? 100 * sum / count : 0))
}

# duration SECONDS: "2 min 10 s", rounded to ten seconds from a minute on.
duration() {
  if [[ $1 -lt 60 ]]; then
    echo "$1 s"
  else
    local rounded=$((($1 + 5) / 10 * 10))
    echo "$((rounded / 60)) min $((rounded % 60)) s"
  fi
}

# build_progress MEAN_WEIGHT: turns ninja's lines into one line that rewrites itself on a terminal,
# and into a line every 20 seconds elsewhere.
build_progress() {
  local mean=$1 total done=0 line weight text begin=$SECONDS shown=-1 passed
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]] || continue
    weigh "$line"
    [[ $weight -gt 0 ]] || continue
    done=$((done + weight))
    total=$((mean * BASH_REMATCH[2] / 100))
    text="building: ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps"
    passed=$((SECONDS - begin))
    if [[ $passed -ge 10 && $done -lt $total ]]; then
      text+=", about $(duration $((passed * (total - done) / done))) left"
    fi
    if [[ -t 2 ]]; then
      printf '\r\033[Khearth: %s' "$text" >&2
    elif [[ $shown -lt 0 || $((passed - shown)) -ge 20 ]]; then
      say "$text"
    else
      continue
    fi
    shown=$passed
  done
  if [[ $shown -ge 0 && -t 2 ]]; then printf '\r\033[K' >&2; fi
}
