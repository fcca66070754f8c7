// SPDX-License-Identifier: GPL-2.0
/*
 * slab.c - kmalloc() and kmem_cache_alloc() as a source of events
 *
 * Four tracepoints tell of single objects, before they are freed and after
 * they are allocated, so that the events of one address never overtake each
 * other. Objects in bulk have no events: kmem_cache_free_bulk(), where
 * kfree_rcu() ends as well, is hooked at its entry by ftrace and
 * kmem_cache_alloc_bulk() at its return. All hooks are there or none.
 *
 * What can't be seen:
 *   - a CPU that isn't marked online raises no events, so what is freed on the
 *     way up or down stays in the log until its address is used again;
 *   - where there are no fprobes (6.1), 0 in debugfs' kprobes/enabled hides bulk
 *     allocations; their frees then count as untracked;
 *   - krealloc() within an object's own room leaves the recorded size as it was;
 *   - mempools, the network's skb cache and the like keep freed objects, which
 *     count as allocated, with the stack that once allocated them;
 *   - a free says nothing of the size that was asked for; events of frees have
 *     the size of the cache's objects.
 *
 * Locks: slab_logs_lock (mutex), inside a log's mutex, for the list of logs and
 * the hooks. Events read the list under RCU, as all hooks run with preemption
 * off.
 */
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/rculist.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <trace/events/kmem.h>

#include "../log.h"
#include "slab.h"
#include "source.h"

/**
 * struct slab_log - an attached log
 * @list: slab_logs_lock, R: entry in the list, next to others of the same
 *	depth and flags
 * @log: I
 * @depth: I: frames per stack
 * @flags: I: for btref_get()
 * @hash: I: it keeps what is outstanding, not events
 * @filter: I: the caches it wants
 */
struct slab_log {
	struct list_head list;
	struct btlog *log;
	u32 depth;
	u32 flags;
	bool hash;
	struct slab_filter filter;
};

/* Of an object whose cache is looked up if it matters. */
#define UNKNOWN_CACHE ((const struct kmem_cache *)ERR_PTR(-ENODATA))

/**
 * struct slab_object - what an event is about
 * @ptr: the object
 * @cache: its cache, or UNKNOWN_CACHE
 * @call_site: who allocated or freed it
 */
struct slab_object {
	const void *ptr;
	const struct kmem_cache *cache;
	unsigned long call_site;
};

enum slab_counter {
	COUNT_KMALLOC,
	COUNT_CACHE_ALLOC,
	COUNT_BULK_ALLOC,
	COUNT_KFREE,
	COUNT_CACHE_FREE,
	COUNT_BULK_FREE,
	COUNT_FAILED,
	COUNT_NR
};

static const char * const counter_names[] = {
	[COUNT_KMALLOC]		= "kmalloc_events",
	[COUNT_CACHE_ALLOC]	= "kmem_cache_alloc_events",
	[COUNT_BULK_ALLOC]	= "bulk_alloc_objects",
	[COUNT_KFREE]		= "kfree_events",
	[COUNT_CACHE_FREE]	= "kmem_cache_free_events",
	[COUNT_BULK_FREE]	= "bulk_free_objects",
	[COUNT_FAILED]		= "failed_allocations",
};

static_assert(ARRAY_SIZE(counter_names) == COUNT_NR);

static DEFINE_MUTEX(slab_logs_lock);
static LIST_HEAD(slab_logs);			/* slab_logs_lock, R */
static struct slab_log __rcu *sole_log;		/* slab_logs_lock: see choose_sole() */
static DEFINE_PER_CPU(u64, counts[COUNT_NR]);

/* ==== Events ==== */

static __always_inline const struct kmem_cache *
cache_of(const struct slab_object *object)
{
	return object->cache == UNKNOWN_CACHE ? slab_cache_of(object->ptr) :
						object->cache;
}

static __always_inline bool passes(const struct slab_log *log,
				   const struct slab_object *object)
{
	return likely(log->filter.all) ||
	       slab_filter_wants(&log->filter, slab_tag(cache_of(object)));
}

