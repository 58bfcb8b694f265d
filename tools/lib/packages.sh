# shellcheck shell=bash
# The packages Hearth is built with: the list, what is missing of it, and apt. Needs common.sh.

# One package per line: NAME  PROOF  WHO  NEED
#   PROOF  what counts as well as the package, found in the usual places and along PATH, CPATH,
#          LD_LIBRARY_PATH and CMAKE_PREFIX_PATH: cmd:PROGRAM, header:FILE, library:FILE, layer:FILE
#   WHO    all, or modern: distributions new enough for cooperative matrices (Debian 13, Ubuntu
#          24.04). The others get these through the private prefix (parts.sh).
#   NEED   needed; optional: the command line builds and runs without it; more: what tests and ranks
#          in several processes need, for tools/setup --all; testing: only needed
#          to run the tests; fuzzing: only tools/fuzz and tools/test --slow do
package_list() {
  cat <<'LIST'
build-essential                 cmd:g++                                all     needed
cmake                           cmd:cmake                              all     needed
ninja-build                     cmd:ninja                              all     needed
git                             cmd:git                                all     needed
libvulkan1                      library:libvulkan.so.1                 all     needed
libgtest-dev                    header:gtest/gtest.h                   all     more
libgmock-dev                    header:gmock/gmock.h                   all     more
nlohmann-json3-dev              header:nlohmann/json.hpp               all     needed
libfmt-dev                      header:fmt/format.h                    all     needed
libpcre2-dev                    header:pcre2.h                         all     needed
libutf8proc-dev                 header:utf8proc.h                      all     needed
glslang-tools                   cmd:glslangValidator                   modern  needed
glslang-dev                     header:glslang/build_info.h            modern  optional
spirv-tools                     cmd:spirv-val                          modern  needed
libvulkan-dev                   header:vulkan/vulkan_core.h            modern  needed
libvulkan-volk-dev              header:volk.c                          modern  needed
libvulkan-memory-allocator-dev  header:vk_mem_alloc.h                  modern  needed
vulkan-validationlayers         layer:VkLayer_khronos_validation.json  all     testing
libedit-dev                     header:editline/readline.h             all     optional
libcurl4-openssl-dev            header:curl/curl.h                     all     optional
python3                         cmd:python3                            all     more
libopenmpi-dev                  header:mpi.h                           all     more
openmpi-bin                     cmd:mpirun                             all     more
libzmq3-dev                     header:zmq.h                           all     optional
libglfw3-dev                    header:GLFW/glfw3.h                    all     optional
libpng-dev                      header:png.h                           all     optional
libmd4c-dev                     header:md4c.h                          all     optional
fonts-dejavu-core               file:/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf all optional
fonts-roboto-unhinted           file:/usr/share/fonts/truetype/roboto/unhinted/RobotoTTF/Roboto-Regular.ttf all optional
ccache                          cmd:ccache                             all     optional
mold                            cmd:mold                               all     optional
xvfb                            cmd:Xvfb                               all     testing
xauth                           cmd:xauth                              all     testing
xz-utils                        cmd:xz                                 all     optional
ca-certificates                 file:/etc/ssl/certs/ca-certificates.crt all    optional
nodejs                          cmd:node                               all     testing
npm                             cmd:npm                                all     testing
chromium                        cmd:chromium                           all     testing
clang-19                        cmd:clang++-19                         all     fuzzing
libclang-rt-19-dev              file:/usr/lib/llvm-19/lib/clang/19/lib/linux all fuzzing
LIST
}

# True where the distribution's own shader tools and Vulkan headers are too old.
distribution_is_old() {
  local codename
  # shellcheck source=/dev/null
  codename=$(. /etc/os-release 2>/dev/null &&
    echo "${UBUNTU_CODENAME:-${DEBIAN_CODENAME:-${VERSION_CODENAME:-}}}")
  case $codename in
    buster | bullseye | bookworm | focal | jammy) return 0 ;;
    *) return 1 ;;
  esac
}

# first_file NAME FOLDER...: succeeds if one of the folders holds NAME.
first_file() {
  local name=$1 folder
  shift
  for folder in "$@"; do
    [[ -n $folder && -e $folder/$name ]] && return 0
  done
  return 1
}

