# What the bench measures with a clock that counts instructions.
# kernels: stock
# mem: 1536
# time: 1800
# modules: virtio_pci 9p 9pnet_virtio
. /lib.sh
mount_share bench
. /mnt/guest.sh

PAIRS=3000
cp /mnt/leak /tmp/
set_up_work

pair()
{
	result "pair.$1" "$(bench_value pair pair 16 $PAIRS)"
}

set_sample()
{
	disable leaks
	echo "$1" >$D/leaks/sample
	enable leaks
}

# --- Without anything ---

settle
load bench_load
result ticks_of_1000 "$(bench_value ticks_of_1000 calibrate)"
warm_up
pair none.before
work none

# --- btlog ---

load_btlog lib_max_mb=256
load bench_api
pair none.loaded
make_api_logs
bench records 1024 >/dev/null
bench_results records records 1024
bench_results filled.half filled 32768 1024
bench_results filled.full filled 70000 1024
for depth in 8 16 30; do
	bench_results "capture.$depth" capture $depth 1024
done
for log in bench ring sampled; do
	disable $log
done

new_log leaks source=slab
for sample in 1 10 100; do
	set_sample $sample
	pair btlog.$sample
done
set_sample 1
work btlog
set_sample bytes:512K
pair btlog_always_on
work btlog_always_on
disable leaks
pair none.disabled
new_log events type=log source=slab
enable events
pair btlog_log
work btlog_log
disable events
work none

# --- The estimate of the sampled log, beside one that has everything ---

set_sample bytes:512K
new_log exact source=slab records=262144
enable exact
bench hold 256 >/dev/null
for log in leaks exact; do
	echo 0 >$D/$log/top_n
	cat $D/$log/top >/tmp/$log.top
done
result estimate.bytes "$(value /tmp/leaks.top read_estimated_bytes)"
result estimate.samples "$(value /tmp/leaks.top read_count)"
result estimate.exact_bytes "$(value /tmp/exact.top read_bytes)"
bench hold 0
disable exact
disable leaks

# --- Memory for 10,000 stacks ---

result memory.btlog.empty "$(value $D/library memory_bytes)"
result memory.btlog.empty_stacks "$(value $D/library stacks)"
set_sample 1
bench stacks 10000 16
result memory.btlog.bytes "$(value $D/library memory_bytes)"
result memory.btlog.stacks "$(value $D/library stacks)"
result memory.btlog.log_bytes "$(value $D/leaks/stats memory_bytes)"
result memory.btlog.records "$(value $D/leaks/stats records)"
bench stacks 0 16
disable leaks

# --- Reports and growth ---

disable bench
echo 1048576 >$D/bench/records
enable bench
for records in 10000 100000 1000000; do
	bench fill $records 10000 >/dev/null
	before=$(bench_value busy_ns clock)
	cat $D/bench/top >/tmp/top
	result top.$records $(($(bench_value busy_ns clock) - before))
done
disable bench
echo 1 >/sys/module/btlog/parameters/lib_timing
bench_results grow grow 1000000
result grow.longest_hold_ns "$(value $D/library longest_hold_ns)"
rmmod bench_api
unload_btlog

# --- btlog with the kernel's unwinder ---

load_btlog capture=stack_trace_save
new_log leaks source=slab
for sample in 1 10 100; do
	set_sample $sample
	pair btlog_reference.$sample
done
set_sample 1
work btlog_reference
disable leaks
unload_btlog
work none

# --- Others ---

for sample in 1 10 100; do
	bench probe 3 $sample
	pair depot.$sample
done
bench probe 3 1
work depot
bench probe 4 1
pair depot_both
work depot_both
bench probe 1 1
pair empty
work empty
bench probe 0 1

start_leak()
{
	/tmp/leak "$@" || die "leak"
}

stop_leak()
{
	kill "$(cat leak.pid)"
	wait_for 20 test -e leak.out
	cat leak.out
	rm -f leak.pid leak.out
}

for sample in 1 10 100; do
	start_leak -s $sample
	pair bpf.$sample
	[ $sample != 1 ] || work bpf
	stop_leak
done

hist()
{
	local event

	for event in kmalloc kmem_cache_alloc; do
		echo "$1hist:keys=stacktrace:vals=bytes_alloc:size=16384" \
			>/sys/kernel/tracing/events/kmem/$event/trigger ||
			die "hist trigger"
	done
}

hist ''
pair hist
work hist
hist '!'
work none

# --- Memory of others, for the same stacks ---

bench probe 3 1
result memory.depot.empty "$(bench_value bytes depot)"
bench stacks 10000 16
result memory.depot.bytes "$(bench_value bytes depot)"
bench stacks 0 16
bench probe 0 1
start_leak -r 65536 -n 16384 >/tmp/maps
result memory.bpf.stacks_bytes "$(value /tmp/maps stacks_bytes)"
result memory.bpf.records_bytes "$(value /tmp/maps records_bytes)"
bench stacks 10000 16
stop_leak >/tmp/kept
result memory.bpf.stacks "$(value /tmp/kept stacks)"
result memory.bpf.stacks_lost "$(value /tmp/kept stacks_lost)"
bench stacks 0 16