static btref_t capture(const struct slab_log *log, unsigned long call_site)
{
	return btref_get(call_site, log->depth, log->flags);
}

/* The hooks of the bulk functions know registers. */
static btref_t capture_from(const struct slab_log *log,
			    const struct bt_frame *from)
{
	return btref_get_from(from, log->depth, log->flags);
}

static bool same_stack(const struct slab_log *a, const struct slab_log *b)
{
	return a->depth == b->depth && a->flags == b->flags;
}

static void finish(struct btlog *log, const struct btlog_event *event,
		   btref_t ref)
{
	if (unlikely(ref == btref_reason(BTR_RECURSION)))
		btlog_refuse(log, BTR_RECURSION);
	else
		btlog_record(log, event, ref);
}

/*
 * @log, which doesn't skip the event, and those after it that want it. A record
 * is made when the next log was asked, so that the stack can be retained for
 * that one while the reference is still owned.
 */
static noinline void record_from(const struct slab_log *log, const void *ptr,
				 const struct kmem_cache *cache, size_t size,
				 unsigned long call_site, enum btlog_op op)
{
	const struct slab_object object = { ptr, cache, call_site };
	const struct btlog_event event = {
		.addr = (unsigned long)ptr,
		.size = size,
		.op = op,
		.tag = slab_tag(cache_of(&object)),
	};
	btref_t ref = capture(log, call_site), next;
	const struct slab_log *other = log;

	btlog_drawn(log->log);
	list_for_each_entry_continue_rcu(other, &slab_logs, list) {
		if ((op == BTLOG_OP_FREE && other->hash) ||
		    !slab_filter_wants(&other->filter, event.tag) ||
		    btlog_skips(other->log, size))
			continue;
		btlog_drawn(other->log);
		if (same_stack(log, other))
			next = btref_retain(ref);
		else
			next = capture(other, call_site);
		finish(log->log, &event, ref);
		log = other;
		ref = next;
	}
	finish(log->log, &event, ref);
}

static noinline void record_any(const void *ptr, const struct kmem_cache *cache,
				size_t size, unsigned long call_site,
				enum btlog_op op)
{
	const struct slab_object object = { ptr, cache, call_site };
	const struct slab_log *log;

	list_for_each_entry_rcu(log, &slab_logs, list) {
		if (op == BTLOG_OP_FREE && log->hash)
			continue;
		if (passes(log, &object) && !btlog_skips(log->log, size)) {
			record_from(log, ptr, cache, size, call_site, op);
			return;
		}
	}
}

static size_t object_size(const struct slab_object *object)
{
	const struct kmem_cache *cache = cache_of(object);

	return cache ? slab_cache_size(cache) :
		       folio_size(virt_to_folio(object->ptr));
}

static __always_inline void erase_from(struct btlog *log, const void *ptr)
{
	if (btlog_lacks(log, (unsigned long)ptr))
		btlog_count_event(log, BTC_UNTRACKED_FREE);
	else
		btlog_erase(log, (unsigned long)ptr);
}

static noinline void erase_any(const void *ptr, const struct kmem_cache *cache,
			       unsigned long call_site)
{
	const struct slab_object object = { ptr, cache, call_site };
	const struct slab_log *log;
	bool events = false;

	list_for_each_entry_rcu(log, &slab_logs, list) {
		if (!log->hash)
			events = true;
		else if (passes(log, &object))
			erase_from(log->log, ptr);
	}
	/* They alone care for more than the address. */
	if (events)
		record_any(ptr, cache, object_size(&object), call_site,
			   BTLOG_OP_FREE);
}

/*
 * The next two are inlined into the hooks: they are all there is to an event
 * that the only log doesn't want. Every call is the last thing done, so that the
 * hooks have nothing to save.
 */
static __always_inline void record(const void *ptr,
				   const struct kmem_cache *cache, size_t size,
				   unsigned long call_site)
{
	const struct slab_log *sole = rcu_dereference_sched(sole_log);

	if (unlikely(!sole))
		record_any(ptr, cache, size, call_site, BTLOG_OP_ALLOC);
	else if (!btlog_skips(sole->log, size))
		record_from(sole, ptr, cache, size, call_site, BTLOG_OP_ALLOC);
}

