# shellcheck shell=bash
# The private prefix: parts unpacked from Debian packages without installing them, so that no root
# is needed and nothing of the system is replaced. Needs common.sh and packages.sh.
#
#   hdr    Vulkan headers, volk and VMA of Debian 13           where the distribution's are too old
#   tools  glslang and SPIRV-Tools of Debian 13, own libc      likewise; wrappers in bin
#   imgui  the source package of Dear ImGui                    Debian sid
#   lvp    Mesa's lavapipe, validation layer, own libc         Debian sid; only for --lavapipe
#
# Files from sid are pinned by checksum (pins.sh), because sid changes every day.
#
# A part is made in a temporary folder and renamed into place, and holds a file .recipe that says
# what it was made from: the same recipe is not made twice. $work is a folder of the run's own.
# shellcheck disable=SC2154

tool_suite=trixie
newest_suite=sid

# The Debian archive this machine already uses (HEARTH_DEBIAN_MIRROR names another), in either of
# apt's two formats. No host is named here.
debian_mirror() {
  if [[ -n ${HEARTH_DEBIAN_MIRROR:-} ]]; then
    printf '%s\n' "$HEARTH_DEBIAN_MIRROR"
    return
  fi
  {
    sed -nE 's/^URIs:[[:space:]]+//p' /etc/apt/sources.list.d/*.sources
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list |
      sed -nE 's/^deb[[:space:]]+(\[[^]]*\][[:space:]]+)?([^[:space:]]+).*/\2/p'
  } 2>/dev/null | tr ' ' '\n' | grep -E -m1 '/debian/?$'
}

debian_keyring() {
  local file
  for file in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
    [[ -r $file ]] && printf '%s\n' "$file" && return
  done
  return 1
}

# can_fetch: whether packages of other Debian releases can be had here at all.
can_fetch() {
  have apt-get && have dpkg-deb && [[ -n $(debian_mirror) ]] && debian_keyring >/dev/null
}

# private_apt SUITE [ARCHITECTURE]: an apt root of our own for one suite under $work, with its
# package lists; the machine's proxies and credentials still hold. Prints its configuration file.
private_apt() {
  local suite=$1 architecture=${2:-$(dpkg --print-architecture)} line
  local root=$work/apt-$suite${2:+-$2}
  printf '%s\n' "$root/apt.conf"
  [[ -e $root/updated ]] && return 0
  mkdir -p "$root"/{preferences.d,lists/partial,cache/archives/partial} || return 1
  : >"$root/status"
  line="[signed-by=$(debian_keyring)] $(debian_mirror) $suite main"
  printf 'deb %s\n' "$line" >"$root/sources.list"
  [[ $suite == "$newest_suite" ]] && printf 'deb-src %s\n' "$line" >>"$root/sources.list"
  # A mirror can lag behind the short validity of sid's index, hence Check-Valid-Until.
  cat >"$root/apt.conf" <<CONF
Dir::Etc::sourcelist "$root/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "$root/preferences.d";
Dir::State "$root";
Dir::State::lists "$root/lists";
Dir::State::status "$root/status";
Dir::Cache "$root/cache";
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Sandbox::User "root";
APT::Get::List-Cleanup "false";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::Check-Valid-Until "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Debug::NoLocking "true";
CONF
  APT_CONFIG=$root/apt.conf logged apt-get -q update || return 1
  # apt calls an archive it could not reach a warning; without lists nothing can follow.
  compgen -G "$root/lists/*Packages*" >/dev/null && : >"$root/updated"
}

# Runs a command with its output in the log, which is shown if set-up fails.
logged() { "$@" >>"$work/log" 2>&1 </dev/null; }

