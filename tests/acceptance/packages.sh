#!/bin/sh
# Debian packages in a fresh Debian 12: installs them, runs a network, reads the man page, builds C and
# C++ programs against them (shared and static, pkg-config and CMake), purges them and looks whether
# anything is left. Needs root, Debian's mirror, debootstrap and 1.5 GiB on the disk.
# usage: packages.sh BUILD_DIR WORK_DIR [MIRROR]
set -eu
build=$(realpath "$1") work=$2 mirror=${3:-http://deb.debian.org/debian}
source=$(realpath "$(dirname "$0")/../..")
root=$work/root
mkdir -p "$work/debs"
trap 'umount "$root/proc" 2>/dev/null || true' EXIT

fail() {
    echo "packages: $*" >&2
    exit 1
}

inside() {
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root \
        DEBIAN_FRONTEND=noninteractive "$@"
}

quietly() {
    "$@" >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; fail "failed: $*"; }
}

[ "$(id -u)" -eq 0 ] || fail "needs root, for chroot"
(cd "$build" && quietly cpack -B "$work/debs")
[ -e "$root/etc/debian_version" ] || quietly debootstrap --variant=minbase bookworm "$root" "$mirror"
mount -t proc proc "$root/proc"
quietly inside apt-get update

# Everything that a system has: files outside of what running it changes.
list() {
    inside find / -xdev ! -path '/proc/*' ! -path '/tmp/*' ! -path '/var/cache/*' \
        ! -path '/var/log/*' ! -path '/var/lib/apt/*' ! -path '/var/lib/dpkg/*' \
        ! -path '/root/*' | LC_ALL=C sort
}

# Dependencies first and by themselves, so that what is left of our own shows.
depends=$(for deb in "$work"/debs/*.deb; do dpkg-deb -f "$deb" Depends; done | tr ',' '\n' |
    sed 's/(.*//; s/ //g' | grep -v '^librfexec' | LC_ALL=C sort -u)
# shellcheck disable=SC2086
quietly inside apt-get install -y --no-install-recommends $depends man-db gcc g++ cmake make pkg-config
list >"$work/before"
mkdir -p "$root/tmp/debs"
cp "$work"/debs/*.deb "$root/tmp/debs"
quietly inside sh -c 'dpkg -i /tmp/debs/*.deb'

inside rfexec version
inside rfexec run mobilenet_v2 synthetic:512x512 --memory 32MiB --threads 1
inside rfexec selftest mobilenet_v2
inside man -w rfexec
[ -s "$root/usr/share/man/man1/rfexec.1" ] || fail "no man page"

rm -rf "$root/tmp/user"
cp -R "$source/tests/cli/package" "$root/tmp/user"
inside sh -euc 'cd /tmp/user
    cc -std=c11 user.c $(pkg-config --cflags --libs rfexec) -o by_pkg_config
    ./by_pkg_config | tee said
    cmake -S . -B built -DWITH_CXX=ON >/dev/null && cmake --build built >/dev/null
    for user in user user_cxx user_static user_static_cxx; do ./built/$user | diff said -; done
    ! ldd built/user_static | grep librfexec'
# Static by pkg-config: the linker takes the archive where there is no shared library.
inside sh -euc 'cd /tmp/user && mv /usr/lib/librfexec.so /tmp/librfexec.so
    cc -std=c11 user.c $(pkg-config --static --cflags --libs rfexec) -o static
    mv /tmp/librfexec.so /usr/lib/librfexec.so && ./static | diff said -'

quietly inside sh -c "dpkg --purge $(for deb in "$work"/debs/*.deb; do dpkg-deb -f "$deb" Package; done |
    tr '\n' ' ')"
list >"$work/after"
diff "$work/before" "$work/after" || fail "the files above are left"
echo "packages: installed, ran, built against, purged; nothing is left"
