# What must be refused is, with an errno and a reason, and changes nothing.
# kernels: stock 6.12-kasan
# time: 90
. /lib.sh

log=$D/victim

# All that can be written, and what logs there are.
settings()
{
	ls "$D"
	for f in "$log"/*; do
		case ${f##*/} in
		top | stats | find) ;;
		*) echo "${f##*/} $(cat "$f")" ;;
		esac
	done
}

same_settings()
{
	settings >/tmp/now
	diff /tmp/before /tmp/now || die "settings changed: $1"
}

# onslaught SEED [busy]: two writers at once
onslaught()
{
	hostile "$D" victim 1000 "$@" >/tmp/writer &
	writer=$!
	hostile "$D" victim 1000 "1$1" ${2:+"$2"} >/tmp/writer2 ||
		die "a write came out wrong: $(tail -n 3 /tmp/writer2)"
	wait $writer || die "a write came out wrong: $(tail -n 3 /tmp/writer)"
}

unreclaimable_kb()
{
	awk '$1 == "SUnreclaim:" { print $2 }' /proc/meminfo
}

# refused FILE VALUE REASON: one line in the kernel log, and that says why
refused()
{
	dmesg -c >/dev/null
	# shellcheck disable=SC2059 # with escapes
	expect_fail sh -c "printf '$2' >$D/$1"
	expect_eq "lines about $1" "$(dmesg | grep -c btlog:)" 1
	dmesg | grep -qF "$3" || die "$1: '$3' is not in: $(dmesg)"
}

load_btlog
echo victim >"$D/new"
for s in type=log records=100 depth=7 sample=bytes:4096 cut=none source=slab \
	min_age=3 min_size=17 pid=1 top_n=5 sort=age cache=kmalloc-* module=leaky; do
	echo "${s#*=}" >"$log/${s%%=*}" || die "$s"
	expect_eq "${s%%=*}" "$(cat "$log/${s%%=*}")" "${s#*=}"
done
settings >/tmp/before
start=$(cut -d. -f1 /proc/uptime)

onslaught 1
same_settings "log disabled"
kb=$(unreclaimable_kb)
onslaught 2
same_settings "log disabled"
has_config KASAN || expect_le "kB leaked" $(($(unreclaimable_kb) - kb)) 1024

echo 1 >"$log/enable" || die "enable"
settings >/tmp/before
onslaught 3 busy
same_settings "log enabled"
echo 0 >"$log/enable"

# The flood of refusals has not become a flood of lines: five places complain,
# each ten times in five seconds and once that it had more to say.
expect_le "lines in the kernel log" "$(dmesg | grep -c btlog:)" \
	$((($(cut -d. -f1 /proc/uptime) - start) * 11 + 110))

sleep 6
refused victim/records 15 "out of range"
refused victim/depth 'a\033[31mb' "want printable ASCII"
refused victim/source nosuch "no such source"
refused victim/enable 2 "want 0 or 1"
refused victim/pid 4194305 "too large"
refused victim/sort size "want bytes, count or age"
refused victim/module a-b "as lsmod prints it"
refused victim/find xyz "want an address"
refused victim/top_n ' ' "want a value"
refused new a/b "want 1 to 31"
refused new top "file of btlog"
refused new victim "there is one already"
refused remove nosuch "no such log"
# Whatever is quoted is quoted in full, and no control character gets through.
refused victim/records 16777217 "\"16777217\""
refused victim/depth '1\0332' '1\e2'
refused new 'a/b\\c' 'a/b'

# What is only odd is taken.
printf ' \t9\n\n' >"$log/top_n" || die "white space"
expect_eq top_n "$(cat "$log/top_n")" 9
printf 8 >"$log/top_n" || die "no newline"
expect_eq top_n "$(cat "$log/top_n")" 8
echo >"$log/cache" || die "empty cache"
expect_eq cache "$(cat "$log/cache")" ""

expect_fail sh -c "echo 1 >$log/stats"
expect_fail sh -c "echo 1 >$log/top"
unload_btlog
