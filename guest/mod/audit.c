// SPDX-License-Identifier: GPL-2.0
/*
 * audit.c - compares a HASH log of the slab source with the slab pages
 *
 * Test only. While all CPUs are stopped, the freelists of every slab page are
 * decoded, which tells what is in use, and the log is read, which tells what it
 * holds to be outstanding. With a bit for each 8 bytes of RAM in three sets
 *
 *	in_use	the slab pages say so, now
 *	logged	the log says so, now
 *	base	in use when the log was new, not logged, and not freed since
 *
 * two lines say what is wrong:
 *
 *	false leaks	logged - in_use
 *	misses		in_use - logged - base
 *
 * Page-backed kmallocs have no slab page. For them the number of pages is
 * compared with the kernel's own count (large_pages_known()).
 *
 * To be loaded beside btlog; in debugfs, btlog_audit/control takes
 *
 *	base	start with the log named by the parameter "log"
 *	check	compare; then read result, caches and differences
 *	silent	free and allocate behind the bulk hooks' backs
 *	heal	undo the damage of that
 *	rcu	wait until RCU callbacks have run
 *
 * It includes the kernel's private mm/slab.h, from the source of just the
 * kernel it is built for, and proves at load time that it decodes well.
 */
#include <linux/bitmap.h>
#include <linux/debugfs.h>
#include <linux/ftrace.h>
#include <linux/hash.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/stop_machine.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <trace/events/kmem.h>

#include <mm/slab.h>

#include "internal.h"

#undef pr_fmt
#define pr_fmt(fmt) "btlog_audit: " fmt

enum {
	MAX_CACHES_BITS	= 10,
	MAX_CACHES	= 1 << MAX_CACHES_BITS,
	MAX_OBJECTS	= 1 << 15,	/* struct slab has 15 bits for it */
	MAX_SHOWN	= 256,		/* differences kept for display */
	GRANULE_SHIFT	= 3,		/* no slab object is aligned to less */
};

/* What is wrong with an address. */
enum wrong {
	FALSE_LEAK,		/* logged, not in use */
	MISS,			/* in use, not logged, not in the base */
	DUPLICATE,		/* logged twice */
	STRAY,			/* logged, but no object starts there */
	WRONG_TAG,		/* logged under another cache than its own */
	BROKEN,			/* a freelist that could not be decoded */
	WRONG_NR
};

static const char * const wrong_names[] = {
	[FALSE_LEAK]	= "false_leaks",
	[MISS]		= "misses",
	[DUPLICATE]	= "duplicates",
	[STRAY]		= "strays",
	[WRONG_TAG]	= "wrong_tags",
	[BROKEN]	= "broken",
};

static_assert(ARRAY_SIZE(wrong_names) == WRONG_NR);

static char *log_name = "audit";
module_param_named(log, log_name, charp, 0444);
MODULE_PARM_DESC(log, "name of the log that is audited");

/**
 * struct cache - what was found in one cache
 * @s: the cache; NULL for a free slot
 * @name: its name, as it can be destroyed before somebody reads
 * @tag: that the log has for it
 * @in_use: objects
 * @logged: of them, records that fit
 * @wrong: the rest, by kind
 */
struct cache {
	const struct kmem_cache *s;
	char name[48];
	u16 tag;
	u64 in_use;
	u64 logged;
	u64 wrong[WRONG_NR];
};

/**
 * struct difference - an address that is wrong
 * @kind: how
 * @addr: the address
 * @cache: its cache; NULL if it is in no slab page
 */
struct difference {
	enum wrong kind;
	u64 addr;
	const struct cache *cache;
};

/**
 * struct result - totals of the last comparison
 * @caches: that have slab pages
 * @slab_pages: pages of slabs
 * @in_use: objects
 * @logged: records in slab pages
 * @base: objects from before the log
 * @kfence: records in the KFENCE pool
 * @large: records of page-backed kmallocs
 * @large_pages: their pages
 * @large_pages_off: by how many pages the kernel's own count differs
 * @records: in the log
 * @records_off: by how many the log's counters differ from that
 * @counts: the log's counters
 * @wrong: by kind
 * @stopped_us: for how long the machine stood
 */
