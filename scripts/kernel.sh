#!/usr/bin/env bash
# Kernels by short name, fetched or built into the cache; nothing is installed
# on this machine.
#
#   kernel.sh list              the names, one per line
#   kernel.sh fetch NAME...     make sure that they are there
#   kernel.sh image NAME        the path of its bzImage        \  these fetch it
#   kernel.sh kdir NAME         what to build modules against  |  first if it is
#   kernel.sh modules NAME      its lib/modules, or nothing    |  not there
#   kernel.sh version NAME      its release, package version   /
#   kernel.sh source 6.1|6.12   the path of the unpacked source
#
# Stock kernels are Debian's packages, unpacked. Debug kernels are built from
# Debian's source with the fragments in scripts/config; see fragments().
set -euo pipefail
. "$(dirname "$0")/lib.sh"

stock="6.1 6.12 6.1-rt 6.12-rt"
debug="6.12-kasan"
# The checks run these only if they are named: all would take beyond an hour.
unlisted="6.1-lockdep 6.12-rt-lockdep 6.12-kcsan"

# The metapackage that depends on the current image of a stock kernel.
metapackage()
{
	case $1 in
	6.1) echo linux-image-amd64 ;;
	6.1-rt) echo linux-image-rt-amd64 ;;
	*-rt) echo "linux-image-${1%-rt}-rt-amd64" ;;
	*) echo "linux-image-$1-amd64" ;;
	esac
}

# The configuration of a debug kernel; a later fragment overrides an earlier.
fragments()
{
	case $1 in
	6.12-kasan) echo base debug 6.12 preempt kasan ;;
	6.12-kcsan) echo base debug 6.12 preempt kcsan ;;
	6.12-rt-lockdep) echo base debug 6.12 rt ;;
	6.1-lockdep) echo base debug 6.1 preempt ;;
	esac
}

is_stock()
{
	[[ " $stock " == *" $1 "* ]]
}

known()
{
	[[ " $stock $debug $unlisted " == *" $1 "* ]] ||
		die "no kernel $1; there are $stock $debug $unlisted"
}

# --- apt ---

# apt-cache takes half a second; what it said holds until apt's lists change.
apt_cache()
{
	local memo=$cache/apt/$1-$2

	if [ ! -s "$memo" ] || [ /var/lib/apt/lists -nt "$memo" ]; then
		mkdir -p "$cache/apt"
		apt-cache "$@" >"$memo.$$" 2>/dev/null || true
		mv "$memo.$$" "$memo"
	fi
	cat "$memo"
}

candidate()
{
	apt_cache policy "$1" | awk '/Candidate:/ && $2 != "(none)" { print $2 }'
}

dependencies()
{
	apt_cache depends "$1" | awk '/^ [ |]Depends:/ { print $2 }'
}

apt_update()
{
	quietly "$cache/log/apt-update.log" as_root apt-get -q \
		-o DPkg::Lock::Timeout=600 update
}

# Makes apt know a package, if only its lists are missing.
apt_knows()
{
	[ -n "$(candidate "$1")" ] && return
	locked apt apt_update || return
	[ -n "$(candidate "$1")" ]
}

# download DIR PACKAGE...: a list that is out of date names files that are gone.
download()
{
	local dir=$1
	shift
	set -- env -C "$dir" apt-get -q -o APT::Sandbox::User=root download "$@"
	"$@" >"$dir/log" 2>&1 && return
	locked apt apt_update || true
	quietly "$dir/log" "$@" || die "could not download ${*:7}"
}

# newest DIR...: for a machine that apt can't serve any more.
newest()
{
	printf '%s\n' "$@" | sort -V | tail -n 1
}

# --- Stock kernels ---

# The folder of a stock kernel, named after the package's version so that a
# newer package gets a new one.
stock_dir()
{
	local image version
	local -a cached

	if apt_knows "$(metapackage "$1")"; then
		image=$(stock_image "$1")
		version=$(candidate "$image")
		echo "$cache/stock/$1_$version"
		return
	fi
	cached=("$cache/stock/$1_"*)
	[ -d "${cached[0]}" ] || die "apt knows no $(metapackage "$1")"
	newest "${cached[@]}"
}

stock_image()
{
	dependencies "$(metapackage "$1")" | grep '^linux-image-' | sed -n 1p
}

