# shellcheck shell=bash
# Sourced by ./dev: what is missing on this machine is installed, what is there is left alone.
# The wheels are not byte-compiled: nothing but pip is run from them.
# Needs the working directory to be the root of the checkout, and the functions heading and fail of ./dev.

# Prints the packages of the given groups of tools/packages.txt that are not there.
missing_packages() {
  local group package sign found
  while read -r group package sign; do
    [[ " $* " == *" $group "* ]] || continue
    case $sign in
      cmd:*) command -v "${sign#cmd:}" >/dev/null && found=yes || found= ;;
      inc:*) [[ -e /usr/include/${sign#inc:} || -e /usr/local/include/${sign#inc:} ]] && found=yes || found= ;;
      file:*) [[ -e ${sign#file:} ]] && found=yes || found= ;;
      py:*) python3 -c "import ${sign#py:}" 2>/dev/null && found=yes || found= ;;
      *) fail 1 "tools/packages.txt: what is \"$sign\" of $package?" ;;
    esac
    [[ $found ]] || echo "$package"
  done < <(grep -v '^#' tools/packages.txt)
}

# Older ones lack libtomlplusplus, and their compilers are too old for C++20.
check_release() {
  local id version oldest
  [[ -r /etc/os-release ]] || return 0
  # shellcheck source=/dev/null
  read -r id version < <(source /etc/os-release && echo "${ID:-} ${VERSION_ID:-}")
  case $id in
    debian) oldest=12 ;;
    ubuntu) oldest=24.04 ;;
    *) return 0 ;;
  esac
  # Debian's testing has no number.
  [[ ! $version || $(printf '%s\n' "$oldest" "$version" | sort -V | head -n 1) == "$oldest" ]] ||
    fail 2 "this is $id $version; the oldest that serve are Debian 12 and Ubuntu 24.04"
}

# install_packages GROUP…: with apt as root or by sudo without a password; else prints the line to run and exits 2.
install_packages() {
  local missing as_root=() log=.deps/apt.log
  missing=$(missing_packages "$@" | tr '\n' ' ')
  missing=${missing% }
  [[ $missing ]] || return 0
  command -v apt-get >/dev/null ||
    fail 2 "these Debian packages, or what they are called here, are missing: $missing"
  check_release
  if [[ $(id -u) != 0 ]]; then
    if ! sudo -n true 2>/dev/null; then
      echo "Some packages are missing, and installing them takes root. Run this, then the same command again:" >&2
      echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $missing" >&2
      exit 2
    fi
    as_root=(sudo -n)
  fi
  heading "packages: installing with apt (its output: $log): $missing"
  mkdir -p .deps
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300
    -o Acquire::Retries=3)
  # The package list is split on purpose.
  # shellcheck disable=SC2086
  if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends $missing; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    fail 1 "apt could not install what is missing; the end of its output is above"
  fi
  hash -r
  missing=$(missing_packages "$@" | tr '\n' ' ')
  [[ ! $missing ]] || fail 1 "apt installed, and yet this is not found: $missing"
}

# install_wheels LIST WHAT: the wheels of tools/LIST.txt into .deps/venv. A stamp that repeats the list makes a second
# call do nothing.
install_wheels() {
  local stamp=.deps/venv/penteract-$1 wanted requirement attempt
  wanted=$(grep -v '^#' "tools/$1.txt")
  [[ -f $stamp && $(<"$stamp") == "$wanted" ]] && return 0
  heading "$2"
  mkdir -p .deps
  [[ -x .deps/venv/bin/python3 ]] && .deps/venv/bin/python3 -c 'import pip' 2>/dev/null ||
    { rm -rf .deps/venv; python3 -m venv .deps/venv; } ||
    fail 1 "python3 -m venv .deps/venv failed"
  for requirement in $wanted; do
    # One at a time: what has arrived stays when a later one fails.
    for attempt in 1 2 3 4 5; do
      .deps/venv/bin/python3 -m pip --disable-pip-version-check install --no-compile --no-deps "$requirement" </dev/null && break
      [[ $attempt != 5 ]] || fail 1 "pip could not install $requirement; run the same command to go on from here"
      echo "again in $((attempt * 5)) s ($attempt of 4)" >&2
      sleep $((attempt * 5))
    done
  done
  echo "$wanted" >"$stamp"
}