struct result {
	u64 caches, slab_pages, in_use, logged, base, kfence, large, large_pages;
	s64 large_pages_off;
	u64 records;
	s64 records_off;
	u64 counts[BTC_NR];
	u64 wrong[WRONG_NR];
	u64 stopped_us;
};

static DEFINE_MUTEX(audit_lock);	/* one command at a time */
static struct btlog *log;
static struct result result;
static struct cache caches[MAX_CACHES];
static struct difference differences[MAX_SHOWN];
static unsigned int nr_differences;

/* ==== Sets of addresses, as bitmaps over all of the direct map ==== */

static unsigned long *in_use, *logged, *base;
static unsigned long nr_granules;

/* Page-backed kmallocs younger than the base, by pfn; pages of the others. */
static unsigned long *large_known;
static unsigned long nr_pfns;
static atomic_long_t base_large_pages;

static unsigned long granule(u64 addr)
{
	return __pa(addr) >> GRANULE_SHIFT;
}

static u64 granule_address(unsigned long bit)
{
	return (u64)__va(bit << GRANULE_SHIFT);
}

static bool in_direct_map(u64 addr)
{
	return addr >= PAGE_OFFSET && addr - PAGE_OFFSET < nr_pfns << PAGE_SHIFT &&
	       pfn_valid(PHYS_PFN(addr - PAGE_OFFSET));
}

static unsigned long *new_set(unsigned long bits)
{
	return vzalloc(BITS_TO_LONGS(bits) * sizeof(long));
}

static int sets_init(void)
{
	int node;

	for_each_online_node(node)
		nr_pfns = max(nr_pfns, node_end_pfn(node));
	nr_granules = nr_pfns << (PAGE_SHIFT - GRANULE_SHIFT);
	in_use = new_set(nr_granules);
	logged = new_set(nr_granules);
	base = new_set(nr_granules);
	large_known = new_set(nr_pfns);
	return in_use && logged && base && large_known ? 0 : -ENOMEM;
}

static void sets_exit(void)
{
	vfree(large_known);
	vfree(base);
	vfree(logged);
	vfree(in_use);
}

/* ==== Differences ==== */

static void report(enum wrong kind, u64 addr, struct cache *cache)
{
	result.wrong[kind]++;
	if (cache)
		cache->wrong[kind]++;
	if (nr_differences == MAX_SHOWN)
		return;
	differences[nr_differences++] = (struct difference){
		.kind = kind, .addr = addr, .cache = cache,
	};
}

/* Caches beyond MAX_CACHES share one entry. */
static struct cache *find_cache(const struct kmem_cache *s)
{
	static struct cache spill = { .name = "others" };
	unsigned int i = hash_ptr(s, MAX_CACHES_BITS), n;
	struct cache *cache;

	for (n = 0; n < MAX_CACHES; n++) {
		cache = &caches[(i + n) % MAX_CACHES];
		if (cache->s == s)
			return cache;
		if (cache->s)
			continue;
		result.caches++;
		cache->s = s;
		strscpy(cache->name, s->name, sizeof(cache->name));
		return cache;
	}
	return &spill;
}

/* ==== Slab pages: what is in use ==== */

/* The beginning of struct kmem_cache_cpu, which 6.12 hides in mm/slub.c. */
struct cpu_slab {
	void *freelist;
	unsigned long tid;
	struct slab *slab;
};

static DECLARE_BITMAP(is_free, MAX_OBJECTS);

static void *next_free(const struct kmem_cache *s, void *object)
{
	unsigned long at = (unsigned long)object + s->offset;
	unsigned long next = *(unsigned long *)at;

#ifdef CONFIG_SLAB_FREELIST_HARDENED
	next ^= s->random ^ swab(at);
#endif
	return (void *)next;
}

