// SPDX-License-Identifier: GPL-2.0
/*
 * tm.c - allocates and frees on command and keeps exact count
 *
 * What btlog says is compared with what this module knows to be true. Commands
 * are lines written to /sys/kernel/debug/tm/cmd; an error means that nothing, or
 * not all, was done, and -EOPNOTSUPP that the kernel doesn't allow the
 * combination:
 *
 *	alloc VARIANT SITE CONTEXT N [SIZE]
 *	free VARIANT SITE FREEVARIANT CONTEXT [N]
 *	pingpong CPUS N		N allocations on each CPU, freed by any; what is
 *				left can be freed as "kmalloc A"
 *	irqfree N		N allocations in a task; a hardirq timer and a
 *				tasklet on the same CPU free them
 *	nulls N			kfree() of NULL and of kmalloc(0), N times each
 *	cache NAME N		a cache of that name is made, N objects are
 *				allocated and freed, the cache is destroyed
 *	barrier			wait for what was freed by RCU
 *
 * "state" has one line of `key: value` for each number. SITE is A, B, C, or P
 * and a number k: objects are allocated in turn by 2^k different stacks.
 *
 * Pointers are kept in vmalloc'ed arrays, so that no slab object but those asked
 * for is allocated below the functions siteA() to siteP().
 *
 * Locks: tm_lock (mutex), for everything. What runs in another context is
 * waited for with the mutex held.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

enum {
	BULK		= 16,		/* objects of a bulk function's call */
	CHUNK		= 64,		/* objects per interrupt */
	CACHE_SIZE	= 200,
	CONST_SIZE	= 64,
	CONST_LARGE	= 4 * PAGE_SIZE,
	MAX_OBJECTS	= 1 << 21,
	MAX_PATH	= 16,
	SLOTS		= 1024,		/* of ping-pong */
	IRQ_PERIOD_NS	= 100000,
};

static bool leak;
module_param(leak, bool, 0644);
MODULE_PARM_DESC(leak, "keep what is outstanding when the module is removed");

static unsigned int init_leak, exit_leak;
module_param(init_leak, uint, 0444);
MODULE_PARM_DESC(init_leak, "objects to leak from the module's init function");
module_param(exit_leak, uint, 0644);
MODULE_PARM_DESC(exit_leak, "objects to leak from the module's exit function");

/* ==== What there is ==== */

enum kind { KIND_KMALLOC, KIND_CACHE, KIND_VMALLOC, KIND_PERCPU, KIND_PAGES,
	    KIND_EXACT };

enum variant {
	KMALLOC, KMALLOC_CONST, KZALLOC, KMALLOC_NODE, KSTRDUP, KMEMDUP,
	KREALLOC_GROW, KREALLOC_SHRINK, KMALLOC_LARGE, KMALLOC_LARGE_CONST,
	KMALLOC_LARGE_NODE, KVMALLOC, CACHE, CACHE_ZALLOC, CACHE_NODE,
	CACHE_BULK, KVMALLOC_FALLBACK, VMALLOC, PERCPU, PAGES, PAGES_EXACT,
	NR_VARIANTS
};

/**
 * struct variant_info - a way to allocate
 * @name: in commands
 * @kind: decides how the objects may be freed
 * @size: bytes if the command says nothing
 * @fixed: the command may not say anything
 * @sleeps: for tasks only
 * @bulk: with interrupts enabled only
 */
struct variant_info {
	const char *name;
	enum kind kind;
	size_t size;
	bool fixed, sleeps, bulk;
};

static const struct variant_info variants[NR_VARIANTS] = {
	[KMALLOC]	= { "kmalloc", KIND_KMALLOC, 64 },
	[KMALLOC_CONST]	= { "kmalloc_const", KIND_KMALLOC, CONST_SIZE, true },
	[KZALLOC]	= { "kzalloc", KIND_KMALLOC, 64 },
	[KMALLOC_NODE]	= { "kmalloc_node", KIND_KMALLOC, 64 },
	[KSTRDUP]	= { "kstrdup", KIND_KMALLOC, 64 },
	[KMEMDUP]	= { "kmemdup", KIND_KMALLOC, 64 },
	[KREALLOC_GROW]	= { "krealloc_grow", KIND_KMALLOC, 256 },
	[KREALLOC_SHRINK] = { "krealloc_shrink", KIND_KMALLOC, 64 },
	[KMALLOC_LARGE]	= { "kmalloc_large", KIND_KMALLOC, 3 * PAGE_SIZE },
	[KMALLOC_LARGE_CONST] = { "kmalloc_large_const", KIND_KMALLOC,
				  CONST_LARGE, true },
	[KMALLOC_LARGE_NODE] = { "kmalloc_large_node", KIND_KMALLOC,
				 3 * PAGE_SIZE },
	[KVMALLOC]	= { "kvmalloc", KIND_KMALLOC, 64, .sleeps = true },
	[CACHE]		= { "cache", KIND_CACHE, CACHE_SIZE, true },
	[CACHE_ZALLOC]	= { "cache_zalloc", KIND_CACHE, CACHE_SIZE, true },
	[CACHE_NODE]	= { "cache_node", KIND_CACHE, CACHE_SIZE, true },
	[CACHE_BULK]	= { "cache_bulk", KIND_CACHE, CACHE_SIZE, true,
			    .bulk = true },
	[KVMALLOC_FALLBACK] = { "kvmalloc_fallback", KIND_VMALLOC, 5 << 20,
				.sleeps = true },
	[VMALLOC]	= { "vmalloc", KIND_VMALLOC, 5 * PAGE_SIZE,
			    .sleeps = true },
	[PERCPU]	= { "percpu", KIND_PERCPU, 64 },
	[PAGES]		= { "pages", KIND_PAGES, PAGE_SIZE },
	[PAGES_EXACT]	= { "pages_exact", KIND_EXACT, 3 * PAGE_SIZE },
};

