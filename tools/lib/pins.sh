# shellcheck shell=bash
# Files of Debian sid that Hearth is built and tested with, pinned by name and checksum in tools/pins:
# lines "SHA256 PATH", the path as in a Debian archive. Needs common.sh and parts.sh.
#
# sid keeps only the newest version of a package, so a pinned file disappears some time after the pin
# was made. Then set-up takes today's version and says so; `tools/setup --pin` writes new pins, to be
# committed after `tools/test` has passed with them. HEARTH_DEBIAN_MIRROR can name an archive that
# still has the old files.
# shellcheck disable=SC2154  # $work and $newest_suite are parts.sh's.
: "${hearth_root:?}"

lavapipe_packages=(mesa-vulkan-drivers libvulkan1 libstdc++6 vulkan-validationlayers)

# pins_of NAME: the file with the pins of a part for this machine.
pins_of() {
  local file=$hearth_root/tools/pins/$1
  if [[ -e $file ]]; then echo "$file"; else echo "$file.$(dpkg --print-architecture)"; fi
}

# pinned_recipe NAME WHAT: the recipe of a pinned part. It changes when the pins do.
pinned_recipe() {
  printf '%s, %s, pins %s' "$2" "$(dpkg --print-architecture)" \
    "$(cksum 2>/dev/null <"$(pins_of "$1")" | cut -d' ' -f1)"
}

# fetch_pinned NAME FOLDER: downloads the pinned files of a part. Fails unless every one of them is
# there and has the pinned checksum.
fetch_pinned() {
  local pins folder=$2 sum path mirror files=()
  pins=$(pins_of "$1")
  mirror=$(debian_mirror)
  [[ -r $pins ]] && mkdir -p "$folder" || return 1
  while read -r sum path; do
    files+=("${mirror%/}/$path" "$folder/${path##*/}" "SHA256:$sum")
  done <"$pins"
  logged /usr/lib/apt/apt-helper -o APT::Sandbox::User=root -o Acquire::Retries=3 \
    download-file "${files[@]}"
}

# pins_are_gone PART: says that a part is made of today's files instead.
pins_are_gone() {
  : >"$work/unpinned-$1"
  say "the pinned files of $1 cannot be had from the Debian archive;" \
    "taking today's version of Debian $newest_suite, which Hearth has not been tested with"
}

# write_pins: pins what sid has today, for both architectures that are tested.
write_pins() {
  local architecture conf pins
  mkdir -p "$hearth_root/tools/pins" "$work/pins" || return 1
  for architecture in arm64 amd64; do
    conf=$(private_apt "$newest_suite" "$architecture") || return 1
    APT_CONFIG=$conf apt-get -q -y -o Acquire::ForceHash=SHA256 --print-uris \
      --no-install-recommends install "${lavapipe_packages[@]}" 2>>"$work/log" </dev/null |
      pin_lines >"$work/pins/lavapipe.$architecture" || return 1
  done
  APT_CONFIG=$conf apt-get -q -o Acquire::ForceHash=SHA256 --print-uris source imgui \
    2>>"$work/log" </dev/null | grep -F '.orig.tar' | pin_lines >"$work/pins/imgui" || return 1
  for pins in "$work"/pins/*; do [[ -s $pins ]] || return 1; done
  mv -- "$work"/pins/* "$hearth_root/tools/pins"
}

# pin_lines: turns what apt-get --print-uris says into lines of a pins file.
pin_lines() {
  local mirror uri path sum
  mirror=$(debian_mirror)
  mirror=${mirror%/}
  while read -r uri _ _ sum; do
    [[ $uri == \'* ]] || continue
    path=$(printf '%b' "$(tr -d \' <<<"${uri//%/\\x}")")
    printf '%s %s\n' "${sum#SHA256:}" "${path#"$mirror/"}"
  done | sort -k2
}