static u64 first_object(const struct slab *slab)
{
	return (u64)page_address((const struct page *)slab) +
	       slab->slab_cache->red_left_pad;
}

/* The number of an object in its slab; negative if there is none there. */
static int object_index(const struct slab *slab, u64 addr)
{
	const struct kmem_cache *s = slab->slab_cache;
	u64 first = first_object(slab);
	u64 offset = addr - first;

	if (addr < first || offset % s->size || offset / s->size >= slab->objects)
		return -1;
	return offset / s->size;
}

static void mark_free(const struct slab *slab, void *object)
{
	const struct kmem_cache *s = slab->slab_cache;
	int i;

	for (; object; object = next_free(s, object)) {
		i = object_index(slab, (u64)object);
		if (i < 0 || __test_and_set_bit(i, is_free)) {
			report(BROKEN, (u64)object, find_cache(s));
			return;
		}
	}
}

/*
 * A CPU that allocates from a slab has taken the slab's freelist over; what
 * others free meanwhile goes to the slab's own.
 */
static void mark_free_objects(const struct slab *slab)
{
	const struct kmem_cache *s = slab->slab_cache;
	const struct cpu_slab *c;
	int cpu;

	bitmap_zero(is_free, slab->objects);
	mark_free(slab, slab->freelist);
	for_each_possible_cpu(cpu) {
		c = per_cpu_ptr((struct cpu_slab __percpu *)s->cpu_slab, cpu);
		if (c->slab == slab)
			mark_free(slab, c->freelist);
	}
}

static void walk_slab(const struct slab *slab)
{
	const struct kmem_cache *s = slab->slab_cache;
	struct cache *cache = find_cache(s);
	u64 object = first_object(slab);
	unsigned int i;

	mark_free_objects(slab);
	for (i = 0; i < slab->objects; i++, object += s->size) {
		if (test_bit(i, is_free))
			continue;
		cache->in_use++;
		__set_bit(granule(object), in_use);
	}
	result.slab_pages += compound_nr((struct page *)slab);
}

static void walk_slabs(void)
{
	struct page *page;
	unsigned long pfn;

	for (pfn = 0; pfn < nr_pfns; pfn++) {
		if (!pfn_valid(pfn))
			continue;
		page = pfn_to_page(pfn);
		if (PageTail(page) || !PageSlab(page) ||
		    is_kfence_address(page_address(page)))
			continue;
		walk_slab((struct slab *)page);
	}
}

/* ==== Page-backed kmallocs ==== */

/* Its pages, or 0 if there is none at the address. */
static unsigned long large_pages_at(u64 addr)
{
	struct page *page = virt_to_page(addr);

	if (addr & ~PAGE_MASK || !PageHead(page) || !page_count(page) ||
	    PageLRU(page) || page->mapping)
		return 0;
	return compound_nr(page);
}

/* One node's share in a statistic, the CPUs' unmerged parts included. */
static long node_stat(int node, enum node_stat_item item)
{
	pg_data_t *pgdat = NODE_DATA(node);
	long n = atomic_long_read(&pgdat->vm_stat[item]);
	int cpu;

	for_each_possible_cpu(cpu)
		n += per_cpu_ptr(pgdat->per_cpu_nodestats, cpu)->vm_node_stat_diff[item];
	return n;
}

/* The kernel counts slabs and page-backed kmallocs together, in pages. */
static long large_pages_known(void)
{
	long n = 0;
	int node;

	for_each_online_node(node)
		n += node_stat(node, NR_SLAB_RECLAIMABLE_B) +
		     node_stat(node, NR_SLAB_UNRECLAIMABLE_B);
	return n - result.slab_pages;
}

/* ==== The log ==== */