enum free_variant {
	KFREE, KFREE_SENSITIVE, KVFREE, KFREE_RCU, KVFREE_RCU, KFREE_BULK,
	CACHE_FREE, CACHE_FREE_BULK, CALL_RCU, VFREE, FREE_PERCPU, FREE_PAGES,
	FREE_EXACT,
	NR_FREE_VARIANTS
};

#define SLAB_KINDS (BIT(KIND_KMALLOC) | BIT(KIND_CACHE))

/**
 * struct free_info - a way to free
 * @name: in commands
 * @kinds: what can be freed so
 * @sleeps: in tasks only
 * @bulk: with interrupts enabled only
 */
struct free_info {
	const char *name;
	unsigned int kinds;
	bool sleeps, bulk;
};

static const struct free_info free_variants[NR_FREE_VARIANTS] = {
	[KFREE]		= { "kfree", SLAB_KINDS },
	[KFREE_SENSITIVE] = { "kfree_sensitive", SLAB_KINDS },
	[KVFREE]	= { "kvfree", SLAB_KINDS | BIT(KIND_VMALLOC) },
	[KFREE_RCU]	= { "kfree_rcu", SLAB_KINDS },
	[KVFREE_RCU]	= { "kvfree_rcu", SLAB_KINDS | BIT(KIND_VMALLOC),
			    .sleeps = true },
	[KFREE_BULK]	= { "kfree_bulk", SLAB_KINDS, .bulk = true },
	[CACHE_FREE]	= { "cache_free", BIT(KIND_CACHE) },
	[CACHE_FREE_BULK] = { "cache_free_bulk", BIT(KIND_CACHE),
			      .bulk = true },
	[CALL_RCU]	= { "call_rcu", SLAB_KINDS },
	[VFREE]		= { "vfree", BIT(KIND_VMALLOC) },
	[FREE_PERCPU]	= { "free_percpu", BIT(KIND_PERCPU) },
	[FREE_PAGES]	= { "free_pages", BIT(KIND_PAGES) },
	[FREE_EXACT]	= { "free_exact", BIT(KIND_EXACT) },
};

enum site { SITE_A, SITE_B, SITE_C, SITE_P, NR_SITES };

enum context {
	TASK, WORK, SOFTIRQ, TIMER, RCU, PREEMPT_OFF, IRQS_OFF, RAW_LOCK,
	HARDIRQ,
	NR_CONTEXTS
};

static const char * const contexts[NR_CONTEXTS] = {
	[TASK]		= "task",
	[WORK]		= "work",
	[SOFTIRQ]	= "softirq",
	[TIMER]		= "timer",
	[RCU]		= "rcu",
	[PREEMPT_OFF]	= "preempt_off",
	[IRQS_OFF]	= "irqs_off",
	[RAW_LOCK]	= "raw_lock",
	[HARDIRQ]	= "hardirq",
};

/**
 * struct object - what was allocated and not yet freed
 * @ptr: it
 * @size: bytes that were asked for
 */
struct object {
	void *ptr;
	size_t size;
};

/**
 * struct bag - the objects of one variant and site
 * @objects: they
 * @nr: how many
 * @room: how many there is room for
 * @bytes: sum of their sizes
 * @failed: allocations that failed
 * @used: there was a command for it
 */
struct bag {
	struct object *objects;
	unsigned int nr, room;
	u64 bytes, failed;
	bool used;
};

static DEFINE_MUTEX(tm_lock);
static struct bag bags[NR_VARIANTS][NR_SITES];
static struct kmem_cache *tm_cache;
static struct dentry *tm_dir;
static char *text;			/* PAGE_SIZE, for the copying variants */
static u64 irq_frees, softirq_frees;
static unsigned long last_kfree_rcu;	/* jiffies; 0: never */
static DEFINE_RAW_SPINLOCK(tm_raw_lock);

/* ==== The sites ==== */

/**
 * struct op - one call of an allocator
 * @variant: which
 * @size: bytes
 * @gfp: as the context has it
 * @path: site P: the bits choose the stack
 * @nr: in: objects wanted, more than 1 in bulk only; out: objects got
 * @ptrs: they
 */
struct op {
	enum variant variant;
	size_t size;
	gfp_t gfp;
	unsigned int path;
	unsigned int nr;
	void *ptrs[BULK];
};

static __always_inline void *grow(size_t size, gfp_t gfp)
{
	void *ptr = kmalloc(size / 4, gfp);

	return ptr ? krealloc(ptr, size, gfp) : NULL;
}

