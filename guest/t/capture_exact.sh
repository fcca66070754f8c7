# Every capture by the frame cache is the one that stack_trace_save() gives. For
# LENGTH (default 12) captures of all shapes are taken in all contexts and of
# what the kernel allocates, first alone, then beside whatever changes text and
# stacks: modules at the same address, tracers, kprobes, BPF, CPU hotplug.
# kernels: stock
# cpus: 2
# time: 100
. /lib.sh

: "${LENGTH:=12}"
T=/sys/kernel/tracing

library()
{
	value "$D/library" "$1"
}

# Whole stacks and frames.
from_caches()
{
	echo $(($(library captures_remembered) + $(library captures_cached)))
}

# --- What goes on beside the captures ---

files_and_processes()
{
	while going_on; do
		ls -lR /sys/class /proc/self >/dev/null
		tar cf - /t /bin/busybox | md5sum >/dev/null
		for w in fork file ipc map pipe tcp udp unix; do
			! going_on || workload $w 2
		done
	done >/dev/null 2>&1
}

twins()
{
	local twin

	while going_on; do
		for twin in twin_a twin_b; do
			insmod /ko/$twin.ko
			sed -n "s/^$twin .* //p" /proc/modules
			rmmod $twin
		done
	done >/tmp/twins 2>/dev/null
}

# The unwinder of 6.12 itself warns if it is asked in return_to_handler().
graph()
{
	case $(uname -r) in
	6.12*) ;;
	*) echo function_graph ;;
	esac
}

tracers()
{
	[ -e $T/set_ftrace_filter ] || return
	while going_on; do
		for f in 'vfs_*' 'ksys_*' '*kmalloc*' 'do_sys_*'; do
			echo "$f"
		done >$T/set_ftrace_filter
		for tracer in function $(graph) nop; do
			echo $tracer >$T/current_tracer
			sleep 0.5
		done
		echo >$T/set_ftrace_filter
	done 2>/dev/null
}

kprobes()
{
	[ -e $T/kprobe_events ] || return
	while going_on; do
		echo 'p:tp1 vfs_read
			r:tr1 vfs_read
			p:tp2 do_filp_open+5
			r:tr2 do_filp_open
			r:tr3 kmem_cache_alloc
			r:tr4 vfs_statx' | while read -r line; do
			echo "$line" >>$T/kprobe_events
		done
		echo 1 >$T/events/kprobes/enable
		sleep 1
		echo 0 >$T/events/kprobes/enable
		echo >$T/kprobe_events
	done 2>/dev/null
}

bpf()
{
	while going_on; do
		bpf_alloc 20 || return
	done >/tmp/bpf 2>&1
}

# phase NAME LENGTH ACTOR...
phase()
{
	local name=$1 took=$2 actor actors=
	shift 2

	rm -f /tmp/stop
	before_captures=$(library captures)
	before_cached=$(from_caches)
	before_nmi=$(library captures_fallback_nmi)
	before_misses=$(library frame_misses)
	for actor; do
		$actor &
		actors="$actors $!"
	done
	while [ $took -gt 0 ]; do
		# Who waits for the module longer is taken for hung.
		load tcapture "seconds=$((took < 20 ? took : 20))"
		rmmod tcapture
		took=$((took - 20))
	done
	: >/tmp/stop
	# shellcheck disable=SC2086 # a list
	wait $actors
	all=$(($(library captures) - before_captures))
	nmis=$(($(library captures_fallback_nmi) - before_nmi))
	cached=$(($(from_caches) - before_cached))
	misses=$(($(library frame_misses) - before_misses))
	echo "$name: $all captures, $cached from the caches, $nmis in NMI, $misses misses"
	expect_eq "mismatches after $name" "$(library mismatches)" 0
}

load_btlog capture_verify=1
new_log short source=slab depth=8 records=4096
new_log usual source=slab records=4096
new_log deep source=slab depth=30 cut=none records=4096
new_log frees type=log source=slab:maple_node,skbuff_head_cache,kmalloc-* records=4096
expect_eq "capture" "$(library capture)" cached

phase quiet $((LENGTH / 2)) files_and_processes
expect_le "fallbacks in 1000 captures" $(((all - nmis - cached) * 1000 / all)) 50
# Frames that push each other out of the cache would miss in most captures.
expect_le "misses in 1000 captures" $((misses * 1000 / all)) 50
phase changing $((LENGTH - LENGTH / 2)) files_and_processes twins tracers \
	kprobes bpf hotplug
loads=$(wc -l </tmp/twins)
echo "twins: $loads loads, $(sort -u /tmp/twins | wc -l) places"
expect_ge "loads of modules" "$loads" 2
[ ! -s /tmp/bpf ] || cat /tmp/bpf

grep -E '^(capture|frame_|verified|mismatches)' "$D/library"
expect_ge "captures" "$(library verified)" 100000
for log in short usual deep frees; do
	balanced $log
done
