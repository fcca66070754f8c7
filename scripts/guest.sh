#!/usr/bin/env bash
# Boots a kernel under QEMU with the modules built for it, runs tests of
# guest/t in it and judges them.
#
#   guest.sh -k KERNEL [option]... [TEST]...
#
#   -c CPUS -m MEGABYTES -a APPEND   instead of what the tests' heads ask for
#   -t SECONDS                       each test's time limit
#   -x 'ARGUMENTS'                   more for QEMU
#   -o FOLDER                        where logs go (default: build/log)
#   -e NAME=VALUE                    in the tests' environment
#   -l                               list the tests that want KERNEL
#   -i                               a shell in the guest instead of tests
#   -v                               show the guest's console
#
# A TEST is a name, or a path with a slash; none means all that want KERNEL.
# In the environment: ACCEL=tcg|kvm|auto, TCG_THREAD=multi for CPUs that really
# run at the same time, ICOUNT=1 for one CPU that counts instructions, TIME_SCALE=N for N times the time limits, SUITE for the KUnit
# suites to judge.
#
# A test passes if its exit status came over the verdict port as 0 and the
# kernel said nothing bad between its begin and its end. All else fails it.
# If the guest dies in a test, a new guest goes on with those after it.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

kernel='' opt_cpus='' opt_mem='' opt_append='' opt_time='' opt_qemu=''
out=$top/build/log shell='' verbose='' list='' test_qemu=''
environment=()
work=''
qemu_pid=''

usage()
{
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
}

options()
{
	local o

	while getopts k:c:m:a:t:x:o:e:ilv o; do
		case $o in
		k) kernel=$OPTARG ;;
		c) opt_cpus=$OPTARG ;;
		m) opt_mem=$OPTARG ;;
		a) opt_append=$OPTARG ;;
		t) opt_time=$OPTARG ;;
		x) opt_qemu=$OPTARG ;;
		o) out=$OPTARG ;;
		e) environment+=("$OPTARG") ;;
		i) shell=1 ;;
		l) list=1 ;;
		v) verbose=1 ;;
		*) usage ;;
		esac
	done
	[ -n "$kernel" ] || usage
}

# --- What the tests' heads say ---

path()
{
	case $1 in
	*/*) echo "$1" ;;
	*) echo "$top/guest/t/$1.sh" ;;
	esac
}

# header TEST KEY DEFAULT
header()
{
	local value

	value=$(sed -n "/^[^#]/q; s/^# $2: *//p" "$(path "$1")")
	echo "${value:-$3}"
}

is_debug()
{
	[[ $1 == *-kasan || $1 == *-kcsan || $1 == *-lockdep ]]
}

wants_kernel()
{
	local k

	for k in $(header "$1" kernels "6.1 6.12"); do
		case $k in
		all | "$kernel") return 0 ;;
		stock) is_debug "$kernel" || return 0 ;;
		debug) ! is_debug "$kernel" || return 0 ;;
		esac
	done
	return 1
}

all_tests()
{
	local f t

	for f in "$top"/guest/t/*.sh; do
		t=${f##*/}
		! wants_kernel "${t%.sh}" || echo "${t%.sh}"
	done
}

# The checks make the debug kernels several times slower.
time_limit()
{
	local seconds=${opt_time:-$(header "$1" time 60)}

	! is_debug "$kernel" || [ -n "$opt_time" ] || seconds=$((seconds * 4))
	echo $((seconds * ${TIME_SCALE:-1}))
}

# Tests that agree in this share a boot.
machine()
{
	echo "${opt_cpus:-$(header "$1" cpus 2)}" "${opt_mem:-$(header "$1" mem 1024)}" \
		"$(header "$1" append '') $opt_append @ $(header "$1" qemu '')"
}

# --- The initial ramdisk ---

stock_module_names()
{
	local t

	for t in "$@"; do
		header "$t" modules ''
	done | tr ' ' '\n' | sort -u
}

