# References and records are misused and damaged in each way: the library says
# so once, takes nothing new, keeps what it knows, and the machine lives.
# kernels: 6.12-kasan 6.1-lockdep
# time: 90
# expect-splat: WARNING: .*\[btlog\]
. /lib.sh

load_btlog
load broken
faults=$(dmesg | sed -n 's/.*broken: fault //p')
rmmod broken
unload_btlog
expect_ge "number of faults" "$(echo "$faults" | wc -l)" 20

for fault in $faults; do
	dmesg -c >/dev/null
	load_btlog
	load broken "fault=$fault"
	expect_eq "reports of $fault" \
		"$(dmesg | grep -c 'the library is read-only from now on')" 1
	! dmesg | grep 'broken: ' || die "$fault"
	echo "$fault: $(value $D/library state)"
	rmmod broken
	unload_btlog
done
