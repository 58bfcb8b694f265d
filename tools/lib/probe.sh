# shellcheck shell=bash
# Finds out which driver programs run on. Needs common.sh, packages.sh and driver.sh.
: "${hearth_root:?}"

# probe_passes COMMAND...: runs the probe out of sight; a crash or a minute's silence is a failure.
# A driver that forgets to free something at exit is not.
probe_passes() {
  (
    ulimit -c 0
    export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
    timeout -k 5 60 "$@"
  ) >/dev/null 2>&1 </dev/null
}

# prefetch_lavapipe: on a machine without any driver lavapipe will be wanted, so it is fetched while
# the build has the cores. choose_driver waits for it, and fetches it itself if this failed.
prefetch_lavapipe() {
  if [[ -z $(driver_verdict) && ! -x $HEARTH_DEPS/bin/lvp-run ]] && ! has_driver; then
    "$hearth_root/tools/setup" --lavapipe >/dev/null 2>&1 </dev/null &
    lavapipe_fetch=$!
  fi
}

# choose_driver PROBE: finds out once per set of drivers whether the system's works, and fetches
# lavapipe where it does not. Says so whenever lavapipe is what programs will run on.
choose_driver() {
  local probe=$1 verdict
  [[ -z ${lavapipe_fetch:-} ]] || wait "$lavapipe_fetch" || true
  verdict=$(driver_verdict)
  if [[ -z $verdict || ($verdict == lavapipe && ! -x $HEARTH_DEPS/bin/lvp-run) ]]; then
    verdict=$(find_driver "$probe")
    [[ -z $verdict ]] || write_verdict "$verdict"
  fi
  case $verdict in
    lavapipe)
      say "no working Vulkan driver on this machine; running on the CPU with Mesa's lavapipe"
      ;;
    '')
      say "no working Vulkan driver on this machine, and none could be fetched;" \
        "install your card's driver, or mesa-vulkan-drivers to run on the CPU"
      ;;
  esac
}

# find_driver PROBE: prints the verdict, or nothing where no driver works.
find_driver() {
  local probe=$1
  if [[ ${HEARTH_DRIVER:-} != lavapipe ]] && probe_passes "$probe"; then
    echo system
  elif "$hearth_root/tools/setup" --lavapipe &&
    probe_passes "$HEARTH_DEPS/bin/lvp-run" "$probe"; then
    echo lavapipe
  elif can_install && ! dpkg-query -W mesa-vulkan-drivers >/dev/null 2>&1 &&
    apt_install mesa-vulkan-drivers && probe_passes "$probe"; then
    echo system
  fi
}

write_verdict() {
  local file
  [[ -z ${HEARTH_DRIVER:-} ]] || return 0
  file=$(verdict_file)
  mkdir -p -- "${file%/*}" && printf '%s\n' "$1" >"$file.$$" && mv -- "$file.$$" "$file"
}