# unpack_packages SUITE FOLDER PACKAGE...: just these packages.
unpack_packages() {
  local suite=$1 folder=$2 conf
  shift 2
  conf=$(private_apt "$suite") || return 1
  mkdir -p "$work/debs" && rm -f "$work"/debs/*.deb || return 1
  (cd "$work/debs" && APT_CONFIG=$conf logged apt-get -q download "$@") || return 1
  unpack_all "$folder" "$work"/debs/*.deb && rm -f "$work"/debs/*.deb
}

# unpack_all FOLDER DEB...: the files of these packages, without installing them.
unpack_all() {
  local folder=$1 deb
  shift
  mkdir -p "$folder" || return 1
  for deb in "$@"; do logged dpkg-deb -x "$deb" "$folder" || return 1; done
}

# unpack_closure SUITE FOLDER PACKAGE...: these packages and all they depend on, down to libc.
unpack_closure() {
  local suite=$1 folder=$2 conf
  shift 2
  conf=$(private_apt "$suite") || return 1
  APT_CONFIG=$conf logged apt-get -q -y --download-only --no-install-recommends install "$@" ||
    return 1
  unpack_all "$folder" "$work/apt-$suite"/cache/archives/*.deb
}

# make_part NAME RECIPE: calls make_NAME FOLDER unless the part of that recipe is in place.
make_part() {
  local name=$1 recipe=$2 fresh=$work/new/$1
  if [[ -r $HEARTH_DEPS/$name/.recipe && $(<"$HEARTH_DEPS/$name/.recipe") == "$recipe" ]]; then
    return 0
  fi
  say "fetching ${recipe%, pins *}"
  rm -rf "$fresh"
  mkdir -p "$fresh" && "make_$name" "$fresh" || return 1
  # A part without its pinned files is made again by the next set-up, which may find them.
  [[ ! -e $work/unpinned-$name ]] || recipe=unpinned
  printf '%s\n' "$recipe" >"$fresh/.recipe"
  if [[ -e $HEARTH_DEPS/$name ]]; then
    mv -T "$HEARTH_DEPS/$name" "$work/old-$name" || return 1
  fi
  mv -T "$fresh" "$HEARTH_DEPS/$name"
}

# wrapper NAME: puts standard input into bin/NAME, whole or not at all.
wrapper() {
  mkdir -p "$HEARTH_DEPS/bin" && cat >"$work/wrapper" && chmod 755 "$work/wrapper" &&
    mv -T "$work/wrapper" "$HEARTH_DEPS/bin/$1"
}

# loader_of FOLDER: the dynamic loader among unpacked packages.
loader_of() {
  find "$1" \( -name 'ld-linux*.so.[0-9]' -o -name 'ld64.so.[0-9]' \) | sort | head -n1
}

make_hdr() {
  unpack_packages "$tool_suite" "$1" \
    libvulkan-dev libvulkan-volk-dev libvulkan-memory-allocator-dev || return 1
  # Headers only: the libraries belong to another release.
  rm -rf "${1:?}"/usr/{lib,share}
}

make_imgui() {
  local conf archive
  mkdir -p "$work/source" || return 1
  if ! fetch_pinned imgui "$work/source"; then
    pins_are_gone imgui
    rm -f "$work"/source/*  # A file with another checksum is still there, under another name.
    conf=$(private_apt "$newest_suite") || return 1
    (cd "$work/source" && APT_CONFIG=$conf logged apt-get -q source --download-only imgui) ||
      return 1
  fi
  archive=$(compgen -G "$work/source/imgui_*.orig.tar.*" | head -n1)
  [[ -n $archive ]] && logged tar -x --strip-components=1 -C "$1" -f "$archive"
}

make_tools() {
  unpack_packages "$tool_suite" "$1" glslang-tools glslang-dev spirv-tools \
    libc6 libstdc++6 libgcc-s1 || return 1
  rm -rf "${1:?}"/usr/share "$1"/usr/lib/*/gconv
}

wrap_tools() {
  local root=$HEARTH_DEPS/tools tool loader libraries
  loader=$(loader_of "$root")
  libraries=$(dirname -- "$(find "$root" -name 'libstdc++.so.6' | head -n1)")
  for tool in glslang glslangValidator spirv-val spirv-dis spirv-as spirv-opt; do
    [[ -x $root/usr/bin/$tool ]] || continue
    wrapper "$tool" <<SH || return 1
#!/bin/sh
exec '$loader' --library-path '$libraries' '$root/usr/bin/$tool' "\$@"
SH
  done
}

make_lvp() {
  local driver
  if fetch_pinned lavapipe "$work/pinned"; then
    unpack_all "$1/root" "$work"/pinned/*.deb || return 1
  else
    pins_are_gone lvp
    unpack_closure "$newest_suite" "$1/root" "${lavapipe_packages[@]}" || return 1
  fi
  driver=$(find "$1/root" -name libvulkan_lvp.so | head -n1)
  [[ -n $driver ]] || return 1
  # The other drivers and what goes with them are a third of it.
  find "$(dirname -- "$driver")" -maxdepth 1 -name 'libvulkan_*.so' ! -name libvulkan_lvp.so -delete
  rm -rf "$1"/root/usr/share/{doc,locale,man,X11} "$1"/root/usr/lib/*/gconv "$1"/root/usr/{bin,sbin}
}