static __always_inline void erase(const void *ptr,
				  const struct kmem_cache *cache,
				  unsigned long call_site)
{
	const struct slab_log *sole = rcu_dereference_sched(sole_log);

	if (likely(sole))
		erase_from(sole->log, ptr);
	else
		erase_any(ptr, cache, call_site);
}

/* ==== Tracepoints ==== */

/**
 * struct text_range - the code of a function
 * @start: I
 * @end: I
 */
struct text_range {
	unsigned long start, end;
};

/*
 * On 6.12 these functions call __kmalloc_large_node_noprof() if the object is
 * too large for a cache, and both raise the event. The inner one, whose caller
 * is one of these, is left out.
 */
static const char * const large_callers[] = {
	"__do_kmalloc_node",	/* where it isn't part of them */
	"__kmalloc_noprof",
	"__kmalloc_node_noprof",
	"__kmalloc_node_track_caller_noprof",
};

static struct text_range large_caller_text[ARRAY_SIZE(large_callers)];

static bool is_large_caller(unsigned long addr)
{
	const struct text_range *text = large_caller_text;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(large_caller_text); i++, text++)
		if (addr >= text->start && addr < text->end)
			return true;
	return false;
}

static __always_inline void kmalloc_event(unsigned long call_site,
					  const void *ptr, size_t size)
{
	this_cpu_inc(counts[COUNT_KMALLOC]);
	if (likely(!ZERO_OR_NULL_PTR(ptr)))
		record(ptr, UNKNOWN_CACHE, size, call_site);
	else if (!ptr)
		this_cpu_inc(counts[COUNT_FAILED]);
}

static noinline void large_kmalloc_event(unsigned long call_site,
					 const void *ptr, size_t size)
{
	if (!is_large_caller(call_site))
		kmalloc_event(call_site, ptr, size);
}

static void on_kmalloc(void *data, unsigned long call_site, const void *ptr,
		       size_t bytes_req, size_t bytes_alloc, gfp_t flags,
		       int node)
{
	if (likely(bytes_req <= KMALLOC_MAX_CACHE_SIZE))
		kmalloc_event(call_site, ptr, bytes_req);
	else
		large_kmalloc_event(call_site, ptr, bytes_req);
}

static void on_kmem_cache_alloc(void *data, unsigned long call_site,
				const void *ptr, struct kmem_cache *cache,
				gfp_t flags, int node)
{
	this_cpu_inc(counts[COUNT_CACHE_ALLOC]);
	if (likely(ptr))
		record(ptr, cache, slab_cache_size(cache), call_site);
	else
		this_cpu_inc(counts[COUNT_FAILED]);
}

static void on_kfree(void *data, unsigned long call_site, const void *ptr)
{
	if (ZERO_OR_NULL_PTR(ptr))
		return;
	this_cpu_inc(counts[COUNT_KFREE]);
	erase(ptr, UNKNOWN_CACHE, call_site);
}

static noinline void retire_and_erase(const void *ptr,
				      const struct kmem_cache *cache,
				      unsigned long call_site)
{
	slab_cache_retire(ptr);
	erase(ptr, cache, call_site);
}

static void on_kmem_cache_free(void *data, unsigned long call_site,
			       const void *ptr, const struct kmem_cache *cache)
{
	if (unlikely(!ptr))
		return;
	this_cpu_inc(counts[COUNT_CACHE_FREE]);
	if (unlikely(cache == slab_cache_cache))
		retire_and_erase(ptr, cache, call_site);
	else
		erase(ptr, cache, call_site);
}

/* ==== Bulk functions ==== */

/**
 * struct slab_bulk - the arguments of a bulk function
 * @cache: of all objects; NULL: they may be of any
 * @nr: how many
 * @ptrs: the objects
 * @caller: of the function
 */
struct slab_bulk {
	struct kmem_cache *cache;
	size_t nr;
	void **ptrs;
	struct bt_frame caller;
};

static struct slab_object bulk_object(const struct slab_bulk *bulk, size_t i)
{
	return (struct slab_object) {
		.ptr = bulk->ptrs[i],
		.cache = bulk->cache ?: UNKNOWN_CACHE,
		.call_site = bulk->caller.ip,
	};
}