# Each with the order to load it in; what is built in has an empty one.
add_stock_modules()
{
	local root=$1 modules name ko base
	shift

	modules=$("$top/scripts/kernel.sh" modules "$kernel")
	mkdir -p "$root/ko/stock"
	for name in $(stock_module_names "$@"); do
		: >"$root/ko/stock/$name.order"
		[ -n "$modules" ] || continue
		modprobe -d "${modules%/lib/modules/*}" -S "${modules##*/}" \
			--show-depends "$name" >"$work/depends" ||
			die "$kernel has no module $name"
		while read -r _ ko; do
			[[ $ko == */*.ko* ]] || continue
			base=${ko##*/} base=${base%%.ko*}.ko
			unpack_module "${ko%% *}" >"$root/ko/stock/$base"
			echo "$base" >>"$root/ko/stock/$name.order"
		done <"$work/depends"
	done
}

unpack_module()
{
	case $1 in
	*.xz) xz -dc "$1" ;;
	*.zst) zstd -qdc "$1" ;;
	*) cat "$1" ;;
	esac
}

# The tests' own programs, static; built again if any source changed.
compile_programs()
{
	local dir=$1 c

	[ ! -d "$dir" ] || return 0
	rm -rf "$dir.partial"
	mkdir -p "$dir.partial"
	for c in "$top"/guest/bin/*.c; do
		[ -e "$c" ] || continue
		gcc -O2 -Wall -static -pthread -I"$top" -o "$dir.partial/$(basename "$c" .c)" "$c" ||
			die "$c does not compile"
	done
	mv "$dir.partial" "$dir"
}

add_programs()
{
	local dir key

	key=$(cd "$top" && find . -path './guest/bin/*.[ch]' -o -path './uapi/*.h' |
		sort | xargs -r cat | sha256sum)
	dir=$cache/bin/${key:0:16}
	locked programs compile_programs "$dir"
	cp -a "$dir/." "$1/bin/"
}

kernel_config()
{
	local modules

	modules=$("$top/scripts/kernel.sh" modules "$kernel")
	if [ -n "$modules" ]; then
		cat "${modules%/lib/modules/*}/boot/config-${modules##*/}"
	else
		cat "$("$top/scripts/kernel.sh" kdir "$kernel")/.config"
	fi
}

pack()
{
	(cd "$1" && find . | sort | cpio -o -H newc --quiet -R 0:0) >"$2"
}

