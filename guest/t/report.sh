# A report adds up, and its filters and orders do what they say.
# kernels: stock 6.12-kasan
# time: 120
. /lib.sh

log=$D/made
feed=/sys/module/feed/parameters

# feed COMMAND [PARAMETER=VALUE]...
feed()
{
	local what=$1 p

	shift
	for p; do
		echo "${p#*=}" >"$feed/${p%%=*}" || die "feed $p"
	done
	echo "$what" >"$feed/run" || die "feed $what"
}

set_filter()
{
	echo "$2" >"$log/$1" || die "$1=$2"
}

seconds()
{
	cut -d. -f1 /proc/uptime
}

no_filters()
{
	for f in min_age=0 min_size=0 pid=0 top_n=0 cache= module= sort=bytes; do
		set_filter "${f%%=*}" "${f#*=}"
	done
}

# Reads the report; the totals' sums and its own blocks must agree.
read_top()
{
	cat "$log/top" >/tmp/top || die "top can't be read"
	awk '
	BEGIN { RS = ""; FS = "\n" }
	function amount(key,    i) {
		for (i = 1; i <= NF; i++)
			if (index($i, key ": ") == 1)
				return substr($i, length(key) + 3) + 0
		return 0
	}
	$1 ~ /^# totals/ {
		for (i = 1; i <= NF; i++) {
			split($i, kv, ": ")
			if (kv[1] ~ /^(shown|below_top|filtered|own|unranked|not_kept_.*)_count$/)
				count += kv[2]
			if (kv[1] ~ /^(shown|below_top|filtered|own|unranked|not_kept_.*)_bytes$/)
				bytes += kv[2]
		}
		bad = count != amount("read_count") || bytes != amount("read_bytes")
		bad = bad || c + 0 != amount("shown_count") || b + 0 != amount("shown_bytes")
		bad = bad || n + 0 != amount("stacks_shown")
		bad = bad || amount("read_count") != amount("outstanding")
		ended = 1
		next
	}
	/^#/ { next }
	{ c += amount("count"); b += amount("bytes"); n++ }
	END { exit bad || !ended }' /tmp/top || {
		cat /tmp/top
		die "the report does not add up"
	}
}

# total KEY WANT
total()
{
	expect_eq "$1" "$(value /tmp/top "$1")" "$2"
}

# first_block KEY: of the first stack
first_block()
{
	sed -n '/^$/,$p' /tmp/top | sed -n "/^$1: /{s/^[a-z_]*: //p;q}"
}

# The counters of the log add up: what was seen has gone somewhere.
check_stats()
{
	awk -F ': ' '
	{ v[$1] = $2 }
	/^refused_/ { refused += $2 }
	END {
		exit v["seen"] != v["recorded"] + refused || v["in_flight"] ||
			v["recorded"] != v["outstanding"] + v["erased"] + \
			v["replaced"] + v["overwritten"] + v["cleared"]
	}' "$log/stats" || {
		cat "$log/stats"
		die "the counters do not add up"
	}
}

new_log()
{
	echo made >"$D/new"
	no_filters
	for s; do
		echo "${s#*=}" >"$log/${s%%=*}" || die "$s"
	done
	echo 1 >"$log/enable" || die "enable"
}

remove_log()
{
	check_stats
	echo made >"$D/remove" || die "remove"
}

# --- Orders, filters, totals ---

sums()
{
	new_log records=65536
	feed record log=made addr=0x1000000 records=1000 stacks=1 first=1 size=100
	sleep 8
	start=$(seconds)
	feed record addr=0x2000000 records=10 first=2 size=65536
	feed record addr=0x3000000 records=500 stacks=5 first=10 size=32
	feed unknown addr=0x4000000 records=7 size=8 reason=1

	read_top
	total stacks 7
	total shown_count 1510
	total read_count 1517
	total read_bytes 771416
	total not_kept_library_full_count 7
	total not_kept_library_full_bytes 56
	expect_eq "most bytes" "$(first_block bytes)" 655360
	expect_le "its age" "$(first_block age_s | sed 's/.*\.\.//')" $(($(seconds) - start + 1))
	expect_eq process "$(first_block pid)" "$$ (sh)"

	set_filter sort count
	read_top
	expect_eq "most records" "$(first_block count)" 1000
	set_filter sort age
	read_top
	expect_eq "oldest" "$(first_block count)" 1000
	expect_ge "its age" "$(first_block age_s | sed 's/.*\.\.//')" 8

	no_filters
	set_filter top_n 2
	read_top
	total stacks_shown 2
	total shown_count 1010
	total below_top_count 500
	no_filters
	set_filter min_size 100
	read_top
	total filtered_count 507
	no_filters
	# Older than the younger ones by half of what is between them.
	set_filter min_age $(($(seconds) - start + 4))
	read_top
	total shown_count 1000
	no_filters
	set_filter pid $$
	read_top
	total filtered_count 0
	set_filter pid 1
	read_top
	total shown_count 0
	no_filters
	set_filter cache "kmalloc-*"
	read_top
	total filtered_count 1517
	no_filters

	feed erase addr=0x1000000 records=400
	feed record addr=0x2000000 records=10 stacks=1 first=3 size=1
	read_top
	total read_count 1117
	expect_eq erased "$(value "$log/stats" erased)" 400
	expect_eq replaced "$(value "$log/stats" replaced)" 10
	echo 1 >"$log/clear"
	read_top
	total read_count 0
	expect_eq cleared "$(value "$log/stats" cleared)" 1117
	remove_log
}