# proven PROOF: whether a proof of the list above holds on this machine.
proven() {
  local kind=${1%%:*} what=${1#*:} folders prefixes
  IFS=: read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  case $kind in
    cmd) have "$what" ;;
    header)
      IFS=: read -ra folders <<<"${CPATH:-}"
      first_file "$what" "${folders[@]}" "${prefixes[@]/%//include}" /usr/local/include /usr/include \
        /usr/include/*-linux-gnu
      ;;
    library)
      IFS=: read -ra folders <<<"${LD_LIBRARY_PATH:-}"
      first_file "$what" "${folders[@]}" /usr/local/lib /usr/lib /usr/lib64 /usr/lib/*-linux-gnu
      ;;
    layer)
      IFS=: read -ra folders <<<"${VK_LAYER_PATH:-}"
      first_file "$what" "${folders[@]}" {/usr/local/share,/usr/share,/etc}/vulkan/explicit_layer.d
      ;;
    file) [[ -e $what ]] ;;
  esac
}

# A driver for the card in this machine, where there is a card and no driver at all.
wants_mesa() {
  compgen -G '/dev/dri/renderD*' >/dev/null || return 1
  [[ -z ${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-} ]] || return 1
  ! compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null &&
    ! compgen -G '/etc/vulkan/icd.d/*.json' >/dev/null
}

# Fills the arrays missing_needed, missing_optional, missing_more, missing_testing and
# missing_fuzzing.
find_missing_packages() {
  local name proof who need installed=' ' old=false
  missing_needed=()
  missing_optional=()
  missing_more=()
  missing_testing=()
  missing_fuzzing=()
  distribution_is_old && old=true
  if have dpkg-query; then
    # shellcheck disable=SC2016,SC2046
    installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package}\n' \
      $(package_list | cut -d' ' -f1) 2>/dev/null |
      sed -n 's/^installed://p' | tr '\n' ' ' || true)"
  fi
  while read -r name proof who need; do
    [[ $who == modern ]] && $old && continue
    [[ $installed == *" $name "* ]] || proven "$proof" || case $need in
      needed) missing_needed+=("$name") ;;
      more) missing_more+=("$name") ;;
      testing) missing_testing+=("$name") ;;
      fuzzing) missing_fuzzing+=("$name") ;;
      *) missing_optional+=("$name") ;;
    esac
  done < <(package_list)
  if wants_mesa; then missing_optional+=(mesa-vulkan-drivers); fi
}

can_install() { is_root && have apt-get && have dpkg-query; }

# apt_install PACKAGE...: those that this distribution has, quietly; what apt said is shown if it
# fails. REQUIRES can_install.
apt_install() {
  local log status=0 available
  log=$(mktemp)
  say "installing with apt: $*"
  # An archive out of reach is only a warning here: the install decides.
  apt-get -q -o DPkg::Lock::Timeout=600 update >"$log" 2>&1 </dev/null || true
  mapfile -t available < <(LC_ALL=C apt-cache policy "$@" |
    awk '/^[^ ]/ { name = $1 } /Candidate:/ && $2 != "(none)" { sub(":$", "", name); print name }')
  DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
    -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 install "${available[@]}" \
    >>"$log" 2>&1 </dev/null || status=$?
  [[ $status -eq 0 ]] || tail -n 20 "$log" >&2
  rm -f -- "$log"
  return "$status"
}

# find_packages_wanted [all]: find_missing_packages, with "more" among the optional ones.
find_packages_wanted() {
  find_missing_packages
  [[ $1 != all ]] || missing_optional+=("${missing_more[@]}")
}

# ensure_packages [all]: installs what is missing, or says what is; exits 1 if something needed stays
# missing. With `all`, what the list calls "more" is wanted as well.
ensure_packages() {
  find_packages_wanted "${1:-}"
  [[ ${#missing_needed[@]} -gt 0 || ${#missing_optional[@]} -gt 0 ]] || return 0
  if can_install; then
    apt_install "${missing_needed[@]}" "${missing_optional[@]}" || true
    find_packages_wanted "${1:-}"
  fi
  if [[ ${#missing_needed[@]} -gt 0 ]]; then
    die "missing packages: ${missing_needed[*]}" \
      "${missing_optional:+(and, optional: ${missing_optional[*]})}"
  elif [[ ${#missing_optional[@]} -gt 0 ]]; then
    say "continuing without optional packages: ${missing_optional[*]}"
  fi
}

# ensure_extra_packages NEED CONSEQUENCE: the packages of the list that only some tests want. What
# cannot be installed is named with its consequence.
ensure_extra_packages() {
  find_missing_packages
  local -n missing=missing_$1
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if can_install; then
    apt_install "${missing[@]}" || true
    find_missing_packages
  fi
  [[ ${#missing[@]} -eq 0 ]] || say "without packages: ${missing[*]}; $2"
}
