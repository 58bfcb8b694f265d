# shellcheck shell=bash
# Which Vulkan driver programs run on: the system's, or the private lavapipe where that is missing
# or dies on a compute shader. Used by vulkan-run, so it stays quick. Needs HEARTH_DEPS.

# manifest_folders: fills the array folders with where the Vulkan loader looks for drivers.
manifest_folders() {
  local IFS=: folder data config
  data=${XDG_DATA_HOME:-${HOME:-}/.local/share}:${XDG_DATA_DIRS:-/usr/local/share:/usr/share}
  config=${XDG_CONFIG_HOME:-${HOME:-}/.config}:${XDG_CONFIG_DIRS:-/etc/xdg}:/etc:/usr/local/etc
  folders=()
  for folder in $data $config; do folders+=("$folder/vulkan/icd.d"); done
}

# has_driver: whether the Vulkan loader would find any driver; it may still not work.
has_driver() {
  local folders folder
  [[ -z ${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}${VK_ADD_DRIVER_FILES:-} ]] || return 0
  manifest_folders
  for folder in "${folders[@]}"; do
    if compgen -G "$folder/*.json" >/dev/null; then return 0; fi
  done
  return 1
}

# Everything that tells one set of installed drivers from another: the manifests where the Vulkan
# loader looks for them, the variables that name others, and the devices this user may open.
driver_key() {
  local folder device folders manifests=()
  manifest_folders
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

# driver_verdict: prints system, lavapipe, or nothing if no driver was tried yet. HEARTH_DRIVER
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
