# shellcheck shell=bash
# Which Vulkan driver programs run on: the system's, or the private lavapipe where that is missing
# or dies on a compute shader. Used by vulkan-run, so it stays quick. Needs HEARTH_DEPS.

# Everything that tells one set of installed drivers from another: the manifests where the Vulkan
# loader looks for them, the variables that name others, and the devices this user may open.
driver_key() {
  local IFS=: folder device data config
  local folders=() manifests=()
  data=${XDG_DATA_HOME:-${HOME:-}/.local/share}:${XDG_DATA_DIRS:-/usr/local/share:/usr/share}
  config=${XDG_CONFIG_HOME:-${HOME:-}/.config}:${XDG_CONFIG_DIRS:-/etc/xdg}:/etc:/usr/local/etc
  for folder in $data $config; do folders+=("$folder/vulkan/icd.d"); done
  shopt -s nullglob
  for folder in "${folders[@]}"; do manifests+=("$folder"/*.json); done
  [[ ${#manifests[@]} -eq 0 ]] || stat -L -c '%n %s %Y %Z' -- "${manifests[@]}" 2>/dev/null || true
  for device in /dev/dri/renderD* /dev/nvidia[0-9]*; do
    [[ -r $device && -w $device ]] && printf '%s\n' "$device"
  done
  printf '%s\n' "${VK_DRIVER_FILES:-}" "${VK_ICD_FILENAMES:-}" "${VK_ADD_DRIVER_FILES:-}"
}

# The file that holds the verdict on the drivers there are now: "system" or "lavapipe".
verdict_file() {
  local sum
  sum=$(driver_key | cksum)
  printf '%s/drivers/%s\n' "$HEARTH_DEPS" "${sum// /-}"
}

# driver_verdict: prints system, lavapipe, or nothing where nobody has looked yet. HEARTH_DRIVER
# decides where it is set.
driver_verdict() {
  local file
  if [[ -n ${HEARTH_DRIVER:-} ]]; then
    printf '%s\n' "$HEARTH_DRIVER"
    return
  fi
  file=$(verdict_file)
  if [[ -r $file ]]; then printf '%s\n' "$(<"$file")"; fi
}