/* One stack does for all objects. */
static void record_bulk(const struct slab_log *log, const struct slab_bulk *bulk,
			enum btlog_op op)
{
	btref_t ref = 0;
	size_t i;

	for (i = 0; i < bulk->nr; i++) {
		const struct slab_object object = bulk_object(bulk, i);
		struct btlog_event event = {
			.addr = (unsigned long)object.ptr,
			.op = op,
		};

		if (ZERO_OR_NULL_PTR(object.ptr) || !passes(log, &object))
			continue;
		event.size = object_size(&object);
		if (btlog_skips(log->log, event.size))
			continue;
		btlog_drawn(log->log);
		if (!ref)
			ref = capture_from(log, &bulk->caller);
		event.tag = slab_tag(cache_of(&object));
		finish(log->log, &event, btref_retain(ref));
	}
	btref_put(ref);
}

static void erase_bulk(const struct slab_log *log, const struct slab_bulk *bulk)
{
	size_t i;

	for (i = 0; i < bulk->nr; i++) {
		const struct slab_object object = bulk_object(bulk, i);

		if (!ZERO_OR_NULL_PTR(object.ptr) && passes(log, &object))
			erase_from(log->log, object.ptr);
	}
}

static void on_alloc_bulk_entry(struct pt_regs *regs, void *data)
{
	struct slab_bulk *bulk = data;

	bulk->cache = (void *)regs_get_kernel_argument(regs, 0);
	bulk->nr = regs_get_kernel_argument(regs, 2);
	bulk->ptrs = (void *)regs_get_kernel_argument(regs, 3);
}

/* All objects were allocated or none. */
static void on_alloc_bulk(unsigned long caller, struct pt_regs *regs, void *data)
{
	struct slab_bulk *bulk = data;
	const struct slab_log *log;

	if (!bulk->nr)
		return;
	if (!(int)regs_return_value(regs)) {
		this_cpu_inc(counts[COUNT_FAILED]);
		return;
	}
	this_cpu_add(counts[COUNT_BULK_ALLOC], bulk->nr);
	/* SP is as after the return, whose address was where SP was before. */
	bulk->caller = (struct bt_frame){
		.ip = caller,
		.at = (unsigned long *)regs->sp - 1,
		.bp = &regs->bp,
	};
	list_for_each_entry_rcu(log, &slab_logs, list)
		record_bulk(log, bulk, BTLOG_OP_ALLOC);
}

/* The function reorders the objects, so they are to be read at its entry. */
static void notrace on_free_bulk(unsigned long ip, unsigned long caller,
				 struct ftrace_ops *ops,
				 struct ftrace_regs *regs)
{
	const struct slab_bulk bulk = {
		.cache = (void *)ftrace_regs_get_argument(regs, 0),
		.nr = ftrace_regs_get_argument(regs, 1),
		.ptrs = (void *)ftrace_regs_get_argument(regs, 2),
		/* SP is where the return address is. */
		.caller = {
			.ip = caller,
			.at = (void *)ftrace_regs_get_stack_pointer(regs),
			.bp = ftrace_regs_bp(regs),
		},
	};
	const struct slab_log *log;

	this_cpu_add(counts[COUNT_BULK_FREE], bulk.nr);
	list_for_each_entry_rcu(log, &slab_logs, list) {
		if (log->hash)
			erase_bulk(log, &bulk);
		else
			record_bulk(log, &bulk, BTLOG_OP_FREE);
	}
}

/* ==== Hooks ==== */

static const char free_bulk_name[] = "kmem_cache_free_bulk";

static struct ftrace_ops free_bulk_hook;

/* The function may sleep for memory, with many tasks in it. */
static struct bt_return alloc_bulk_hook = {
	.symbol = BT_ALLOC_BULK,
	.data_size = sizeof(struct slab_bulk),
	.entry = on_alloc_bulk_entry,
	.exit = on_alloc_bulk,
};