static __always_inline void *shrink(size_t size, gfp_t gfp)
{
	void *ptr = kmalloc(size, gfp);

	return ptr ? krealloc(ptr, size - size / 4, gfp) : NULL;
}

/* Inlined into each site, so that the site itself calls the allocator. */
static __always_inline void *allocate_one(const struct op *op)
{
	switch (op->variant) {
	case KMALLOC:
	case KMALLOC_LARGE:
		return kmalloc(op->size, op->gfp);
	case KMALLOC_CONST:
		return kmalloc(CONST_SIZE, op->gfp);
	case KMALLOC_LARGE_CONST:
		return kmalloc(CONST_LARGE, op->gfp);
	case KZALLOC:
		return kzalloc(op->size, op->gfp);
	case KMALLOC_NODE:
	case KMALLOC_LARGE_NODE:
		return kmalloc_node(op->size, op->gfp, numa_mem_id());
	case KSTRDUP:
		return kstrdup(text + PAGE_SIZE - op->size, op->gfp);
	case KMEMDUP:
		return kmemdup(text, op->size, op->gfp);
	case KREALLOC_GROW:
		return grow(op->size, op->gfp);
	case KREALLOC_SHRINK:
		return shrink(op->size, op->gfp);
	case CACHE:
		return kmem_cache_alloc(tm_cache, op->gfp);
	case CACHE_ZALLOC:
		return kmem_cache_zalloc(tm_cache, op->gfp);
	case CACHE_NODE:
		return kmem_cache_alloc_node(tm_cache, op->gfp, numa_mem_id());
	case KVMALLOC:
	case KVMALLOC_FALLBACK:
		return kvmalloc(op->size, op->gfp);
	case VMALLOC:
		return __vmalloc(op->size, op->gfp);
	case PERCPU:
		return (void __force *)__alloc_percpu_gfp(op->size, 8, op->gfp);
	case PAGES:
		return (void *)__get_free_pages(op->gfp, get_order(op->size));
	case PAGES_EXACT:
		return alloc_pages_exact(op->size, op->gfp);
	default:
		return NULL;
	}
}

/*
 * At the end of each function of a path: the call before it is no tail call,
 * which would hide the function, and no two of them are the same to a compiler
 * that folds identical code.
 */
#define SITE_END(name) ({ asm volatile("# end of " name); })

static __always_inline void allocate(struct op *op)
{
	if (op->variant == CACHE_BULK) {
		op->nr = kmem_cache_alloc_bulk(tm_cache, op->gfp, op->nr,
					       op->ptrs);
	} else {
		op->ptrs[0] = allocate_one(op);
		op->nr = op->ptrs[0] ? 1 : 0;
	}
}

static noinline __noclone void siteC(struct op *op)
{
	allocate(op);
	SITE_END("siteC");
}

static noinline __noclone void siteB(struct op *op, enum site site)
{
	if (site == SITE_B)
		allocate(op);
	else
		siteC(op);
	SITE_END("siteB");
}

static noinline __noclone void siteA(struct op *op, enum site site)
{
	if (site == SITE_A)
		allocate(op);
	else
		siteB(op, site);
	SITE_END("siteA");
}

static noinline __noclone void siteP(struct op *op)
{
	allocate(op);
	SITE_END("siteP");
}

static void path(struct op *op, unsigned int bits);

static noinline __noclone void path_left(struct op *op, unsigned int bits)
{
	path(op, bits);
	SITE_END("path_left");
}

static noinline __noclone void path_right(struct op *op, unsigned int bits)
{
	path(op, bits);
	SITE_END("path_right");
}

/* The highest bit ends the path. */
static __always_inline void path(struct op *op, unsigned int bits)
{
	if (bits == 1)
		siteP(op);
	else if (bits & 1)
		path_right(op, bits >> 1);
	else
		path_left(op, bits >> 1);
}

static noinline __noclone void call_site(struct op *op, enum site site)
{
	if (site == SITE_P)
		path(op, op->path);
	else
		siteA(op, site);
	SITE_END("call_site");
}

/* ==== Bags ==== */

static int reserve(struct bag *bag, unsigned int more)
{
	unsigned int room = bag->nr + more;
	struct object *objects;

	if (more > MAX_OBJECTS || room > MAX_OBJECTS)
		return -ERANGE;
	if (room <= bag->room)
		return 0;
	objects = vmalloc(array_size(room, sizeof(*objects)));
	if (!objects)
		return -ENOMEM;
	if (bag->nr)
		memcpy(objects, bag->objects, bag->nr * sizeof(*objects));
	vfree(bag->objects);
	bag->objects = objects;
	bag->room = room;
	return 0;
}

static void put_in(struct bag *bag, void *ptr, size_t size)
{
	bag->objects[bag->nr++] = (struct object) { ptr, size };
	bag->bytes += size;
}

static struct object take_out(struct bag *bag)
{
	struct object object = bag->objects[--bag->nr];

	bag->bytes -= object.size;
	return object;
}

/* ==== Jobs: a number of objects, one context ==== */