static void judge_slab_record(const struct btlog_record_copy *rec)
{
	struct slab *slab = (struct slab *)virt_to_head_page((void *)rec->addr);
	struct cache *cache = find_cache(slab->slab_cache);

	if (object_index(slab, rec->addr) < 0)
		return report(STRAY, rec->addr, cache);
	if (!test_bit(granule(rec->addr), in_use))
		return report(FALSE_LEAK, rec->addr, cache);
	cache->logged++;
	result.logged++;
	if (!cache->tag)
		cache->tag = rec->tag;
	if (cache->tag != rec->tag)
		report(WRONG_TAG, rec->addr, cache);
}

static void judge_large_record(const struct btlog_record_copy *rec)
{
	unsigned long pages = large_pages_at(rec->addr);

	if (!pages)
		return report(FALSE_LEAK, rec->addr, NULL);
	__set_bit(PHYS_PFN(__pa(rec->addr)), large_known);
	result.large++;
	result.large_pages += pages;
}

/* KFENCE unmaps the page of an object that was freed. */
static void judge_kfence_record(const struct btlog_record_copy *rec)
{
	char c;

	result.kfence++;
	if (copy_from_kernel_nofault(&c, (void *)rec->addr, 1))
		report(FALSE_LEAK, rec->addr, NULL);
}

static void judge_record(const struct btlog_record_copy *rec, void *unused)
{
	if (!in_direct_map(rec->addr) || !IS_ALIGNED(rec->addr, 1 << GRANULE_SHIFT))
		report(STRAY, rec->addr, NULL);
	else if (__test_and_set_bit(granule(rec->addr), logged))
		report(DUPLICATE, rec->addr, NULL);
	else if (is_kfence_address((void *)rec->addr))
		judge_kfence_record(rec);
	else if (PageSlab(virt_to_head_page((void *)rec->addr)))
		judge_slab_record(rec);
	else
		judge_large_record(rec);
}

static void read_log(void)
{
	enum btlog_counter i;

	if (!log)
		return;
	result.records = btlog_visit_records(log, judge_record, NULL);
	result.records_off = btlog_outstanding(log) - result.records;
	for (i = 0; i < BTC_NR; i++)
		result.counts[i] = btlog_count(log, i);
}

/* ==== The comparison ==== */

static void set_base(void)
{
	bitmap_andnot(base, in_use, logged, nr_granules);
	atomic_long_set(&base_large_pages,
			large_pages_known() - (long)result.large_pages);
}

static void count_word(unsigned long word)
{
	unsigned long missed = in_use[word] & ~logged[word] & ~base[word];
	unsigned int bit;
	u64 addr;

	result.in_use += hweight_long(in_use[word]);
	result.base += hweight_long(base[word]);
	for_each_set_bit(bit, &missed, BITS_PER_LONG) {
		addr = granule_address(word * BITS_PER_LONG + bit);
		report(MISS, addr, find_cache(((struct slab *)
			virt_to_head_page((void *)addr))->slab_cache));
	}
}

static void find_missed(void)
{
	unsigned long word;

	for (word = 0; word < BITS_TO_LONGS(nr_granules); word++)
		if (in_use[word] | base[word])
			count_word(word);
	result.large_pages_off = large_pages_known() - (long)result.large_pages -
				 atomic_long_read(&base_large_pages);
}

static int compare_stopped(void *new_base)
{
	ktime_t start = ktime_get();

	if (new_base)
		bitmap_zero(large_known, nr_pfns);
	walk_slabs();
	read_log();
	if (new_base)
		set_base();
	find_missed();
	result.stopped_us = ktime_us_delta(ktime_get(), start);
	return 0;
}

static void compare(bool new_base)
{
	memset(&result, 0, sizeof(result));
	memset(caches, 0, sizeof(caches));
	nr_differences = 0;
	bitmap_zero(in_use, nr_granules);
	bitmap_zero(logged, nr_granules);
	stop_machine(compare_stopped, new_base ? &result : NULL, NULL);
}

/* ==== Frees of what is older than the log, which the log can't know ==== */

static void forget(const void *object)
{
	struct page *page;

	if (ZERO_OR_NULL_PTR(object) || !in_direct_map((u64)object))
		return;
	clear_bit(granule((u64)object), base);
	page = virt_to_head_page(object);
	if (PageSlab(page) || test_and_clear_bit(page_to_pfn(page), large_known))
		return;
	atomic_long_sub(compound_nr(page), &base_large_pages);
}

