# BT-16: many CPUs at one site, freeing each other's objects, while the report
# is being read: counts stay exact.
# kernels: stock
# cpus: 4
# time: 180
. /lib.sh

load_btlog
load tm
new_log a source=slab:kmalloc-64 records=65536 module=tm

rounds=100000
has_config KASAN || has_config LOCKDEP && rounds=10000

# There are 1024 slots. An object that goes and comes while the log is read may
# be seen twice, at two addresses.
read_on()
{
	while [ ! -e finished ]; do
		set -- $(of_site a 9 siteA)
		[ "$1" -le 1536 ] && [ "$2" = $(($1 * 64)) ] || echo "$*" >>wrong
		echo >>reads
	done
}

read_on &
tm pingpong 4 $rounds
touch finished
wait
echo "$(wc -l <reads) reports meanwhile"
[ ! -e wrong ] || die "reports were wrong: $(head -3 wrong)"

objects=$(tm_state kmalloc.A.objects)
expect_eq "left" "$(of_site a 1 siteA)" "$objects $((objects * 64)) 1"
expect_eq "refused" "$(counter a refused_recursion)" 0
expect_eq "replaced" "$(counter a replaced)" 0
tm free kmalloc A kfree task
expect_eq "at the end" "$(of_site a 1 siteA)" "0 0 0"
balanced a
