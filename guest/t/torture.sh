# Everything at once, for MINUTES (default 1): what guest/mod/torture.c does in
# the kernel, and from here readers and writers of all files, some of them
# killed, a module that is recorded and comes and goes, memory pressure and CPU
# hotplug. In rounds, with btlog loaded anew and set up differently for each.
# kernels: none
# cpus: 3
# mem: 1024
# time: 60
. /lib.sh

: "${MINUTES:=1}"
ROUND=15

random()
{
	echo $((RANDOM % $1))
}

# pick WORD...: one of them
pick()
{
	shift $((RANDOM % $#))
	echo "$1"
}

files()
{
	find $D -type f -perm -0400
}

# --- What goes on beside the module's torture ---

readers()
{
	while going_on; do
		for file in $(files); do
			cat "$file" >/dev/null
		done
	done 2>/dev/null
}

# Its own logs, with events of the real allocator, in all types and settings.
writers()
{
	while going_on; do
		log=$(pick one two)
		case $(random 8) in
		0) echo "$log" >$D/new ;;
		1) echo "$log" >$D/remove ;;
		2) echo 0 >"$D/$log/enable" ;;
		3) echo 1 >"$D/$log/clear" ;;
		4) pick hash log x >"$D/$log/type" ;;
		5) pick 1 10 bytes:8k 0 >"$D/$log/sample" ;;
		6) pick slab slab:kmalloc-\* slab: >"$D/$log/source" ;;
		7) pick 100 5000 50000 -5 >"$D/$log/records" ;;
		esac
		echo 1 >"$D/$log/enable"
		echo 0xffff888000000040 >$D/torture/find
	done 2>/dev/null
}

# The torture logs may be switched, but are not given a source.
switchers()
{
	while going_on; do
		log=$(pick torture torture0 torture1 torture2 torture3)
		random 2 >"$D/$log/enable"
		echo 1 >"$D/$log/clear"
		pick bytes count age >"$D/$log/sort"
		sleep 0.1
	done 2>/dev/null
}

killers()
{
	while going_on; do
		cat $D/torture*/top $D/top >/dev/null 2>&1 & r=$!
		(while :; do echo 0 >$D/one/enable; echo 1 >$D/one/enable; done) \
			2>/dev/null & w=$!
		usleep $(($(random 20) * 10000))
		kill -9 $r $w
		wait $r $w
	done 2>/dev/null
}

module_churn()
{
	while going_on; do
		insmod /ko/tm.ko
		echo alloc kmalloc A task 500 >/sys/kernel/debug/tm/cmd
		echo free kmalloc A kfree task >/sys/kernel/debug/tm/cmd
		rmmod tm
	done 2>/dev/null
}

memory_pressure()
{
	while going_on; do
		mb=$(awk '/^MemAvailable:/ { print int($2 / 1024) - 100 }' /proc/meminfo)
		[ "$mb" -le 0 ] || dd if=/dev/zero of=/dev/shm/fill bs=1M count="$mb"
		rm -f /dev/shm/fill
		sleep 1
	done >/dev/null 2>&1
}

# --- Rounds ---

parameters()
{
	case $(($1 % 3)) in
	0) echo ;;
	1) echo lib_max_mb=4 ;;
	2) echo capture=stack_trace_save lib_timing=1 ;;
	esac
	echo capture_verify=1
}

remove_own_logs()
{
	for log in one two; do
		[ ! -e "$D/$log" ] || echo "$log" >$D/remove
	done
}

# round NUMBER SECONDS
round()
{
	rm -f /tmp/stop
	load_btlog $(parameters "$1")
	insmod /ko/torture.ko "seconds=$2" & torture=$!
	wait_for 10 [ -e $D/torture ]
	for actor in readers writers switchers killers module_churn \
		memory_pressure hotplug; do
		$actor &
		actors="$actors $!"
	done
	sleep "$2"
	: >/tmp/stop
	wait $actors
	actors=
	remove_own_logs
	wait $torture || die "round $1: see above"
	expect_eq "mismatches" "$(value $D/library mismatches)" 0
	rmmod torture || die "torture does not unload"
	unload_btlog
}

left=$((MINUTES * 60))
number=0
while [ $left -gt 0 ]; do
	round $number $ROUND
	number=$((number + 1))
	left=$((left - ROUND))
done
echo "$number rounds of $ROUND s"