static void on_kmalloc(void *data, unsigned long call_site, const void *object,
		       size_t asked, size_t size, gfp_t gfp, int node)
{
	struct page *page;

	if (ZERO_OR_NULL_PTR(object))
		return;
	page = virt_to_head_page(object);
	if (!PageSlab(page))
		set_bit(page_to_pfn(page), large_known);
}

static void on_kfree(void *data, unsigned long call_site, const void *object)
{
	forget(object);
}

static void on_cache_free(void *data, unsigned long call_site,
			  const void *object, const struct kmem_cache *s)
{
	forget(object);
}

static void notrace on_free_bulk(unsigned long ip, unsigned long parent,
				 struct ftrace_ops *ops,
				 struct ftrace_regs *fregs)
{
	size_t n = ftrace_regs_get_argument(fregs, 1);
	void **freed = (void **)ftrace_regs_get_argument(fregs, 2);
	size_t i;

	for (i = 0; i < n; i++)
		forget(freed[i]);
}

static struct ftrace_ops free_bulk_ops = {
	.func = on_free_bulk,
	.flags = FTRACE_OPS_FL_RECURSION,
};

static int free_bulk_hook(void)
{
	char name[] = "kmem_cache_free_bulk";
	int err;

	err = ftrace_set_filter(&free_bulk_ops, name, strlen(name), 0);
	return err ?: register_ftrace_function(&free_bulk_ops);
}

static void free_bulk_unhook(void)
{
	unregister_ftrace_function(&free_bulk_ops);
	ftrace_free_filter(&free_bulk_ops);
}

static int watch(void)
{
	int err;

	err = register_trace_kmalloc(on_kmalloc, NULL);
	if (err)
		return err;
	err = register_trace_kfree(on_kfree, NULL);
	if (err)
		goto err_kfree;
	err = register_trace_kmem_cache_free(on_cache_free, NULL);
	if (err)
		goto err_cache_free;
	err = free_bulk_hook();
	if (err)
		goto err_free_bulk;
	return 0;

err_free_bulk:
	unregister_trace_kmem_cache_free(on_cache_free, NULL);
err_cache_free:
	unregister_trace_kfree(on_kfree, NULL);
err_kfree:
	unregister_trace_kmalloc(on_kmalloc, NULL);
	tracepoint_synchronize_unregister();
	return err;
}

static void unwatch(void)
{
	free_bulk_unhook();
	unregister_trace_kmem_cache_free(on_cache_free, NULL);
	unregister_trace_kfree(on_kfree, NULL);
	unregister_trace_kmalloc(on_kmalloc, NULL);
	tracepoint_synchronize_unregister();
}

/* ==== A cache to prove things with ==== */

enum {
	NR_PROOF	= 300,	/* some slabs full */
	SILENT_ALLOCS	= 24,
	SILENT_FREES	= 17,
	SILENT_PAGES	= 8,	/* of one page-backed kmalloc */
};

static struct kmem_cache *own_cache;
static void *objects[NR_PROOF];
static void *large_object;

/* A cache with a constructor is never merged with another one. */
static void own_ctor(void *object)
{
}

static bool seen_in_use(const void *object)
{
	return test_bit(granule((u64)object), in_use);
}

static void free_objects(unsigned int first, unsigned int step)
{
	unsigned int i;

	for (i = first; i < NR_PROOF; i += step)
		if (objects[i])
			kmem_cache_free(own_cache, objects[i]);
}

/* All or none. */
static int allocate_objects(unsigned int n)
{
	unsigned int i;

	memset(objects, 0, sizeof(objects));
	for (i = 0; i < n; i++)
		objects[i] = kmem_cache_alloc(own_cache, GFP_KERNEL);
	for (i = 0; i < n; i++)
		if (!objects[i])
			goto err;
	return 0;

err:
	free_objects(0, 1);
	return -ENOMEM;
}