/*
 * Per-context protection against recursion leaves out nothing that an
 * interrupt does, and a permanent hook can't be switched off behind our back by
 * kernel.ftrace_enabled. A hook whose filter was freed must start anew.
 */
static int hook_free_bulk(void)
{
	int ret;

	free_bulk_hook = (struct ftrace_ops) {
		.func = on_free_bulk,
		.flags = FTRACE_OPS_FL_RECURSION | FTRACE_OPS_FL_PERMANENT,
	};
	ret = ftrace_set_filter(&free_bulk_hook, (void *)free_bulk_name,
				strlen(free_bulk_name), 0);
	if (!ret)
		ret = register_ftrace_function(&free_bulk_hook);
	if (ret)
		ftrace_free_filter(&free_bulk_hook);
	return ret;
}

static void unhook_free_bulk(void)
{
	unregister_ftrace_function(&free_bulk_hook);
	ftrace_free_filter(&free_bulk_hook);
}

static int hook_alloc_bulk(void)
{
	alloc_bulk_hook.slots = max(256U, 16 * num_possible_cpus());
	return bt_return_register(&alloc_bulk_hook);
}

static void unhook_alloc_bulk(void)
{
	bt_return_unregister(&alloc_bulk_hook);
}

#define TRACEPOINT_HOOK(event)						\
	static int hook_##event(void)					\
	{								\
		return register_trace_##event(on_##event, NULL);	\
	}								\
	static void unhook_##event(void)				\
	{								\
		unregister_trace_##event(on_##event, NULL);		\
	}

TRACEPOINT_HOOK(kmalloc)
TRACEPOINT_HOOK(kmem_cache_alloc)
TRACEPOINT_HOOK(kfree)
TRACEPOINT_HOOK(kmem_cache_free)

/*
 * Frees first: an allocation that is seen whose free is not would look like a
 * leak for ever.
 */
static const struct slab_hook {
	const char *name;
	int (*hook)(void);
	void (*unhook)(void);
	const char *without;
} hooks[] = {
	{ "tracepoint kfree", hook_kfree, unhook_kfree,
	  "everything from kmalloc() would look leaked" },
	{ "tracepoint kmem_cache_free", hook_kmem_cache_free,
	  unhook_kmem_cache_free,
	  "everything from kmem_cache_alloc() would look leaked" },
	{ free_bulk_name, hook_free_bulk, unhook_free_bulk,
	  "whatever kfree_rcu() frees would look leaked" },
	{ "tracepoint kmalloc", hook_kmalloc, unhook_kmalloc,
	  "nothing from kmalloc() would be recorded" },
	{ "tracepoint kmem_cache_alloc", hook_kmem_cache_alloc,
	  unhook_kmem_cache_alloc,
	  "nothing from kmem_cache_alloc() would be recorded" },
	{ BT_ALLOC_BULK, hook_alloc_bulk, unhook_alloc_bulk,
	  "what is allocated in bulk would not be recorded" },
};

static unsigned int hooked;	/* slab_logs_lock: so many of them are there */

static void unhook_all(void)
{
	while (hooked)
		hooks[--hooked].unhook();
	tracepoint_synchronize_unregister();
}

static int hook_all(void)
{
	const struct slab_hook *hook;
	int ret;

	for (; hooked < ARRAY_SIZE(hooks); hooked++) {
		hook = &hooks[hooked];
		ret = hook->hook();
		if (ret) {
			pr_warn("slab: no hook at %s (error %d): without it %s\n",
				hook->name, ret, hook->without);
			unhook_all();
			return ret;
		}
	}
	return 0;
}

/*
 * A probe that is registered disabled isn't put into the code; all it does is
 * to tell where the function lies.
 */
static struct text_range find_text(const char *name)
{
	struct kprobe probe = {
		.symbol_name = name,
		.flags = KPROBE_FLAG_DISABLED,
	};
	char symbol[KSYM_SYMBOL_LEN], *at;
	unsigned long addr, offset, size;

	if (register_kprobe(&probe))
		return (struct text_range) { };
	addr = (unsigned long)probe.addr;
	unregister_kprobe(&probe);
	sprint_symbol(symbol, addr);
	at = strrchr(symbol, '+');
	if (!at || sscanf(at, "+0x%lx/0x%lx", &offset, &size) != 2)
		return (struct text_range) { };
	return (struct text_range) { addr - offset, addr - offset + size };
}

