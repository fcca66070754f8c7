# shellcheck shell=dash disable=SC3043
# For the bench's scripts in bench/t, beside /lib.sh: a folder shared with the
# host is mounted on /mnt and holds this file, the programs, and the results.
# A result is a line `NAME VALUE` in /mnt/results; names are dotted.

B=/sys/kernel/debug/btlog_bench

result()
{
	echo "$1 $2" >>/mnt/results
	echo "$1 $2"
}

# bench COMMAND...: the output of a command of bench_load.ko or bench_api.ko
bench()
{
	echo "$*" >$B || die "bench: $*"
	cat $B
}

# bench_value KEY COMMAND...: one line of it
bench_value()
{
	local key=$1

	shift
	bench "$@" | sed -n "s/^$key: //p"
}

# bench_results PREFIX COMMAND...: every line as a result
bench_results()
{
	local prefix=$1 key value

	shift
	bench "$@" >/tmp/lines
	while read -r key value; do
		result "$prefix.${key%:}" "$value"
	done </tmp/lines
}

# new_log NAME [KEY=VALUE...]
new_log()
{
	local name=$1 setting

	shift
	echo "$name" >$D/new || die "no log $name"
	for setting; do
		echo "${setting#*=}" >"$D/$name/${setting%%=*}" ||
			die "$name: $setting"
	done
}

enable()
{
	echo 1 >"$D/$1/enable" || die "$1 can't be enabled"
}

disable()
{
	echo 0 >"$D/$1/enable" || die "$1 can't be disabled"
}

# What bench_api.ko looks for.
make_api_logs()
{
	local log

	new_log bench "records=${1:-65536}"
	new_log ring type=log
	new_log sampled sample=1000000
	for log in bench ring sampled; do
		enable $log
	done
}

# Deferred parts of the boot are still at work in the first seconds.
settle()
{
	local i=0

	while [ $i -lt 20 ] && [ "$(cut -d. -f1 /proc/uptime)" -lt 8 ]; do
		sleep 1
		i=$((i + 1))
	done
}

# --- The workload ---

set_up_work()
{
	cp /mnt/work /tmp/
	mkdir /tmp/empty /tmp/some
	split -b 4000 /kernel.config /tmp/some/part
	tar cf /tmp/some.tar -C /tmp some
	cd /tmp/empty || die "no folder"
}

# One round: processes and sockets, then what people do with files.
work_round()
{
	local i=0

	/tmp/work 3 || die "work"
	while [ $i -lt 10 ]; do
		echo $i | sed 's/1/2/' | wc -l >/dev/null
		i=$((i + 1))
	done
	tar xf /tmp/some.tar
	ls -lR . >/dev/null
	find . -type f -size +1 >/dev/null
	grep -r CONFIG_X86 some >/dev/null
	tar cf other.tar some
	cp -r some other
	rm -r some other other.tar
	ls -lR /sys/class >/dev/null
	find /proc/sys -type f >/dev/null
}

# rounds N: nanoseconds that the CPU was busy with them
rounds()
{
	local before left=$1

	before=$(bench_value busy_ns clock)
	while [ $left -gt 0 ]; do
		work_round
		left=$((left - 1))
	done
	echo $(($(bench_value busy_ns clock) - before))
}

warm_up()
{
	rounds 4 >/dev/null
}

# work NAME: the first round after a change fills caches and tables
work()
{
	rounds 1 >/dev/null
	result "work.$1" "$(rounds 8)"
}