/* Every third object stays; is that what the slab pages say? */
static int check_decoding(void)
{
	unsigned int i, bad = 0;

	free_objects(0, 3);
	free_objects(1, 3);
	compare(false);
	for (i = 0; i < NR_PROOF; i++)
		bad += seen_in_use(objects[i]) != (i % 3 == 2);
	free_objects(2, 3);
	if (!bad && !result.wrong[BROKEN] &&
	    find_cache(own_cache)->in_use == NR_PROOF / 3)
		return 0;
	pr_err("can't decode this kernel's slabs: %u of %u objects wrong\n",
	       bad, NR_PROOF);
	return -EINVAL;
}

static int proof_init(void)
{
	int err;

	own_cache = kmem_cache_create("btlog_audit", 136, 0, 0, own_ctor);
	if (!own_cache)
		return -ENOMEM;
	err = allocate_objects(NR_PROOF) ?: check_decoding();
	if (err)
		kmem_cache_destroy(own_cache);
	return err;
}

static void proof_exit(void)
{
	kmem_cache_destroy(own_cache);
}

/*
 * A task whose recursion bits are set counts as being inside a tracer, so the
 * kernel leaves out function hooks and return hooks alike.
 */
static const unsigned long muted = BIT(TRACE_FTRACE_START + TRACE_CTX_NORMAL) |
				   BIT(TRACE_FTRACE_START + TRACE_CTX_TRANSITION) |
				   BIT(TRACE_LIST_START + TRACE_CTX_NORMAL) |
				   BIT(TRACE_LIST_START + TRACE_CTX_TRANSITION);

static int bulk_silently(void)
{
	int n;

	current->trace_recursion |= muted;
	n = kmem_cache_alloc_bulk(own_cache, GFP_KERNEL, SILENT_ALLOCS,
				  objects + SILENT_FREES);
	kmem_cache_free_bulk(own_cache, SILENT_FREES, objects);
	current->trace_recursion &= ~muted;
	return n == SILENT_ALLOCS ? 0 : -ENOMEM;
}

/*
 * Objects that the log must miss, others that it must hold for leaked, and
 * pages that it has forgotten.
 */
static int silent(void)
{
	int err;

	if (!log || large_object)
		return -EBUSY;
	large_object = kmalloc(SILENT_PAGES * PAGE_SIZE, GFP_KERNEL);
	if (!large_object)
		return -ENOMEM;
	err = allocate_objects(SILENT_FREES) ?: bulk_silently();
	if (err)
		goto err;
	btlog_erase(log, (u64)large_object);
	return 0;

err:
	kfree(large_object);
	large_object = NULL;
	return err;
}

/* kmem_cache_free_bulk() has shuffled the addresses, but lost none. */
static int heal(void)
{
	unsigned int i;

	if (!large_object)
		return -EINVAL;
	for (i = 0; i < SILENT_FREES; i++)
		btlog_erase(log, (u64)objects[i]);
	for (; i < SILENT_FREES + SILENT_ALLOCS; i++)
		kmem_cache_free(own_cache, objects[i]);
	kfree(large_object);
	large_object = NULL;
	return 0;
}

/* ==== Files ==== */

static int start(void)
{
	if (!log)
		log = btlog_find(log_name);
	if (!log)
		return -ENOENT;
	compare(true);
	return 0;
}

static int check(void)
{
	if (!log)
		return -EINVAL;
	compare(false);
	return 0;
}

static int wait_for_rcu(void)
{
	rcu_barrier();
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} commands[] = {
	{ "base", start },
	{ "check", check },
	{ "silent", silent },
	{ "heal", heal },
	{ "rcu", wait_for_rcu },
};

static int run_command(const char *name)
{
	unsigned int i;
	int err = -EINVAL;

	mutex_lock(&audit_lock);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (sysfs_streq(name, commands[i].name))
			err = commands[i].run();
	mutex_unlock(&audit_lock);
	return err;
}

