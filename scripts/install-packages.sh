#!/bin/bash
# Installs those of the named Debian packages that are missing. Says plainly what is missing where it cannot.
#
#   scripts/install-packages.sh NAME...
set -euo pipefail

if [ $# -eq 0 ]; then
    echo "usage: $0 PACKAGE..." >&2
    exit 2
fi

fail() {
    echo "install-packages: missing: ${missing[*]}" >&2
    echo "install-packages: $1" >&2
    exit 1
}

# Whether a package is unpacked and configured.
installed() {
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

if ! command -v dpkg-query >/dev/null; then
    missing=("$@")
    fail "this is no Debian or Ubuntu: install what these packages hold and call the programs yourself (see the Makefile)"
fi

missing=()
for package in "$@"; do
    installed "$package" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "not root, and there is no sudo: as root, run  apt-get install ${missing[*]}"
    as_root=(sudo)
    # Without a terminal nobody could type a password.
    [ -t 0 ] || as_root=(sudo -n)
fi

install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --quiet --no-install-recommends "${missing[@]}"
}

echo "install-packages: installing ${missing[*]}"
# The package lists of a fresh machine may be empty or old, so a first failure is not the last word.
if ! install >/dev/null 2>&1; then
    "${as_root[@]}" apt-get update --quiet || fail "apt-get update failed: see above; as root, run  apt-get install ${missing[*]}"
    install || fail "apt-get install failed: see above"
fi