/**
 * struct job - a command that is being carried out
 * @bag: what it works on
 * @left: objects to go
 * @step: works on some; they take at most CHUNK of @left
 * @context: where
 * @site: where it allocates
 * @op: what it allocates
 * @paths: site P: number of stacks
 * @how: how it frees
 * @done: for contexts that are not the task's own
 * @work: context WORK
 * @tasklet: context SOFTIRQ
 * @timer: context TIMER
 * @hrtimer: context HARDIRQ
 * @rcu: context RCU
 */
struct job {
	struct bag *bag;
	unsigned int left;
	void (*step)(struct job *job);
	enum context context;
	enum site site;
	struct op op;
	unsigned int paths;
	enum free_variant how;
	struct completion done;
	union {
		struct work_struct work;
		struct tasklet_struct tasklet;
		struct timer_list timer;
		struct hrtimer hrtimer;
		struct rcu_head rcu;
	};
};

static void alloc_step(struct job *job)
{
	unsigned int wanted = min_t(unsigned int, job->left, CHUNK), i;
	struct op *op = &job->op;

	job->left -= wanted;
	while (wanted) {
		unsigned int nr = op->variant == CACHE_BULK ?
			min_t(unsigned int, wanted, BULK) : 1;

		op->nr = nr;
		op->path = job->paths | (job->left + wanted) % job->paths;
		call_site(op, job->site);
		if (!op->nr)
			job->bag->failed++;
		for (i = 0; i < op->nr; i++)
			put_in(job->bag, op->ptrs[i], op->size);
		wanted -= nr;
	}
}

static void kfree_callback(struct rcu_head *head)
{
	kfree(head);
}

static void cache_free_callback(struct rcu_head *head)
{
	kmem_cache_free(tm_cache, head);
}

/* The object's offset in itself is what tells it from a function. */
static void free_by_kfree_rcu(void *ptr)
{
	struct { struct rcu_head rcu; } *object = ptr;

	kfree_rcu(object, rcu);
	last_kfree_rcu = jiffies;
}

static void free_by_kvfree_rcu(void *ptr)
{
	kvfree_rcu_mightsleep(ptr);
	last_kfree_rcu = jiffies;
}

static noinline __noclone void free_one(struct object object,
					enum free_variant how, enum kind kind)
{
	void *ptr = object.ptr;

	switch (how) {
	case KFREE_SENSITIVE:
		kfree_sensitive(ptr);
		break;
	case KVFREE:
		kvfree(ptr);
		break;
	case KFREE_RCU:
		free_by_kfree_rcu(ptr);
		break;
	case KVFREE_RCU:
		free_by_kvfree_rcu(ptr);
		break;
	case CACHE_FREE:
		kmem_cache_free(tm_cache, ptr);
		break;
	case CALL_RCU:
		call_rcu(ptr, kind == KIND_CACHE ? cache_free_callback :
						   kfree_callback);
		break;
	case VFREE:
		vfree(ptr);
		break;
	case FREE_PERCPU:
		free_percpu((void __percpu __force *)ptr);
		break;
	case FREE_PAGES:
		free_pages((unsigned long)ptr, get_order(object.size));
		break;
	case FREE_EXACT:
		free_pages_exact(ptr, object.size);
		break;
	default:
		kfree(ptr);
	}
	SITE_END("free_one");
}

static noinline __noclone void free_many(struct bag *bag, unsigned int nr,
					 enum free_variant how)
{
	void *ptrs[BULK];
	unsigned int i;

	for (i = 0; i < nr; i++)
		ptrs[i] = take_out(bag).ptr;
	if (how == KFREE_BULK)
		kfree_bulk(nr, ptrs);
	else
		kmem_cache_free_bulk(tm_cache, nr, ptrs);
	SITE_END("free_many");
}

static bool is_bulk(enum free_variant how)
{
	return how == KFREE_BULK || how == CACHE_FREE_BULK;
}

static void free_step(struct job *job)
{
	unsigned int nr = min_t(unsigned int, job->left, CHUNK), n;
	enum kind kind = variants[job->op.variant].kind;

	job->left -= nr;
	for (; nr; nr -= n) {
		n = is_bulk(job->how) ? min_t(unsigned int, nr, BULK) : 1;
		if (is_bulk(job->how))
			free_many(job->bag, n, job->how);
		else
			free_one(take_out(job->bag), job->how, kind);
	}
}

/* ==== Contexts ==== */

static void run_here(struct job *job)
{
	do {
		job->step(job);
		cond_resched();
	} while (job->left);
}

/* Whoever waits long looks hung, except if he looks round now and then. */
static void wait_for(struct completion *done)
{
	while (!wait_for_completion_timeout(done, HZ))
		;
}

static void work_fn(struct work_struct *work)
{
	struct job *job = container_of(work, struct job, work);

	run_here(job);
	complete(&job->done);
}

static void run_in_work(struct job *job)
{
	INIT_WORK_ONSTACK(&job->work, work_fn);
	schedule_work(&job->work);
	wait_for(&job->done);
	flush_work(&job->work);
	destroy_work_on_stack(&job->work);
}

static void tasklet_fn(struct tasklet_struct *tasklet)
{
	struct job *job = from_tasklet(job, tasklet, tasklet);

	job->step(job);
	if (job->left)
		tasklet_schedule(tasklet);
	else
		complete(&job->done);
}