/* Where there are no such functions the event is raised once. */
static int learn(void)
{
	static bool done;
	unsigned int i;
	int ret;

	if (done)
		return 0;
	ret = slab_cache_learn();
	if (ret)
		return ret;
	for (i = 0; i < ARRAY_SIZE(large_callers); i++)
		large_caller_text[i] = find_text(large_callers[i]);
	done = true;
	return 0;
}

static int start(void)
{
	int ret;

	ret = learn();
	if (ret)
		return ret;
	slab_cache_forget();
	return hook_all();
}

/* ==== The source ==== */

static int slab_check(const char *arg)
{
	if (!*arg || slab_filter_check(arg))
		return 0;
	pr_warn_ratelimited("slab:%s: empty cache name\n", arg);
	return -EINVAL;
}

/* Most of the time there is one log, of what is outstanding in all caches. */
static void choose_sole(void)
{
	struct slab_log *log = NULL;

	lockdep_assert_held(&slab_logs_lock);
	if (list_is_singular(&slab_logs))
		log = list_first_entry(&slab_logs, struct slab_log, list);
	if (log && !(log->hash && log->filter.all))
		log = NULL;
	rcu_assign_pointer(sole_log, log);
}

/* Next to a log of the same kind, so that the two share their stacks. */
static void add_log(struct slab_log *new)
{
	struct list_head *at = &slab_logs;
	struct slab_log *log;

	lockdep_assert_held(&slab_logs_lock);

	list_for_each_entry(log, &slab_logs, list) {
		if (same_stack(log, new)) {
			at = &log->list;
			break;
		}
	}
	list_add_tail_rcu(&new->list, at);
	choose_sole();
}

static int slab_attach(struct btlog *log, const char *arg)
{
	struct slab_log *new = kzalloc(sizeof(*new), GFP_KERNEL);
	int ret = 0;

	if (!new)
		return -ENOMEM;
	new->log = log;
	new->depth = log->set.depth;
	new->flags = BTREF_NOWAIT | (log->set.cut_irq ? BTREF_CUT_IRQ : 0);
	new->hash = log->set.type == BTLOG_HASH;

	mutex_lock(&slab_logs_lock);
	if (list_empty(&slab_logs))
		ret = start();
	if (!ret) {
		slab_filter_add(&new->filter, arg);
		add_log(new);
		log->source_private = new;
	}
	mutex_unlock(&slab_logs_lock);

	if (ret)
		kfree(new);
	return ret;
}

static void slab_detach(struct btlog *log)
{
	struct slab_log *old = log->source_private;

	mutex_lock(&slab_logs_lock);
	list_del_rcu(&old->list);
	choose_sole();
	slab_filter_remove(&old->filter);
	if (list_empty(&slab_logs))
		unhook_all();
	else
		synchronize_rcu();
	mutex_unlock(&slab_logs_lock);

	log->source_private = NULL;
	kfree(old);
}

static u64 sum(enum slab_counter counter)
{
	u64 total = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		total += READ_ONCE(per_cpu(counts[counter], cpu));
	return total;
}

static void slab_show(struct seq_file *m, struct btlog *log)
{
	unsigned int i;

	seq_printf(m, "slab_hooks: %u of %zu\n", READ_ONCE(hooked),
		   ARRAY_SIZE(hooks));

	for (i = 0; i < COUNT_NR; i++)
		seq_printf(m, "slab_%s: %llu\n", counter_names[i], sum(i));
	seq_printf(m, "missed_return: %lu\n",
		   bt_return_missed(&alloc_bulk_hook));
	slab_cache_show(m);
}

const struct btlog_source slab_source = {
	.name = "slab",
	.help = "slab[:CACHE,...]: kmalloc() and kmem_cache_alloc(); CACHE may have * and ?",
	.check = slab_check,
	.attach = slab_attach,
	.detach = slab_detach,
	.tag_name = slab_tag_name,
	.show = slab_show,
};
