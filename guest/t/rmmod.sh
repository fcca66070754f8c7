# btlog goes away while tasks allocate and others read its report, again and
# again, and leaves nothing behind. ROUNDS or SECONDS end it, whichever first.
# kernels: stock 6.12-kasan
# time: 90
# cpus: 2
. /lib.sh

: "${ROUNDS:=200}" "${SECONDS_MAX:=50}"

hooked()
{
	wc -l </sys/kernel/tracing/enabled_functions
}

# With rests: what never sleeps makes each grace period of RCU tasks last for
# seconds, and this is about many rounds.
allocate()
{
	while [ ! -e /tmp/stop ]; do
		workload pipe 20
		sleep 0.02
	done
}

# Whether there is a report or not.
read_reports()
{
	while [ ! -e /tmp/stop ]; do
		cat "$D/top" "$D/all/top"
		sleep 0.02
	done >/dev/null 2>&1
}

seconds()
{
	cut -d. -f1 /proc/uptime
}

# As a user would: it is busy as long as a file is open.
rmmod_until_gone()
{
	local tries=0

	until rmmod btlog 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 2000 ] || die "btlog never gets free"
	done
	busy=$((busy + tries))
}

before=$(hooked)
for _ in 1 2 3 4; do
	allocate &
done
read_reports &
read_reports &

round=0
busy=0
end=$(($(seconds) + SECONDS_MAX))
while [ $round -lt "$ROUNDS" ] && [ "$(seconds)" -lt $end ]; do
	load_btlog logs=all:source=slab,records=4096
	[ $((round % 4)) != 0 ] || cat "$D/all/top" >/dev/null
	rmmod_until_gone
	[ ! -e "$D" ] || die "files are left behind"
	round=$((round + 1))
done
: >/tmp/stop
wait
echo "$round rounds, rmmod was refused $busy times"
expect_ge rounds $round 2
expect_eq "hooked functions" "$(hooked)" "$before"
! is_loaded btlog || die "btlog is still there"