static void run_in_tasklet(struct job *job)
{
	tasklet_setup(&job->tasklet, tasklet_fn);
	tasklet_schedule(&job->tasklet);
	wait_for(&job->done);
	tasklet_kill(&job->tasklet);
}

static void timer_fn(struct timer_list *timer)
{
	struct job *job = container_of(timer, struct job, timer);

	job->step(job);
	if (job->left)
		mod_timer(timer, jiffies + 1);
	else
		complete(&job->done);
}

static void run_in_timer(struct job *job)
{
	timer_setup_on_stack(&job->timer, timer_fn, 0);
	mod_timer(&job->timer, jiffies);
	wait_for(&job->done);
	del_timer_sync(&job->timer);
	destroy_timer_on_stack(&job->timer);
}

static enum hrtimer_restart hrtimer_fn(struct hrtimer *timer)
{
	struct job *job = container_of(timer, struct job, hrtimer);

	job->step(job);
	if (!job->left) {
		complete(&job->done);
		return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(timer, ns_to_ktime(IRQ_PERIOD_NS));
	return HRTIMER_RESTART;
}

static void run_in_hrtimer(struct job *job)
{
	hrtimer_init_on_stack(&job->hrtimer, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL_HARD);
	job->hrtimer.function = hrtimer_fn;
	hrtimer_start(&job->hrtimer, ns_to_ktime(IRQ_PERIOD_NS),
		      HRTIMER_MODE_REL_HARD);
	wait_for(&job->done);
	hrtimer_cancel(&job->hrtimer);
	destroy_hrtimer_on_stack(&job->hrtimer);
}

static void rcu_fn(struct rcu_head *rcu)
{
	struct job *job = container_of(rcu, struct job, rcu);

	job->step(job);
	if (job->left)
		call_rcu(rcu, rcu_fn);
	else
		complete(&job->done);
}

static void run_in_rcu(struct job *job)
{
	init_rcu_head_on_stack(&job->rcu);
	call_rcu(&job->rcu, rcu_fn);
	wait_for(&job->done);
	destroy_rcu_head_on_stack(&job->rcu);
}

static void run_preempt_off(struct job *job)
{
	do {
		preempt_disable();
		job->step(job);
		preempt_enable();
	} while (job->left);
}

static void run_irqs_off(struct job *job)
{
	do {
		local_irq_disable();
		job->step(job);
		local_irq_enable();
	} while (job->left);
}

static void run_raw_lock(struct job *job)
{
	do {
		raw_spin_lock(&tm_raw_lock);
		job->step(job);
		raw_spin_unlock(&tm_raw_lock);
	} while (job->left);
}

static void (*const runners[NR_CONTEXTS])(struct job *job) = {
	[TASK]		= run_here,
	[WORK]		= run_in_work,
	[SOFTIRQ]	= run_in_tasklet,
	[TIMER]		= run_in_timer,
	[RCU]		= run_in_rcu,
	[PREEMPT_OFF]	= run_preempt_off,
	[IRQS_OFF]	= run_irqs_off,
	[RAW_LOCK]	= run_raw_lock,
	[HARDIRQ]	= run_in_hrtimer,
};

static bool may_sleep(enum context context)
{
	return context == TASK || context == WORK;
}

/*
 * The allocator's locks sleep on PREEMPT_RT, and lockdep may treat every kernel
 * as if they did.
 */
static bool allowed(enum context context, bool sleeps, bool bulk)
{
	if (sleeps && !may_sleep(context))
		return false;
	if (bulk && (context == IRQS_OFF || context == HARDIRQ))
		return false;
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return context < PREEMPT_OFF;
	if (IS_ENABLED(CONFIG_PROVE_RAW_LOCK_NESTING))
		return context != RAW_LOCK && context != HARDIRQ;
	return true;
}

static void run(struct job *job)
{
	if (!job->left)
		return;
	init_completion(&job->done);
	runners[job->context](job);
}

/* ==== Loads ==== */

/**
 * struct player - a thread bound to a CPU
 * @task: it
 * @play: what it does
 * @rounds: so many times
 * @stride: ping-pong: odd, so that it comes by every slot
 * @failed: allocations that failed
 * @done: it has finished
 */
struct player {
	struct task_struct *task;
	void (*play)(struct player *player);
	unsigned int rounds;
	unsigned int stride;
	u64 failed;
	struct completion done;
};

static int player_thread(void *arg)
{
	struct player *player = arg;

	player->play(player);
	complete(&player->done);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static int start_player(struct player *player, unsigned int cpu)
{
	init_completion(&player->done);
	player->task = kthread_create(player_thread, player, "tm/%u", cpu);
	if (IS_ERR(player->task))
		return PTR_ERR(player->task);
	kthread_bind(player->task, cpu);
	wake_up_process(player->task);
	return 0;
}

static void stop_player(struct player *player, struct bag *bag)
{
	wait_for(&player->done);
	kthread_stop(player->task);
	bag->failed += player->failed;
}

static void *slots[SLOTS];

/* Whoever comes by a slot frees what another one left there. */
static void play_pingpong(struct player *player)
{
	struct op op = { .variant = KMALLOC, .size = 64, .gfp = GFP_KERNEL };
	unsigned int i, slot = 0;

	for (i = 0; i < player->rounds; i++) {
		siteA(&op, SITE_A);
		slot = (slot + player->stride) % SLOTS;
		if (op.nr)
			kfree(xchg(&slots[slot], op.ptrs[0]));
		else
			player->failed++;
		if (!(i % 64))
			cond_resched();
	}
}

static void collect_slots(struct bag *bag)
{
	unsigned int i;

	for (i = 0; i < SLOTS; i++)
		if (slots[i])
			put_in(bag, xchg(&slots[i], NULL), 64);
}

static int start_pingpong(struct player *players, unsigned int nr,
			  unsigned int rounds)
{
	unsigned int cpu, n = 0;

	for_each_online_cpu(cpu) {
		if (n == nr)
			break;
		players[n].play = play_pingpong;
		players[n].rounds = rounds;
		players[n].stride = 2 * n + 1;
		if (start_player(&players[n], cpu))
			break;
		n++;
	}
	return n;
}

static int pingpong(unsigned int nr, unsigned int rounds)
{
	struct bag *bag = &bags[KMALLOC][SITE_A];
	struct player *players;
	unsigned int n, i;
	int ret;

	ret = reserve(bag, SLOTS);
	if (ret)
		return ret;
	players = vzalloc(array_size(nr_cpu_ids, sizeof(*players)));
	if (!players)
		return -ENOMEM;
	bag->used = true;
	n = start_pingpong(players, nr, rounds);
	for (i = 0; i < n; i++)
		stop_player(&players[i], bag);
	vfree(players);
	collect_slots(bag);
	return n == nr ? 0 : -ERANGE;
}

static LLIST_HEAD(for_hardirq);
static LLIST_HEAD(for_softirq);

static unsigned int free_list(struct llist_head *head)
{
	struct llist_node *node, *next;
	unsigned int nr = 0;

	llist_for_each_safe(node, next, llist_del_all(head)) {
		kfree(node);
		nr++;
	}
	return nr;
}

static void free_in_softirq(struct tasklet_struct *unused)
{
	softirq_frees += free_list(&for_softirq);
}

static DECLARE_TASKLET(softirq_freer, free_in_softirq);

static enum hrtimer_restart free_in_hardirq(struct hrtimer *timer)
{
	irq_frees += free_list(&for_hardirq);
	tasklet_schedule(&softirq_freer);
	hrtimer_forward_now(timer, ns_to_ktime(IRQ_PERIOD_NS));
	return HRTIMER_RESTART;
}

static void allocate_for_irqs(struct player *player)
{
	struct op op = { .variant = KMALLOC, .size = 64, .gfp = GFP_KERNEL };
	unsigned int i;

	for (i = 0; i < player->rounds; i++) {
		siteB(&op, SITE_B);
		if (!op.nr)
			player->failed++;
		else
			llist_add(op.ptrs[0], i % 2 ? &for_hardirq : &for_softirq);
		if (!(i % 64))
			cond_resched();
	}
	while (!llist_empty(&for_hardirq) || !llist_empty(&for_softirq))
		schedule_timeout_interruptible(1);
}

static void play_irqfree(struct player *player)
{
	struct hrtimer timer;

	hrtimer_init_on_stack(&timer, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL_PINNED_HARD);
	timer.function = free_in_hardirq;
	hrtimer_start(&timer, ns_to_ktime(IRQ_PERIOD_NS),
		      HRTIMER_MODE_REL_PINNED_HARD);
	allocate_for_irqs(player);
	hrtimer_cancel(&timer);
	tasklet_kill(&softirq_freer);
	destroy_hrtimer_on_stack(&timer);
}

static int irqfree(unsigned int rounds)
{
	struct bag *bag = &bags[KMALLOC][SITE_B];
	struct player player = { .play = play_irqfree, .rounds = rounds };
	int ret;

	if (!allowed(HARDIRQ, false, false))
		return -EOPNOTSUPP;
	bag->used = true;
	ret = start_player(&player, cpumask_first(cpu_online_mask));
	if (!ret)
		stop_player(&player, bag);
	return ret;
}

/* ==== Commands ==== */

static int look_up(const char *word, const void *table, size_t size,
		   unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (word && !strcmp(word, *(const char **)(table + i * size)))
			return i;
	return -EINVAL;
}

static int parse_site(struct job *job, const char *word)
{
	unsigned int bits;

	job->paths = 1;
	if (!word)
		return -EINVAL;
	if (!word[1] && *word >= 'A' && *word <= 'C') {
		job->site = SITE_A + *word - 'A';
		return 0;
	}
	job->site = SITE_P;
	if (*word != 'P')
		return -EINVAL;
	if (kstrtouint(word[1] ? word + 1 : "0", 10, &bits) || bits > MAX_PATH)
		return -EINVAL;
	job->paths = 1U << bits;
	return 0;
}

/* The words that both commands begin with: VARIANT SITE. */
static int parse_bag(struct job *job, char **words)
{
	int variant = look_up(words[0], variants, sizeof(variants[0]),
			      NR_VARIANTS);
	int ret = parse_site(job, words[1]);

	if (variant < 0)
		return variant;
	if (ret)
		return ret;
	job->op.variant = variant;
	job->bag = &bags[variant][job->site];
	return 0;
}

static int parse_context(struct job *job, const char *word)
{
	int context = look_up(word, contexts, sizeof(contexts[0]),
			      NR_CONTEXTS);

	if (context < 0)
		return context;
	job->context = context;
	job->op.gfp = may_sleep(context) ? GFP_KERNEL : GFP_ATOMIC;
	return 0;
}

static bool fits(enum variant variant, size_t size)
{
	switch (variant) {
	case KSTRDUP:
		return size > 0 && size < PAGE_SIZE;
	case KMEMDUP:
		return size > 0 && size <= PAGE_SIZE;
	case KREALLOC_GROW:
		return size >= 64;
	default:
		return size >= sizeof(struct rcu_head);
	}
}

/* Without a word of warning if it can't be. */
static int parse_size(struct op *op, const char *word)
{
	const struct variant_info *info = &variants[op->variant];

	op->size = info->size;
	op->gfp |= __GFP_NOWARN;
	if (!word)
		return 0;
	if (info->fixed || kstrtoul(word, 0, &op->size) ||
	    !fits(op->variant, op->size))
		return -EINVAL;
	return 0;
}

/* VARIANT SITE CONTEXT N [SIZE] */
static int do_alloc(char **words)
{
	struct job job = { .step = alloc_step };
	const struct variant_info *info;
	int ret;

	ret = parse_bag(&job, words) ?: parse_context(&job, words[2]) ?:
	      parse_size(&job.op, words[4]);
	if (ret)
		return ret;
	if (!words[3] || kstrtouint(words[3], 0, &job.left))
		return -EINVAL;
	info = &variants[job.op.variant];
	if (!allowed(job.context, info->sleeps, info->bulk))
		return -EOPNOTSUPP;
	ret = reserve(job.bag, job.left);
	if (ret)
		return ret;
	job.bag->used = true;
	run(&job);
	return 0;
}

/* Memory from vmalloc() can be freed in interrupts, but not with them off. */
static bool can_free(const struct job *job)
{
	const struct free_info *how = &free_variants[job->how];
	bool sleeps = how->sleeps;

	if (variants[job->op.variant].kind == KIND_VMALLOC)
		sleeps |= job->context >= PREEMPT_OFF && job->context != HARDIRQ;
	return allowed(job->context, sleeps, how->bulk);
}

/* VARIANT SITE FREEVARIANT CONTEXT [N] */
static int do_free(char **words)
{
	struct job job = { .step = free_step };
	int how = look_up(words[2], free_variants, sizeof(free_variants[0]),
			  NR_FREE_VARIANTS);
	int ret;

	ret = parse_bag(&job, words) ?: parse_context(&job, words[3]);
	if (ret || how < 0)
		return ret ?: how;
	job.how = how;
	job.left = job.bag->nr;
	if (words[4] && kstrtouint(words[4], 0, &job.left))
		return -EINVAL;
	if (job.left > job.bag->nr)
		return -ERANGE;
	if (!(free_variants[how].kinds & BIT(variants[job.op.variant].kind)))
		return -EINVAL;
	if (!can_free(&job))
		return -EOPNOTSUPP;
	run(&job);
	return 0;
}

static int do_pingpong(char **words)
{
	unsigned int cpus, rounds;

	if (!words[1] || kstrtouint(words[0], 0, &cpus) ||
	    kstrtouint(words[1], 0, &rounds))
		return -EINVAL;
	return pingpong(cpus, rounds);
}

static int do_irqfree(char **words)
{
	unsigned int rounds;

	if (!words[0] || kstrtouint(words[0], 0, &rounds))
		return -EINVAL;
	return irqfree(rounds);
}

static int do_nulls(char **words)
{
	size_t zero = 0;
	unsigned int n;

	if (!words[0] || kstrtouint(words[0], 0, &n))
		return -EINVAL;
	OPTIMIZER_HIDE_VAR(zero);
	while (n--) {
		kfree(NULL);
		kfree(kmalloc(zero, GFP_KERNEL));
	}
	return 0;
}

static void construct(void *object)
{
}

static int do_cache(char **words)
{
	struct kmem_cache *cache;
	void *object;
	unsigned int n;

	if (!words[1] || kstrtouint(words[1], 0, &n))
		return -EINVAL;
	cache = kmem_cache_create(words[0], CACHE_SIZE, 0, 0, construct);
	if (!cache)
		return -ENOMEM;
	while (n--) {
		object = kmem_cache_alloc(cache, GFP_KERNEL);
		if (object)
			kmem_cache_free(cache, object);
	}
	kmem_cache_destroy(cache);
	return 0;
}

static int do_barrier(char **words)
{
	rcu_barrier();
	return 0;
}

static const struct command {
	const char *name;
	int (*run)(char **words);
} commands[] = {
	{ "alloc", do_alloc },
	{ "free", do_free },
	{ "pingpong", do_pingpong },
	{ "irqfree", do_irqfree },
	{ "nulls", do_nulls },
	{ "cache", do_cache },
	{ "barrier", do_barrier },
};

static int run_line(char *line)
{
	char *words[8] = { }, *word;
	unsigned int n = 0;
	int command;

	while ((word = strsep(&line, " \t\n")) && n < ARRAY_SIZE(words) - 1)
		if (*word)
			words[n++] = word;
	command = look_up(words[0], commands, sizeof(commands[0]),
			  ARRAY_SIZE(commands));
	if (command < 0)
		return command;
	return commands[command].run(words + 1);
}

static ssize_t cmd_write(struct file *file, const char __user *from,
			 size_t len, loff_t *pos)
{
	char line[128];
	int ret;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	line[len] = 0;
	mutex_lock(&tm_lock);
	ret = run_line(line);
	mutex_unlock(&tm_lock);
	return ret ?: len;
}

static const struct file_operations cmd_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = cmd_write,
};

/* ==== State ==== */

static void show_bag(struct seq_file *m, enum variant variant, enum site site)
{
	const struct bag *bag = &bags[variant][site];
	const char *name = variants[variant].name;

	if (!bag->used)
		return;
	seq_printf(m, "%s.%c.objects: %u\n", name, "ABCP"[site], bag->nr);
	seq_printf(m, "%s.%c.bytes: %llu\n", name, "ABCP"[site], bag->bytes);
	seq_printf(m, "%s.%c.failed: %llu\n", name, "ABCP"[site], bag->failed);
}

static int state_show(struct seq_file *m, void *unused)
{
	u64 objects = 0, bytes = 0, failed = 0;
	unsigned int i, j;

	mutex_lock(&tm_lock);
	for (i = 0; i < NR_VARIANTS; i++) {
		for (j = 0; j < NR_SITES; j++) {
			show_bag(m, i, j);
			objects += bags[i][j].nr;
			bytes += bags[i][j].bytes;
			failed += bags[i][j].failed;
		}
	}
	seq_printf(m, "objects: %llu\n", objects);
	seq_printf(m, "bytes: %llu\n", bytes);
	seq_printf(m, "failed: %llu\n", failed);
	seq_printf(m, "hardirq_frees: %llu\n", irq_frees);
	seq_printf(m, "softirq_frees: %llu\n", softirq_frees);
	mutex_unlock(&tm_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

/* ==== Init and exit ==== */

static noinline __init void init_site(unsigned int n)
{
	struct bag *bag = &bags[KMALLOC][SITE_A];

	while (n--) {
		void *ptr = kmalloc(64, GFP_KERNEL);

		if (ptr)
			put_in(bag, ptr, 64);
	}
}

static noinline void exit_site(unsigned int n)
{
	void *lost;

	while (n--) {
		lost = kmalloc(64, GFP_KERNEL);
		OPTIMIZER_HIDE_VAR(lost);
	}
}

/*
 * What kfree_rcu() was given is freed some five seconds later, which
 * rcu_barrier() doesn't know of; some of it may be of the cache.
 */
static void wait_for_kfree_rcu(void)
{
	while (last_kfree_rcu && time_before(jiffies, last_kfree_rcu + 8 * HZ))
		msleep(100);
	rcu_barrier();
}

static int __init tm_init(void)
{
	text = vmalloc(PAGE_SIZE);
	if (!text)
		return -ENOMEM;
	memset(text, 'x', PAGE_SIZE - 1);
	text[PAGE_SIZE - 1] = 0;
	/* A cache that user space may be copied from is never merged. */
	tm_cache = kmem_cache_create_usercopy("tm_cache", CACHE_SIZE, 0, 0, 0,
					      8, NULL);
	if (!tm_cache || reserve(&bags[KMALLOC][SITE_A], init_leak)) {
		kmem_cache_destroy(tm_cache);
		vfree(text);
		return -ENOMEM;
	}
	bags[KMALLOC][SITE_A].used = init_leak;
	init_site(init_leak);
	tm_dir = debugfs_create_dir("tm", NULL);
	debugfs_create_file("cmd", 0200, tm_dir, NULL, &cmd_fops);
	debugfs_create_file("state", 0400, tm_dir, NULL, &state_fops);
	return 0;
}

static const enum free_variant free_at_exit[] = {
	[KIND_KMALLOC]	= KFREE,
	[KIND_CACHE]	= CACHE_FREE,
	[KIND_VMALLOC]	= VFREE,
	[KIND_PERCPU]	= FREE_PERCPU,
	[KIND_PAGES]	= FREE_PAGES,
	[KIND_EXACT]	= FREE_EXACT,
};

/* A cache with objects can't be destroyed, so those are never leaked. */
static void empty_bag(struct bag *bag, enum kind kind)
{
	while (bag->nr && (!leak || kind == KIND_CACHE))
		free_one(take_out(bag), free_at_exit[kind], kind);
	vfree(bag->objects);
}

static void __exit tm_exit(void)
{
	unsigned int i, j;

	debugfs_remove(tm_dir);
	wait_for_kfree_rcu();
	for (i = 0; i < NR_VARIANTS; i++)
		for (j = 0; j < NR_SITES; j++)
			empty_bag(&bags[i][j], variants[i].kind);
	exit_site(exit_leak);
	kmem_cache_destroy(tm_cache);
	vfree(text);
}

module_init(tm_init);
module_exit(tm_exit);
MODULE_DESCRIPTION("Allocates and frees on command");
MODULE_LICENSE("GPL");
