# BT-48: the leak was there first: btlog is loaded into the running system, finds
# what grows, and takes frees of older objects for what they are.
# kernels: stock
. /lib.sh

load tm
tm alloc kmalloc A task 20000 1000
tm alloc cache B task 5000
load_btlog
new_log a "source=slab:kmalloc-1k,tm_cache"

# It goes on leaking.
tm alloc kmalloc A task 3000 1000
expect_eq "grown" "$(of_site a 1 siteA)" "3000 3000000 1"
first=$(awk -v RS= '/^count:/ { print; exit }' $D/a/top | sed -n 's/^ //p' | head -1)
case $first in
siteA+*) ;;
*) die "the first stack is of $first" ;;
esac

# The newest are freed first, then 20,000 that btlog doesn't know.
untracked=$(counter a untracked_free)
tm free kmalloc A kfree task 3000
expect_eq "freed" "$(of_site a 1 siteA)" "0 0 0"
expect_le "untracked" "$(($(counter a untracked_free) - untracked))" 100
tm free kmalloc A kfree task
tm free cache B cache_free task
untracked=$(($(counter a untracked_free) - untracked))
expect_ge "untracked" $untracked 25000
expect_le "untracked" $untracked 25100
balanced a