static ssize_t control_write(struct file *file, const char __user *from,
			     size_t len, loff_t *pos)
{
	char name[16] = "";
	int err;

	if (len >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, from, len))
		return -EFAULT;
	err = run_command(name);
	return err ?: len;
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = control_write,
};

static void show_refused(struct seq_file *m)
{
	enum btlog_reason i;

	for (i = 0; i < BTR_NR; i++)
		seq_printf(m, "refused_%s: %llu\n", btlog_reason_name(i),
			   result.counts[BTC_REFUSED + i]);
}

static int result_show(struct seq_file *m, void *unused)
{
	unsigned int i;

	seq_printf(m, "stopped_us: %llu\n", result.stopped_us);
	seq_printf(m, "caches: %llu\n", result.caches);
	seq_printf(m, "slab_pages: %llu\n", result.slab_pages);
	seq_printf(m, "in_use: %llu\n", result.in_use);
	seq_printf(m, "logged: %llu\n", result.logged);
	seq_printf(m, "base: %llu\n", result.base);
	seq_printf(m, "kfence: %llu\n", result.kfence);
	seq_printf(m, "large: %llu\n", result.large);
	seq_printf(m, "large_pages: %llu\n", result.large_pages);
	seq_printf(m, "large_pages_off: %lld\n", result.large_pages_off);
	seq_printf(m, "records: %llu\n", result.records);
	seq_printf(m, "records_off: %lld\n", result.records_off);
	for (i = 0; i < BTC_REFUSED; i++)
		seq_printf(m, "%s: %llu\n", btlog_counter_names[i], result.counts[i]);
	show_refused(m);
	for (i = 0; i < WRONG_NR; i++)
		seq_printf(m, "%s: %llu\n", wrong_names[i], result.wrong[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int caches_show(struct seq_file *m, void *unused)
{
	const struct cache *cache;
	unsigned int i, kind;

	seq_puts(m, "# cache in_use logged");
	for (kind = 0; kind < WRONG_NR; kind++)
		seq_printf(m, " %s", wrong_names[kind]);
	seq_putc(m, '\n');
	for (i = 0; i < MAX_CACHES; i++) {
		cache = &caches[i];
		if (!cache->s)
			continue;
		seq_printf(m, "%s %llu %llu", cache->name, cache->in_use, cache->logged);
		for (kind = 0; kind < WRONG_NR; kind++)
			seq_printf(m, " %llu", cache->wrong[kind]);
		seq_putc(m, '\n');
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(caches);

static int differences_show(struct seq_file *m, void *unused)
{
	const struct difference *d;
	unsigned int i;

	for (i = 0; i < nr_differences; i++) {
		d = &differences[i];
		seq_printf(m, "%s 0x%llx %s\n", wrong_names[d->kind], d->addr,
			   d->cache ? d->cache->name : "-");
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(differences);

static struct dentry *files;

static void make_files(void)
{
	files = debugfs_create_dir("btlog_audit", NULL);
	debugfs_create_file("control", 0200, files, NULL, &control_fops);
	debugfs_create_file("result", 0400, files, NULL, &result_fops);
	debugfs_create_file("caches", 0400, files, NULL, &caches_fops);
	debugfs_create_file("differences", 0400, files, NULL, &differences_fops);
}

static int __init audit_init(void)
{
	int err;

	err = sets_init();
	if (err)
		goto err_sets;
	err = proof_init();
	if (err)
		goto err_sets;
	err = watch();
	if (err)
		goto err_proof;
	make_files();
	return 0;

err_proof:
	proof_exit();
err_sets:
	sets_exit();
	return err;
}

static void __exit audit_exit(void)
{
	debugfs_remove(files);
	heal();
	if (log)
		btlog_release(log);
	unwatch();
	proof_exit();
	sets_exit();
}

module_init(audit_init);
module_exit(audit_exit);
MODULE_DESCRIPTION("btlog: exact comparison of a slab log with the slab pages");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS(BTLOG_TEST);
