# BT-30: btlog's own functions are traced while they run at full contention,
# and so is what they call: nobody waits for anybody for ever.
# kernels: stock 6.1-lockdep
# time: 90
. /lib.sh

T=/sys/kernel/tracing

load_btlog
load tm
new_log hash source=slab records=65536
new_log ring source=slab type=log records=4096

if has_config FUNCTION_TRACER; then
	echo ':mod:btlog' >$T/set_ftrace_filter || die "no function to trace"
	echo function >$T/current_tracer
fi
for f in btlog:btlog_record btlog:btlog_erase btlog:btref_put stack_trace_save; do
	echo "p:bt30/${f#*:} $f" >>$T/kprobe_events || die "no probe at $f"
done
# A return probe is in the way of the stacks that are taken below it.
echo "r:bt30/ret_record btlog:btlog_record" >>$T/kprobe_events
echo 1 >$T/events/bt30/enable

tm pingpong "$(nproc)" 20000
i=0
while [ $i -lt 40 ]; do
	ls -l /proc/self/ >/dev/null
	cat $D/hash/top >/dev/null
	i=$((i + 1))
done
tm free kmalloc A kfree task

echo 0 >$T/events/bt30/enable
hits=$(awk '$1 ~ /btlog_record/ { sum += $2 } END { print sum + 0 }' $T/kprobe_profile)
echo "hits of the probes at btlog_record: $hits"
expect_ge "hits" "$hits" 1000
echo nop >$T/current_tracer
echo >$T/set_ftrace_filter
echo >$T/kprobe_events
expect_eq "left of tm" "$(of_site hash 9 siteA)" "0 0 0"
balanced hash
balanced ring
expect_eq "library" "$(value $D/library state)" ok
