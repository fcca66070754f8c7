# BT-35: a report is opened, read and closed in a loop, while another one
# deletes the log and makes it again, one switches it off and on, one keeps
# files open beyond the log's end, and one tries to remove the module.
# kernels: stock 6.12-kasan
# time: 60
# cpus: 2
. /lib.sh

: "${SECONDS_MAX:=25}"

running()
{
	[ ! -e /tmp/stop ]
}

reader()
{
	while running; do
		cat "$D/one/top" "$D/one/stats" "$D/top" "$D/new"
	done
}

deleter()
{
	while running; do
		echo one >"$D/new"
		echo slab:kmalloc-* >"$D/one/source"
		echo one >"$D/remove"
	done
}

switch()
{
	while running; do
		echo 1 >"$D/one/enable"
		echo 1 >"$D/one/clear"
		echo 0 >"$D/one/enable"
	done
}

# A file of a log that is gone says so, and closing it is all that is left.
holder()
{
	while running; do
		if [ -e "$D/one/top" ]; then
			(
				exec 3<"$D/one/top" 4<>"$D/one/find" || exit
				echo 0x1000 >&4
				echo one >"$D/remove"
				cat <&3 && echo >>/tmp/read_after
				cat <&4
				echo 1 >&4
			)
		fi
	done
}

remover()
{
	while running; do
		rmmod btlog
		is_loaded btlog || {
			echo >>/tmp/removed
			insmod /ko/btlog.ko
		}
		sleep 0.1
	done
}

load_btlog
for task in reader deleter switch holder remover; do
	$task >/dev/null 2>&1 &
done
sleep "$SECONDS_MAX"
: >/tmp/stop
wait

is_loaded btlog || load_btlog
# It works as if nothing had happened.
echo one >"$D/remove" 2>/dev/null
echo one >"$D/new" || die "no new log"
echo slab >"$D/one/source" && echo 1 >"$D/one/enable" || die "it can't be enabled"
cat /proc/self/status >/dev/null
expect_ge recorded "$(value "$D/one/stats" recorded)" 1
value "$D/library" state | grep -qx ok || die "library: $(value "$D/library" state)"
echo "the module was removed $(wc -l 2>/dev/null </tmp/removed || echo 0) times"
unload_btlog
[ ! -e "$D" ] || die "files are left behind"