# Manifests with absolute paths, and bin/lvp-run. Names no temporary folder, hence not in make_lvp.
wrap_lvp() {
  local root=$HEARTH_DEPS/lvp loader libraries manifest
  loader=$(loader_of "$root/root")
  libraries=$(dirname -- "$(find "$root/root" -name libvulkan_lvp.so | head -n1)")
  mkdir -p "$root/layers"
  manifest=$(compgen -G "$root/root/usr/share/vulkan/icd.d/lvp_icd*.json" | head -n1)
  absolute_manifest "$manifest" "$libraries/libvulkan_lvp.so" "$root/lvp.json" || return 1
  for manifest in "$root"/root/usr/share/vulkan/explicit_layer.d/*khronos_validation*.json; do
    absolute_manifest "$manifest" "$libraries/libVkLayer_khronos_validation.so" \
      "$root/layers/${manifest##*/}" || return 1
  done
  # HEARTH_DRIVER makes programs that this one starts through vulkan-run end up here as well.
  wrapper lvp-run <<SH
#!/bin/sh
export VK_DRIVER_FILES='$root/lvp.json' VK_ICD_FILENAMES='$root/lvp.json'
export VK_LAYER_PATH='$root/layers' LP_NATIVE_VECTOR_WIDTH="\${LP_NATIVE_VECTOR_WIDTH:-256}"
export HEARTH_DRIVER=lavapipe
path='$libraries:/usr/lib/${libraries##*/}:/lib/${libraries##*/}'
exec '$loader' --library-path "\$path\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" "\$@"
SH
}

# absolute_manifest FROM LIBRARY TO: a Vulkan manifest that names LIBRARY.
absolute_manifest() {
  sed -E "s#(\"library_path\": *\")[^\"]*#\\1$2#" "$1" >"$work/manifest" &&
    mv -T "$work/manifest" "$3"
}

# The architecture is part of every recipe: a home folder may serve several machines.
recipe() { printf '%s, Debian %s, %s' "$2" "$1" "$(dpkg --print-architecture)"; }

# Makes the parts that an old distribution needs and that no package is needed for. It may fail:
# ensure_parts makes what is missing afterwards, and says what went wrong.
prefetch_parts() {
  can_fetch && distribution_is_old || return 0
  make_part hdr "$(recipe "$tool_suite" 'Vulkan headers, volk, VMA')" &&
    make_part tools "$(recipe "$tool_suite" 'glslang, its library, SPIRV-Tools')"
}

# Set-up's share of the prefix. What is needed and cannot be fetched ends set-up; the rest is left
# out with a line.
ensure_parts() {
  local lost="Dear ImGui's source"
  if ! can_fetch; then
    distribution_is_old && lost="new enough shader tools and Vulkan headers, $lost"
    say "left out: $lost (no Debian archive in apt's sources; HEARTH_DEBIAN_MIRROR can name one)"
    return 0
  fi
  if distribution_is_old; then
    prefetch_parts || fetch_failed "$tool_suite"
    wrap_tools || fetch_failed "$tool_suite"
  else
    drop_part hdr
    drop_part tools glslang glslangValidator spirv-val spirv-dis spirv-as spirv-opt
  fi
  drop_part minja  # older releases of Hearth needed it
  make_part imgui "$(pinned_recipe imgui 'Dear ImGui source')" || left_out imgui
}

ensure_lavapipe() {
  make_part lvp "$(pinned_recipe lavapipe 'Mesa lavapipe, validation layer')" && wrap_lvp
}

# drop_part NAME WRAPPER...: removes what an older release of this machine needed.
drop_part() {
  local name=$1 wrapper
  shift
  for wrapper in "$@"; do rm -f "$HEARTH_DEPS/bin/$wrapper"; done
  [[ ! -e $HEARTH_DEPS/$name ]] || mv -T "$HEARTH_DEPS/$name" "$work/old-$name"
}

# fetch_failed SUITE: ends set-up with what apt said.
fetch_failed() {
  [[ ! -e $work/log ]] || tail -n 20 "$work/log" >&2
  die "could not fetch packages of Debian $1 from a Debian archive in apt's sources"
}

left_out() {
  say "left out: $1 could not be fetched from Debian $newest_suite" \
    "(tools/setup --force tries again)"
}
