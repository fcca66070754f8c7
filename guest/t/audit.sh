# The accuracy audit: after a mixed load, a log of all slab objects agrees with
# the slab pages, object by object, in every cache. Then objects are allocated
# and freed so that the log can't know, and just these are to be found.
# kernels: 6.1 6.12
# mem: 768
# time: 240
# modules: virtio_pci virtio_net crc32c_generic loop ext4 dummy veth bridge
# qemu: -nic user,model=virtio-net-pci,restrict=on,guestfwd=tcp:10.0.2.100:7-cmd:cat
# expect-splat: Call Trace:
. /lib.sh

# How much of everything; more by `guest.sh -e SCALE=10`.
n=${SCALE:-1}

A=/sys/kernel/debug/btlog_audit

audit()
{
	echo "$1" >$A/control || die "audit: $1 does not work"
}

# --- The load ---

# together COMMAND...: each by the workload program, all at the same time
together()
{
	local command pid pids=

	for command; do
		# shellcheck disable=SC2086 # words
		workload $command &
		pids="$pids $!"
	done
	for pid in $pids; do
		wait "$pid" || die "among $*: exit $?"
	done
}

network_up()
{
	need_module virtio_pci virtio_net
	wait_for 5 [ -e /sys/class/net/eth0 ]
	ip addr add 10.0.2.15/24 dev eth0
	ip link set eth0 up
}

# An empty file system with a journal: mke2fs -t ext4 -b 1024 -N 512 -J size=1
# -O ^resize_inode -U clear, 8 MiB.
ext4_image()
{
	base64 -d <<-END | bzcat
	QlpoOTFBWSZTWRP3UpUAAEz///797k5JjUJ4fQg4CicvjwliYaJgCDiqcNqrhwUsWq4awAHXAEhw
	AA0AA0BkAAANAAGmgAAAAA0AGimKniQGDUAGgyaAD1AGgAaDQaNDQD1PU9RoyGnkhwAA0AA0BkAA
	ANAAGmgAAAAA0AEihNU009TEm1ADRoNPKNAA9QAAAaGnqaaG1NAA9I9R4omExs0MYEK4Ps2q5M6J
	GmvhpSAphTkC7SVcqELRWYtkLA0Nt25LdsmNIpSM/V6e/4UwpaEFh/jpaO8SLlCRNgIWc0JCEkkl
	XjXQW6mgOKVPmnzZbppG94DUBm1IWLRDLotxMloqs0WLjtZTWRYIIEkgAAm0ANisNCg0afR14qTS
	5dmGS5NFfMIJZqEwS5LSASAADaOhk2UDFNpQYshykOCAuNASZNiVpkGJtJsEIEAAVWtKzC08NScf
	Tg/x15ZDNSEBV2edrKIw14UxNk1EiQ6GFIvViisfy/UEbfUnE0KYPHAUB+porxKjhflrP52cSR+s
	FCxCBridaCRj8XIj7C7dj32eNis6elrS2LmcNkdXBUiX3VcdGUqhG8SILyCM4hWMhACS0HntuVdv
	7TF4c2jc0SASZAHaNkQWDrjnq6ai7TDT2t+ux2jpUvaF81VhNrfUBEKyr6GvAluq/ElsVIF+mzgk
	Y72ZPLwzSWJrvev6iCtn0IV0GkUpDvZsEgEgAAaxfaC8rUmIx/dY/+LuSKcKEgJ+6lKg
	END
}

on_ext4()
{
	need_module crc32c_generic loop ext4
	mkdir -p /mnt/ext4
	ext4_image >/tmp/ext4
	mount -o loop -t ext4 /tmp/ext4 /mnt/ext4 || die "no ext4"
	together "file $((60 * n)) /mnt/ext4" "proc 20"
	cp -r /t /lib.sh /mnt/ext4
	umount /mnt/ext4
	rm /tmp/ext4
}

# A bridge with some ports, twice; the modules come and go.
modules()
{
	local times=2 dev

	while [ $times -gt 0 ]; do
		need_module dummy veth bridge
		ip link add br0 type bridge
		ip link add d0 type dummy
		ip link add v0 type veth
		ip link set d0 master br0
		ip link set v0 master br0
		for dev in d0 v0 veth0 br0; do
			ip link set $dev up
		done
		sleep 0.2
		for dev in d0 v0 br0; do
			ip link del $dev
		done
		rmmod bridge veth dummy
		load awkward rounds=$((10 * n))
		rmmod awkward
		times=$((times - 1))
	done
}

# kfence MILLISECONDS: one object in that time comes from the KFENCE pool
kfence()
{
	local interval=/sys/module/kfence/parameters/sample_interval

	[ ! -e $interval ] || echo "$1" >$interval
}