# What all guests of this run share.
make_initrd()
{
	local root=$work/root t

	mkdir -p "$root"/{bin,dev,proc,sys,tmp,t,mnt}
	cp "$(command -v busybox)" "$root/bin/"
	cp "$top/guest/init" "$top/guest/lib.sh" "$root/"
	chmod +x "$root/init"
	"$top/scripts/build.sh" "$kernel" "$root/ko"
	add_stock_modules "$root" "$@"
	add_programs "$root"
	kernel_config >"$root/kernel.config"
	# All of them, as some run others.
	cp "$top"/guest/t/*.sh "$root/t/"
	for t in "$@"; do
		cp "$(path "$t")" "$root/t/$(basename "$t" .sh).sh"
	done
	pack "$root" "$work/base.cpio"
}

environment_lines()
{
	local e

	for e in ${environment[@]+"${environment[@]}"}; do
		echo "export ${e%%=*}='${e#*=}'"
	done
}

# make_run_initrd TEST...: and what one boot is to do.
make_run_initrd()
{
	local dir=$work/run t

	rm -rf "$dir"
	mkdir -p "$dir"
	for t in "$@"; do
		echo "$(basename "$t" .sh) $(time_limit "$t")"
	done >"$dir/run.list"
	is_debug "$kernel" && echo 120 >"$dir/hung_seconds" || echo 40 >"$dir/hung_seconds"
	environment_lines >"$dir/environment"
	[ -z "$shell" ] || : >"$dir/shell"
	pack "$dir" "$work/run.cpio"
	cat "$work/base.cpio" "$work/run.cpio" >"$work/initrd"
}

# --- QEMU ---

# A /dev/kvm may be there and not work: let a kernel without a root file system
# boot and panic.
kvm_works()
{
	[ -w /dev/kvm ] || return 1
	timeout -k 1 20 qemu-system-x86_64 -machine q35 -accel kvm -cpu host -m 512 \
		-nodefaults -nographic -no-reboot -kernel "$1" \
		-append "console=ttyS0 panic=-1" </dev/null >/dev/null 2>&1
}

accelerator()
{
	case ${ACCEL:-tcg} in
	tcg) echo tcg ;;
	kvm) if kvm_works "$1"; then echo kvm; else die "KVM does not work here"; fi ;;
	auto) if kvm_works "$1"; then echo kvm; else echo tcg; fi ;;
	*) die "ACCEL is tcg, kvm or auto, not $ACCEL" ;;
	esac
}

# A guest whose CPUs have to wait for the host's is no kernel that hangs: the
# timer's check at boot counts loops, and debug kernels are slow anyway.
patience()
{
	echo no_timer_check
	! is_debug "$kernel" || echo watchdog_thresh=40 rcupdate.rcu_cpu_stall_timeout=80
}

# The emulated CPUs take turns in one thread. With a thread for each, QEMU 7.2 at
# times executes code that another CPU has just replaced: kernels that patch
# their text, as for tracepoints, die of a breakpoint that is gone.
#
# qemu IMAGE CPUS MEM APPEND ARGUMENT...
qemu()
{
	local image=$1 cpus=$2 mem=$3 append=$4
	local -a cpu
	shift 4

	case $accel in
	kvm) cpu=(-accel kvm -cpu host) ;;
	*) cpu=(-accel "tcg,thread=${TCG_THREAD:-single}" -cpu max) ;;
	esac
	if [ -n "${ICOUNT:-}" ]; then
		cpu=(-accel tcg -cpu max -icount "shift=0")
		cpus=1
	fi
	# shellcheck disable=SC2086 # lists of words
	exec qemu-system-x86_64 -machine q35 "${cpu[@]}" -smp "$cpus" -m "$mem" \
		-nodefaults -nographic -no-reboot -kernel "$image" -initrd "$work/initrd" \
		-append "console=ttyS0,115200 loglevel=5 panic=-1 oops=panic kunit.enable=1 $(patience | xargs) $append" \
		"$@" $test_qemu $opt_qemu
}

interactive()
{
	make_run_initrd
	qemu "$image" "${opt_cpus:-2}" "${opt_mem:-1024}" "$opt_append" -serial mon:stdio
}

stop_qemu()
{
	[ -n "$qemu_pid" ] || return 0
	kill -KILL "$qemu_pid" 2>/dev/null || true
	wait "$qemu_pid" 2>/dev/null || true
	qemu_pid=
}

# The test that the guest is in, or nothing.
current_test()
{
	tr -d '\r' <"$work/verdict" | awk '$1 == "begin" { t = $2 } $2 == "exit" { t = "" } END { print t }'
}

# Waits for the end of the guest; ends it if nothing comes over the verdict
# port for longer than the test in it may take. Leaves the reason in $ending.
watch()
{
	local size=-1 now idle=0 limit=120

	ending=ended
	is_debug "$kernel" && limit=300
	while kill -0 "$qemu_pid" 2>/dev/null; do
		sleep 0.2
		now=$(stat -c %s "$work/verdict")
		idle=$((idle + 1))
		if [ "$now" != "$size" ]; then
			size=$now
			idle=0
			limit=$(quiet_limit "$limit")
		elif [ $idle -gt $((limit * 5)) ]; then
			ending=hung
			break
		fi
	done
	stop_qemu
	! grep -q '^done' "$work/verdict" || ending="done"
}

quiet_limit()
{
	local t

	t=$(current_test)
	[ -n "$t" ] || { echo "$1"; return; }
	t=$(awk -v t="$t" '$1 == t { print $2 }' "$work/run/run.list")
	echo $((${t:-100} + 30))
}

# boot CPUS MEM APPEND TEST...
boot()
{
	local cpus=$1 mem=$2 append=$3 tail_pid=
	shift 3

	make_run_initrd "$@"
	: >"$work/verdict"
	: >"$work/console"
	qemu "$image" "$cpus" "$mem" "$append" -monitor none \
		-serial "file:$work/console" -serial "file:$work/verdict" \
		</dev/null >"$work/qemu" 2>&1 &
	qemu_pid=$!
	if [ -n "$verbose" ]; then
		tail -qf "$work/console" >&2 &
		tail_pid=$!
	fi
	watch
	[ -z "$tail_pid" ] || kill "$tail_pid"
	[ ! -s "$work/qemu" ] || sed 's/^/qemu: /' "$work/qemu" >&2
}

# --- Judgement ---

# verdict TEST: `STATUS SECONDS` if there is one.
verdict()
{
	tr -d '\r' <"$work/verdict" | awk -v t="$1" '$1 == t && $2 == "exit" { print $3, $4 }'
}

was_begun()
{
	awk -v t="$1" '{ sub(/\r/, "") } $0 == "begin " t { n++ } END { exit !n }' "$work/verdict"
}

# found KIND TEST: what splats.awk found of that kind.
found()
{
	awk -F '\t' -v k="$1" -v t="$2" '$1 == k && $2 == t { print $3 }' "$work/splats"
}

read_console()
{
	local t regex

	for t in "$@"; do
		regex=$(header "$t" expect-splat '')
		[ -z "$regex" ] || echo "$(basename "$t" .sh) $regex"
	done >"$work/expect"
	awk -f "$top/scripts/splats.awk" -v expect="$work/expect" "$work/console" >"$work/splats"
}

# why_failed NAME STATUS: nothing if it has not.
why_failed()
{
	local splat

	splat=$(found splat "$1" | sed -n 1p)
	if [ -z "$2" ]; then
		echo "no verdict, the guest $ending${splat:+: $splat}"
	elif [ -n "$splat" ]; then
		echo "$splat"
	elif [ "$2" = 137 ] && [[ $(found last "$1") == *"no end after"* ]]; then
		found last "$1" | grep '^no end after'
	elif [ "$2" != 0 ] && [ "$2" != 77 ]; then
		echo "exit $2: $(found last "$1" | tail -n 1)"
	elif ! grep -q "^end	$1	" "$work/splats"; then
		echo "the console has no end of it"
	elif [ "$2" = 0 ] && grep -q "^$1 " "$work/expect" && [ -z "$(found expected "$1")" ]; then
		echo "the splat it should provoke is missing"
	fi
}

# The test's part of the console.
section()
{
	tr -d '\r' <"$work/console" | sed -n "/# begin $1\$/,/# end $1\$/p"
}

# From the splat on, or else the end of it.
show_failure()
{
	local splat

	splat=$(found splat "$1" | sed -n 1p)
	if [ -n "$splat" ]; then
		section "$1" | awk -v s="$splat" 'index($0, s) { on = 1 } on && n++ < 40'
	else
		section "$1" | tail -n 40
	fi | sed 's/^/    /'
}

# judge NAME
judge()
{
	local name=$1 status='' seconds=- why

	# shellcheck disable=SC2046 # two words
	read -r status seconds <<<"$(verdict "$name")" || true
	why=$(why_failed "$name" "$status")
	if [ -n "$why" ]; then
		echo "FAIL guest $kernel $name (${seconds:--} s): $why"
		keep_log "$name"
	elif [ "$status" = 77 ]; then
		echo "SKIP guest $kernel $name: $(found last "$name" | tail -n 1)"
	else
		echo "PASS guest $kernel $name ($seconds s)"
	fi
}

# The cases of a test that writes KTAP to the console count on their own.
judge_cases()
{
	local log=$work/ktap

	[ -n "$(header "$1" ktap '')" ] || return 0
	section "$(basename "$1" .sh)" >"$log"
	awk -f "$top/scripts/ktap.awk" -v kernel="$kernel" -v suite="${SUITE:-}" "$log" |
		tee "$work/cases"
	grep -q '^FAIL' "$work/cases" || return 0
	keep_log "$(basename "$1" .sh)"
	grep -F '    # ' "$log" | sed -n '1,60s/^/    /p'
}

keep_log()
{
	local log=$out/$kernel-$1.log

	mkdir -p "$out"
	cp "$work/console" "$log"
	show_failure "$1"
	echo "    the whole console: ${log#"$top/"}"
}

# QEMU's emulation may, very rarely, push flags that no processor can have: the
# upper ten bits are always zero. If the trap bit is set among them, the kernel
# warns of a debug exception. Such a test has another try.
garbled()
{
	[[ " ${retried[*]-} " != *" $1 "* ]] &&
		[ "$(section "$1" | grep -cE 'EFLAGS: (00[4-9a-f]|0[1-9a-f]|[1-9a-f])')" != 0 ]
}

# judge_all TEST...: leaves in $later those that have not had their turn.
judge_all()
{
	local t name

	later=()
	for t in "$@"; do
		name=$(basename "$t" .sh)
		if ! was_begun "$name"; then
			later+=("$t")
		elif garbled "$name"; then
			echo "RETRY guest $kernel $name: the emulator garbled the flags"
			retried+=("$name")
			later+=("$t")
		else
			judge "$name"
			judge_cases "$t"
		fi
	done
}

# run_group CPUS MEM APPEND TEST...: until each test has had its turn.
run_group()
{
	local cpus=$1 mem=$2 append=$3
	local -a todo later retried=()
	shift 3

	todo=("$@")
	while [ ${#todo[@]} -gt 0 ]; do
		boot "$cpus" "$mem" "$append" "${todo[@]}"
		read_console "${todo[@]}"
		if ! was_begun "$(basename "${todo[0]}" .sh)"; then
			never_ran "${todo[@]}"
			return
		fi
		judge_all "${todo[@]}"
		! was_begun kmemleak || judge kmemleak
		judge_rest
		todo=(${later[@]+"${later[@]}"})
	done
}

# Splats before, between and after the tests.
judge_rest()
{
	local splat

	splat=$(found splat - | sed -n 1p)
	[ -n "$splat" ] || return 0
	echo "FAIL guest $kernel outside (- s): $splat"
	keep_log outside
	found splat - | sed 's/^/    /'
}

never_ran()
{
	local t

	for t; do
		echo "FAIL guest $kernel $(basename "$t" .sh) (- s): the guest $ending before it"
	done
	keep_log "$(basename "$1" .sh)"
	tail -n 40 "$work/console" | sed 's/^/    /'
}

run_groups()
{
	local m t cpus mem append
	local -a group

	for t in "$@"; do
		machine "$t"
	done >"$work/machines"
	while read -r m <&3; do
		group=()
		for t in "$@"; do
			[ "$(machine "$t" | sed 's/ *$//')" != "$m" ] || group+=("$t")
		done
		read -r cpus mem append <<<"${m%@*}"
		test_qemu=${m##*@}
		run_group "$cpus" "$mem" "$append" "${group[@]}"
	done 3< <(sed 's/ *$//' "$work/machines" | sort -u) | tee "$work/results"
}

clean_up()
{
	stop_qemu
	rm -rf "$work"
}

main()
{
	local -a tests

	options "$@"
	shift $((OPTIND - 1))
	if [ -n "$list" ]; then
		all_tests
		exit
	fi
	"$top/scripts/deps.sh" build qemu
	image=$("$top/scripts/kernel.sh" image "$kernel")
	accel=$(accelerator "$image")
	work=$(mktemp -d)
	trap clean_up EXIT
	trap 'exit 130' INT TERM
	if [ $# -gt 0 ]; then
		tests=("$@")
	else
		mapfile -t tests < <(all_tests)
	fi
	for t in ${tests[@]+"${tests[@]}"}; do
		[ -e "$(path "$t")" ] || die "no test $t"
	done
	if [ -n "$shell" ]; then
		make_initrd "${tests[@]}"
		interactive
		exit
	fi
	[ ${#tests[@]} -gt 0 ] || die "$kernel: 0 tests to run"
	make_initrd "${tests[@]}"
	run_groups "${tests[@]}"
	grep -q '^PASS' "$work/results" && ! grep -q '^FAIL' "$work/results"
}

# On one line: the script may be edited while it runs.
main "$@"; exit
