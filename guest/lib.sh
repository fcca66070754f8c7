# shellcheck shell=bash
# For the tests in guest/t, which start with `. /lib.sh`. They run as root in a
# guest of their own; what they print goes to the console. Exit status 0 is
# success, 77 means skipped, with the last line as the reason.
#
# A test's head may hold, for the runner on the host:
#
#	# kernels: 6.1 6.12          where it runs (that is the default); `all`,
#	                             `stock` and `debug` stand for sets, `none`
#	                             is for a test that only runs by name
#	# cpus: 2                    and in what machine
#	# mem: 1024
#	# time: 60                   seconds, four times that on debug kernels
#	# append: preempt=full       on the kernel's command line
#	# modules: ext4 loop         stock modules, for need_module
#	# qemu: -nic user            more arguments for QEMU
#	# expect-splat: REGEX        a splat that must appear, and no other
#	# ktap: yes                  KUnit's cases count on their own

D=/sys/kernel/debug/btlog

die()
{
	echo "failed: $*"
	exit 1
}

skip()
{
	echo "$*"
	exit 77
}

# expect_eq NAME GOT WANT
expect_eq()
{
	[ "$2" = "$3" ] || die "$1 is '$2', want '$3'"
}

# expect_le NAME GOT LIMIT, expect_ge NAME GOT LIMIT
expect_le()
{
	[ "$2" -le "$3" ] || die "$1 is $2, want at most $3"
}

expect_ge()
{
	[ "$2" -ge "$3" ] || die "$1 is $2, want at least $3"
}

# expect_fail COMMAND...: must not succeed
expect_fail()
{
	! "$@" 2>/dev/null || die "succeeded, should not have: $*"
}

# wait_for SECONDS COMMAND...: until COMMAND succeeds
wait_for()
{
	local tries=$(($1 * 10))

	shift
	while [ $tries -gt 0 ]; do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
		tries=$((tries - 1))
	done
	die "waited in vain for: $*"
}

load_btlog()
{
	insmod /ko/btlog.ko "$@" || die "btlog does not load: $*"
}

unload_btlog()
{
	rmmod btlog || die "btlog does not unload"
}

# load NAME [PARAMETER...]: another module built with btlog
load()
{
	local name=$1

	shift
	insmod "/ko/$name.ko" "$@" || die "$name does not load: $*"
}

# need_module NAME...: the kernel's own modules, with what they depend on
need_module()
{
	local name ko

	for name; do
		while read -r ko; do
			[ -d "/sys/module/$(basename "$ko" .ko | tr - _)" ] ||
				insmod "/ko/stock/$ko" || die "$name needs $ko"
		done <"/ko/stock/$name.order"
	done
}

# mount_share TAG: a folder of the host's, which QEMU got with -virtfs, on /mnt
mount_share()
{
	need_module virtio_pci 9pnet_virtio 9p
	mount -t 9p -o trans=virtio,version=9p2000.L "$1" /mnt ||
		die "no share $1"
}

# A test that does much at once starts actors, which act while this says so.
going_on()
{
	[ ! -e /tmp/stop ]
}

# An actor that takes the last CPU off and on.
hotplug()
{
	local cpus cpu

	cpus=$(cat /sys/devices/system/cpu/present)
	cpu=/sys/devices/system/cpu/cpu${cpus#*-}/online
	[ -e $cpu ] || return
	while going_on; do
		echo 0 >$cpu
		sleep 1
		echo 1 >$cpu
		sleep 2
	done
}

# under_preempt MODE: in a boot with preempt=MODE, the tests of nested events, of
# all contexts and of unloading
under_preempt()
{
	local t module

	grep -q "($1)" /sys/kernel/debug/sched/preempt ||
		die "the kernel isn't booted with preempt=$1"
	for t in bt03_nested bt31_contexts bt16_concurrent bt34_unload report; do
		echo "$t"
		sh /t/$t.sh || die "$t"
		for module in tm feed btlog; do
			! is_loaded $module || rmmod $module
		done
	done
}

# has_config NAME: is it y or m in this kernel?
has_config()
{
	grep -q "^CONFIG_$1=[ym]" /kernel.config
}

is_loaded()
{
	[ -d "/sys/module/$1" ]
}

# value FILE KEY: from a file of `key: value` lines
value()
{
	sed -n "s/^$2: //p" "$1"
}

# --- Logs ---

# new_log NAME [KEY=VALUE]...: made, set and enabled
new_log()
{
	local log=$1 set

	shift
	echo "$log" >$D/new || die "no log $log"
	for set; do
		echo "${set#*=}" >"$D/$log/${set%%=*}" || die "$log refuses $set"
	done
	echo 0 >"$D/$log/top_n"
	echo 1 >"$D/$log/enable" || die "$log can't be enabled"
}

# counter LOG KEY
counter()
{
	value "$D/$1/stats" "$2"
}

# balanced LOG: every event and every record is accounted for
balanced()
{
	awk -F ': ' '
		{ v[$1] = $2 }
		/^refused_/ { refused += $2 }
		END {
			if (v["seen"] == v["recorded"] + refused + v["in_flight"] &&
			    v["recorded"] == v["outstanding"] + v["erased"] +
			    v["replaced"] + v["overwritten"] + v["cleared"])
				exit 0
			exit 1
		}' "$D/$1/stats" || {
		cat "$D/$1/stats"
		die "$1: the counts don't add up"
	}
}

# --- The module that knows what is true: guest/mod/tm.c ---

TM=/sys/kernel/debug/tm

# tm COMMAND...
tm()
{
	echo "$*" >$TM/cmd || die "tm refuses: $*"
}

# tm_may COMMAND...: false if this kernel doesn't allow the combination
tm_may()
{
	local error

	# shellcheck disable=SC2116 # it is the file that may complain
	error=$(echo "$*" 2>&1 >$TM/cmd) && return
	case $error in
	*"not supported"*) return 1 ;;
	esac
	die "tm refuses: $*: $error"
}

tm_state()
{
	value $TM/state "$1"
}

# of_site LOG FRAMES FUNCTION [OP]: `COUNT BYTES STACKS`, summed over the
# stacks of the report that have one of tm's sites among their first FRAMES
# frames, if the first such site is FUNCTION.
of_site()
{
	awk -v RS= -v frames="$2" -v site="$3" -v op="$4" '
		/^#/ { next }
		{
			n = split($0, line, "\n")
			count = bytes = depth = 0
			first = is = ""
			for (i = 1; i <= n; i++) {
				if (line[i] ~ /^count: /)
					count = substr(line[i], 8)
				if (line[i] ~ /^bytes: /)
					bytes = substr(line[i], 8)
				if (line[i] ~ /^op: /)
					is = substr(line[i], 5)
				if (line[i] ~ /^ / && depth++ < frames && !first &&
				    match(line[i], /site[ABCP]\+/))
					first = substr(line[i], RSTART, RLENGTH - 1)
			}
			if (first == site && (op == "" || op == is)) {
				c += count
				b += bytes
				stacks++
			}
		}
		END { printf "%d %d %d\n", c, b, stacks }' "$D/$1/top"
}
