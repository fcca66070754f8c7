# Every file has the form that docs/formats.md shows. VERBOSE=1 prints them, to
# be pasted there.
# kernels: stock
# time: 60
. /lib.sh

# shape FILE: numbers and names replaced, runs of like lines made one
shape()
{
	[ -z "$VERBOSE" ] || echo "==== $1"
	cat "$1" >/tmp/text || die "$1 can't be read"
	[ -z "$VERBOSE" ] || cat /tmp/text
	sed -E '
		s/^ [^ ]+\+0x[0-9a-f]+\/0x[0-9a-f]+( \[[a-z0-9_]+( \(unloaded\))?\])?$/ FRAME/
		s/^pid: [0-9]+( \([^)]*\))?( x[0-9]+, .*)?$/pid: P/
		s/^cache: [a-z].*$/cache: C/
		s/0x[0-9a-f]+/X/g
		s/\b[0-9]+\b/N/g' /tmp/text | uniq >/tmp/shape
}

# same FILE <SHAPE
same()
{
	shape "$1"
	cat >/tmp/want
	diff /tmp/want /tmp/shape || die "$1 has another form"
}

# Each block of a report once, whatever its numbers.
blocks()
{
	awk 'BEGIN { RS = ""; ORS = "\n\n" } !seen[$0]++' /tmp/shape
}

counters()
{
	cat <<-END
		seen: N
		recorded: N
		recorded_bytes: N
		erased: N
		replaced: N
		overwritten: N
		cleared: N
		untracked_free: N
		erase_busy: N
	END
}

refusals()
{
	for r in no_memory library_full no_stack read_only nmi_busy recursion \
		disabled sampled_out log_busy; do
		echo "refused_$r: N"
	done
}

amounts()
{
	for a; do
		printf '%s_count: N\n%s_bytes: N\n' "$a" "$a"
	done
}

check_top_files()
{
	for f in "$D"/*; do
		[ -d "$f" ] || [ -s "$f" ] || shape "$f"
		[ -d "$f" ] || [ -n "$(cat "$f")" ] || die "$f says nothing"
	done
	same "$D/new" <<-END
		# write a name to make a log; there are:
		leaks enabled
		events disabled
	END
	same "$D/remove" <<-END
		# write a name to remove that log; there are:
		leaks enabled
		events disabled
	END
	shape "$D/README"
	for f in "$D"/* "$D"/leaks/*; do
		[ -d "$f" ] || grep -q "[ /]${f##*/} " /tmp/text ||
			die "README does not know ${f##*/}"
	done
	shape "$D/library"
	! grep -v '^[a-z0-9_]*: ' /tmp/shape || die "library has other lines"
	for key in state stacks memory_bytes memory_limit_bytes captures; do
		grep -q "^$key: " /tmp/shape || die "library has no $key"
	done
	shape "$D/images"
	grep -q ' kernel$' /tmp/text || die "images has no kernel"
	grep -q ' btlog$' /tmp/text || die "images has no btlog"
}

check_settings()
{
	for s in type=hash records=65536 depth=16 sample=1 cut=irq \
		source=slab:kmalloc-64 enable=1 min_age=0 min_size=0 sort=bytes \
		top_n=20 pid=0 cache= module=; do
		[ -z "$VERBOSE" ] || echo "==== leaks/${s%%=*}"
		expect_eq "${s%%=*}" "$(cat "$D/leaks/${s%%=*}")" "${s#*=}"
	done
	same "$D/leaks/clear" <<-END
		# write anything to forget all records
	END
	for f in "$D"/* "$D"/leaks/*; do
		case ${f##*/} in
		README | library | images | top | stats) want=400 ;;
		leaks | events) continue ;;
		*) want=600 ;;
		esac
		expect_eq "mode of $f" "$(stat -c %a "$f")" $want
	done
}