# --- What is said of a stack ---

stacks()
{
	new_log records=65536
	feed record addr=0x1000000 records=3 stacks=1 first=1 size=1000 in_module=1
	feed record addr=0x2000000 records=2 in_module=0 truncated=1
	feed record addr=0x3000000 records=1 in_module=0 truncated=0 depth=1
	feed record addr=0x4000000 depth=60 size=10
	read_top
	total stacks 4
	expect_eq "cut stacks" "$(grep -c '^ \.\.\.$' /tmp/top)" 1
	expect_eq "frames" "$(grep -c '^ .*+0x' /tmp/top)" $((3 + 3 + 1 + 60))
	set_filter module feed
	read_top
	total stacks_shown 1
	total filtered_count 4
	grep -q '^ .*\[feed\]$' /tmp/top || die "no frame in feed"
	set_filter module nosuch
	read_top
	total stacks_shown 0
	no_filters

	echo 1 >"$log/clear"
	feed record addr=0x1000000 depth=3 records=5 first=1
	for i in 1 2 3 4 5; do
		sh -c "echo $i >$feed/records; echo $((0x2000000 + i * 65536)) >$feed/addr
			echo record >$feed/run"
	done
	read_top
	total stacks 1
	first_block pid | grep -q "^$$ (sh) x5, [0-9]* x5, [0-9]* x4, [0-9]* x3, and 2 more$" ||
		first_block pid | grep -q "^[0-9]* x5, $$ (sh) x5, [0-9]* x4, [0-9]* x3, and 2 more$" ||
		die "processes: $(first_block pid)"
	remove_log
}

# --- Sampling ---

sampling()
{
	new_log sample=10
	feed record addr=0x1000000 records=10000 stacks=1 first=1 size=64
	read_top
	n=$(first_block count)
	expect_ge samples "$n" 998
	expect_le samples "$n" 1002
	expect_eq estimated_count "$(first_block estimated_count)" $((n * 10))
	expect_eq estimated_bytes "$(first_block estimated_bytes)" $((n * 640))
	remove_log

	new_log sample=bytes:4096
	feed record records=10000 size=512
	read_top
	n=$(first_block estimated_bytes)
	expect_ge estimate "$n" $((5120000 * 85 / 100))
	expect_le estimate "$n" $((5120000 * 115 / 100))
	remove_log
}

# --- A log of events, and find ---

events()
{
	new_log type=log records=64
	feed record addr=0x1000000 records=10 stacks=1 first=1 size=64 op=0
	feed record records=4 op=1
	read_top
	total stacks 2
	expect_eq "op of the first" "$(first_block op)" alloc
	grep -q '^op: free$' /tmp/top || die "no free"

	exec 3<>"$log/find"
	echo 0x1000040 >&3
	cat <&3 >/tmp/found
	head -n 1 /tmp/found | grep -q ' found=2$' || die "find: $(head -n 1 /tmp/found)"
	expect_eq order "$(sed -n 's/^op: //p' /tmp/found | tr '\n' ' ')" "free alloc "
	echo 4096 >&3
	cat <&3 >/tmp/found
	exec 3>&-
	grep -q ' address=0x1000 found=0$' /tmp/found || die "a second question"

	feed record records=1000 op=0
	read_top
	total read_count 64
	remove_log
}

# --- Own stacks ---

own_stacks()
{
	new_log source=slab
	exec 3<"$log/top"
	cat "$log/top" >/tmp/top
	exec 3<&-
	expect_ge own_count "$(value /tmp/top own_count)" 1
	! grep -q '\[btlog\]$' /tmp/top || die "btlog's own frames are shown"
	expect_eq "no log" "$(grep -c '^# totals of made$' "$D/top")" 1
	echo 0 >"$log/enable"
	grep -q '^# no log is enabled' "$D/top" || die "top with no log"
	remove_log
}

# --- A large log ---

# A million records of 10,000 stacks; the limit is generous, as the machine may
# be busy: it catches work that grows faster than the log.
large()
{
	new_log records=1048576 top_n=20
	feed record addr=0x10000000 records=1000000 stacks=10000 size=64 op=0
	start=$(seconds)
	read_top
	expect_le "seconds to read" $(($(seconds) - start)) 20
	total read_count 1000000
	total stacks 10000
	total stacks_shown 20
	remove_log
}

load_btlog
load feed
sums
stacks
sampling
events
own_stacks
large
rmmod feed || die "feed is held"
unload_btlog