# Out of memory, in a group of its own and then in all of the machine.
hogs()
{
	local group=/sys/fs/cgroup/hog

	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir $group
	echo 20M >$group/memory.max
	sh -c "echo \$\$ >$group/cgroup.procs; exec workload hog 2" || die "hog in a group"
	rmdir $group
	workload hog 1 || die hog
}

hotplug()
{
	local cpu=/sys/devices/system/cpu/cpu1/online times=4

	while [ $times -gt 0 ]; do
		echo 0 >$cpu
		echo 1 >$cpu
		times=$((times - 1))
	done
}

load_all()
{
	kfence 20
	together "fork $((60 * n))" "map $((20 * n))" "file $((100 * n)) /tmp" "pipe $((30 * n))"
	together "tcp $((3 * n))" "udp $((6 * n))" "unix $((30 * n))" "namespace $((3 * n))"
	together "event $((20 * n))" "ipc $((30 * n))" "uring $((6 * n))" "bpf $((3 * n))"
	together "ping $((100 * n)) 10.0.2.2" "echo $((3 * n)) 10.0.2.100 7" "udp 3"
	on_ext4
	modules
	hogs
	hotplug
	kfence 0
}

# kfree_rcu() takes five seconds and a grace period to let go.
quiesce()
{
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 8
	audit rcu
}

# --- The verdict ---

explain()
{
	cat $A/result
	head -n 40 $A/differences
	awk '/^#/ || $4 + $5 + $6 + $7 + $8 + $9' $A/caches
	grep -m 5 -o 'false_leaks 0x[0-9a-f]*' $A/differences | while read -r _ addr; do
		echo "$addr" >"$D/$1/find"
		cat "$D/$1/find"
	done
}

# expect_result LOG KEY WANT...
expect_result()
{
	local log=$1

	shift
	while [ $# -gt 0 ]; do
		if [ "$(value $A/result "$1")" != "$2" ]; then
			explain "$log"
			die "$1 is $(value $A/result "$1"), want $2"
		fi
		shift 2
	done
}

# expect_sound LOG: the log kept all that it saw, and the audit all of the log
expect_sound()
{
	expect_result "$1" broken 0 strays 0 duplicates 0 wrong_tags 0 \
		records_off 0 overwritten 0 cleared 0 erase_busy 0 \
		refused_recursion 0 refused_nmi_busy 0 refused_disabled 0
}

# expect_exact LOG FALSE_LEAKS MISSES PAGES
expect_exact()
{
	expect_sound "$1"
	expect_result "$1" false_leaks "$2" misses "$3" large_pages_off "$4"
}

summary()
{
	echo "$1:" "$(sed '/: 0$/d' $A/result | tr '\n' ' ')"
}

# In the middle of things an object may be allocated whose event is still to
# come, or announced as free and not be so yet: a miss, never a false leak.
check_under_load()
{
	while [ -e /tmp/loaded ]; do
		sleep 3
		audit check
		expect_sound audit
		expect_result audit false_leaks 0
		echo "under load: misses $(value $A/result misses)"
	done
}

# start LOG [PARAMETER...]: from now on LOG is audited
start()
{
	local log=$1

	echo "$log" >"$D/new"
	echo slab >"$D/$log/source"
	echo 524288 >"$D/$log/records"
	echo 1 >"$D/$log/enable" || die "log $log does not start"
	load audit log="$log"
	audit base
	summary base
}

stop()
{
	rmmod audit
	echo "$1" >"$D/remove"
}

# Objects allocated, others freed, and pages kept without a trace.
silent()
{
	audit silent
	audit check
	expect_exact audit 17 24 8
	audit heal
	audit check
	expect_exact audit 0 0 0
}

# What an accounting is worth that doesn't know of bulk functions: what kfree_rcu()
# freed looks leaked, and the requests of a ring that is in use are unknown.
blind()
{
	local ring

	load blind
	start blinded
	echo 1 >/sys/module/blind/parameters/on
	workload uring 1 60 &
	ring=$!
	together "fork 30" "map 30" "event 20"
	load awkward rounds=20
	rmmod awkward
	quiesce
	audit check
	echo 0 >/sys/module/blind/parameters/on
	kill $ring
	summary blinded
	expect_result blinded broken 0 records_off 0
	expect_ge "false leaks of the blinded log" "$(value $A/result false_leaks)" 100
	expect_ge "misses of the blinded log" "$(value $A/result misses)" 20
	stop blinded
}

load_btlog
network_up
start audit
touch /tmp/loaded
check_under_load &
checks=$!
load_all
rm /tmp/loaded
wait $checks || die "under load"
quiesce
audit check
summary check
expect_exact audit 0 0 0
silent
stop audit
blind