check_report()
{
	shape "$D/leaks/top"
	sed -n 1p /tmp/text | grep -qx '# btlog 1 top log=leaks enabled=1 type=hash records=65536 depth=16 sample=1 cut=irq source=slab:kmalloc-64 min_age=0 min_size=0 pid=0 cache= module= sort=bytes top_n=20' ||
		die "header: $(sed -n 1p /tmp/text)"
	{
		sed -n 1,2p /tmp/shape
		echo "count: N"
		echo "bytes: N"
		echo "age_s: N..N"
		echo "pid: P"
		echo "cache: C"
		echo " FRAME"
		echo
		echo "# totals of leaks"
		echo "stacks: N"
		echo "stacks_shown: N"
		amounts shown below_top filtered own read
		counters
		echo "in_flight: N"
		echo "outstanding: N"
		echo
	} >/tmp/want
	blocks >/tmp/got
	diff /tmp/want /tmp/got || die "leaks/top has another form"
}

check_event_report()
{
	shape "$D/events/top"
	{
		sed -n 1,2p /tmp/shape
		for op in alloc free; do
			echo "op: $op"
			echo "count: N"
			echo "bytes: N"
			echo "estimated_count: N"
			echo "estimated_bytes: N"
			echo "age_s: N..N"
			echo "pid: P"
			echo "cache: C"
			echo " FRAME"
			echo " ..."
			echo
		done
		echo "# totals of events"
		echo "stacks: N"
		echo "stacks_shown: N"
		amounts shown shown_estimated below_top filtered own read read_estimated
		counters
		echo "refused_sampled_out: N"
		echo "in_flight: N"
		echo "outstanding: N"
		echo
	} | sort >/tmp/want
	# Blocks with fewer than the three frames, or of one kind only, may lack.
	blocks | sort -u >/tmp/got
	sort -u /tmp/want >/tmp/want_lines
	diff /tmp/want_lines /tmp/got | grep '^>' && die "events/top has another form"
	grep -q '^estimated_count: N$' /tmp/shape || die "no estimate"
	grep -q '^ \.\.\.$' /tmp/shape || die "no stack is cut"
}

check_find()
{
	exec 3<>"$D/made/find"
	echo 0x1000 >&3
	cat <&3 >/tmp/found
	exec 3>&-
	same /tmp/found <<-END
		# btlog N find log=made address=X found=N

		op: alloc
		bytes: N
		age_s: N.N
		pid: P
		cpu: N
		 FRAME

	END
	same "$D/made/find" <<-END
		# write an address and read on through the same open file:
		#	exec N<>find; echo X >&N; cat <&N
	END
}

check_stats()
{
	shape "$D/leaks/stats"
	{
		echo "enabled: N"
		echo "type: hash"
		echo "records: N"
		echo "depth: N"
		echo "sample: N"
		echo "cut: irq"
		echo "source: slab:kmalloc-N"
		counters
		refusals
		echo "in_flight: N"
		echo "outstanding: N"
		echo "memory_bytes: N"
	} >/tmp/want
	grep -v '^slab_\|^missed_' /tmp/shape >/tmp/got
	diff /tmp/want /tmp/got || die "stats has another form"
}

load_btlog
expect_eq "top of nothing" "$(cat "$D/top")" "# no log is enabled; see README"
echo leaks >"$D/new"
echo slab:kmalloc-64 >"$D/leaks/source"
echo 1 >"$D/leaks/enable" || die "enable"
load leaky
wait_for 30 sh -c 'dmesg | grep -q "leaky: leaked"'
sleep 1
echo events >"$D/new"

check_top_files
check_settings
check_report
check_stats

for s in type=log source=slab sample=bytes:1000 depth=3 enable=1 top_n=5; do
	echo "${s#*=}" >"$D/events/${s%%=*}" || die "$s"
done
rmmod leaky
check_event_report
echo 0 >"$D/leaks/enable"
echo 0 >"$D/events/enable"

echo made >"$D/new"
echo 1 >"$D/made/enable"
load feed addr=4096 log=made
echo record >/sys/module/feed/parameters/run || die "feed"
check_find
rmmod feed
unload_btlog