# The headers come in parts: the flavour's, those common to all, the tools.
stock_packages()
{
	local headers=linux-headers-${1#linux-image-}

	echo "$1" "$headers"
	dependencies "$headers" | grep -E '^linux-(headers|kbuild)-'
}

# The flavour's Makefile includes the common one by an absolute path.
relocate_headers()
{
	# shellcheck disable=SC2016 # make's variables
	sed -i 's,^include /usr/src/,include $(dir $(lastword $(MAKEFILE_LIST)))../,' \
		"$1/usr/src/linux-headers-$2/Makefile"
}

unpack_stock()
{
	local name=$1 dir=$2 image release deb
	local tmp=$dir.partial
	local -a packages

	[ ! -d "$dir" ] || return 0
	note "fetching $name"
	image=$(stock_image "$name") || die "no image for $name"
	release=${image#linux-image-}
	mapfile -t packages < <(stock_packages "$image" | tr ' ' '\n' | sort -u)
	rm -rf "$tmp"
	mkdir -p "$tmp/deb"
	download "$tmp/deb" "${packages[@]}"
	for deb in "$tmp"/deb/*.deb; do
		dpkg-deb -x "$deb" "$tmp" || die "could not unpack ${deb##*/}"
	done
	rm -rf "$tmp/deb"
	relocate_headers "$tmp" "$release"
	depmod -b "$tmp" "$release" || die "$name: depmod failed"
	echo "$release" >"$tmp/release"
	mv "$tmp" "$dir"
}

# --- Sources ---

source_dir()
{
	local package=linux-source-$1
	local -a cached

	if apt_knows "$package"; then
		echo "$cache/src/${package}_$(candidate "$package")"
		return
	fi
	cached=("$cache/src/${package}_"*)
	[ -d "${cached[0]}" ] || die "apt knows no $package"
	newest "${cached[@]}"
}

unpack_source()
{
	local package=linux-source-$1 dir=$2
	local tmp=$dir.partial

	[ ! -d "$dir" ] || return 0
	note "fetching $package"
	rm -rf "$tmp"
	mkdir -p "$tmp/deb" "$tmp/src"
	download "$tmp/deb" "$package"
	dpkg-deb --fsys-tarfile "$tmp"/deb/*.deb |
		tar -xO "./usr/src/$package.tar.xz" |
		tar -xJ -C "$tmp/src" --strip-components=1 ||
		die "could not unpack $package"
	mv "$tmp/src" "$dir"
	rm -rf "$tmp"
}

fetch_source()
{
	local dir

	dir=$(source_dir "$1")
	locked "source-$1" unpack_source "$1" "$dir"
	echo "$dir"
}

# --- Debug kernels ---

config_files()
{
	local f

	for f in $(fragments "$1"); do
		echo "$top/scripts/config/$f.config"
	done
}

debug_dir()
{
	local base=${1%%-*} src hash
	local -a files

	src=$(source_dir "$base")
	mapfile -t files < <(config_files "$1")
	hash=$(cat "${files[@]}" | sha256sum)
	echo "$cache/debug/$1-${src##*_}-${hash:0:10}"
}

# Kconfig drops silently what it can't give, so compare.
check_config()
{
	local line option lost=0

	while read -r line; do
		case $line in
		CONFIG_*)
			grep -qxF "$line" .config && continue
			note "$1: Kconfig dropped $line"
			lost=1
			;;
		"# CONFIG_"*" is not set")
			option=${line#\# } option=${option%% *}
			grep -q "^$option=" .config || continue
			note "$1: Kconfig set $option"
			lost=1
			;;
		esac
	done <fragments
	[ "$lost" = 0 ]
}

# What is needed to build modules against the kernel and to read its
# addresses; not its objects.
prune()
{
	find . \( -name '*.o' -o -name '*.a' -o -name '*.cmd' -o -name '*.order' \) \
		! -path './scripts/*' -delete
	rm -f vmlinux.unstripped vmlinux.map .tmp_vmlinux* .vmlinux.*
	rm -rf arch/x86/boot/compressed
}

build_debug()
{
	local name=$1 dir=$2 src=$3
	local tmp=$dir.partial
	local -a files make

	[ ! -d "$dir" ] || return 0
	note "building $name, which takes some minutes"
	mapfile -t files < <(config_files "$name")
	mkdir -p "$tmp"
	cd "$tmp"
	cat "${files[@]}" >fragments
	make=(nice make -C "$src" O="$tmp" LOCALVERSION="-${name#*-}"
		KBUILD_BUILD_USER=btlog KBUILD_BUILD_HOST=btlog)
	quietly "$tmp/log" "${make[@]}" KCONFIG_ALLCONFIG="$tmp/fragments" allnoconfig ||
		die "$name: no configuration"
	check_config "$name" || die "$name: configuration refused"
	quietly "$tmp/log" "${make[@]}" -j"$JOBS" bzImage modules ||
		die "$name: build failed"
	prune
	mv "$tmp" "$dir"
}

# --- Commands ---

kernel_dir()
{
	if is_stock "$1"; then
		stock_dir "$1"
	else
		debug_dir "$1"
	fi
}

# Leaves the kernel's folder, filled, in $dir.
fetch()
{
	local name=$1 src

	known "$name"
	dir=$(kernel_dir "$name")
	if [ ! -d "$dir" ] && is_stock "$name"; then
		locked "kernel-$name" unpack_stock "$name" "$dir"
	elif [ ! -d "$dir" ]; then
		src=$(fetch_source "${name%%-*}")
		locked "kernel-$name" build_debug "$name" "$dir" "$src"
	fi
}

image()
{
	if is_stock "$1"; then
		echo "$2/boot/vmlinuz-$(<"$2/release")"
	else
		echo "$2/arch/x86/boot/bzImage"
	fi
}

kdir()
{
	if is_stock "$1"; then
		echo "$2/usr/src/linux-headers-$(<"$2/release")"
	else
		echo "$2"
	fi
}

modules()
{
	is_stock "$1" || return 0
	echo "$2/lib/modules/$(<"$2/release")"
}

version()
{
	if is_stock "$1"; then
		echo "$(<"$2/release") ${2##*_}"
	else
		echo "$(<"$2/include/config/kernel.release") ${2##*/"$1-"}"
	fi
}

main()
{
	local command=${1:-} name

	case $command in
	list)
		tr ' ' '\n' <<<"$stock $debug"
		;;
	fetch)
		shift
		for name; do
			fetch "$name"
		done
		;;
	image | kdir | modules | version)
		[ $# = 2 ] || die "$command needs one kernel"
		fetch "$2"
		"$command" "$2" "$dir"
		;;
	source)
		fetch_source "${2:?which source}"
		;;
	*)
		sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
		exit 2
		;;
	esac
}

# On one line: the script may be edited while it runs.
main "$@"; exit
