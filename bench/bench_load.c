// SPDX-License-Identifier: GPL-2.0
/*
 * bench_load.c - the loads of the bench, and what other tools do as probes
 *
 * Knows nothing of btlog, so that it can measure before btlog is loaded.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/stackdepot.h>
#include <linux/stacktrace.h>
#include <linux/tick.h>
#include <linux/timex.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <trace/events/kmem.h>

#include "bench.h"

enum {
	OBJECT_SIZE	= 64,
	PROBE_DEPTH	= 16,
	MAX_THREADS	= 8,
	WARM_UP		= 300,
};

/* ==== Stacks of a known shape ==== */

/**
 * struct walk - a way down
 * @levels: still to go
 * @path: digits of them
 * @leaf: called at the end
 * @arg: its argument
 */
struct walk {
	unsigned int levels;
	unsigned long path;
	void (*leaf)(void *arg);
	void *arg;
};

static void step(struct walk *w);

/* After the call something is left to do, so that it isn't a jump. */
#define DEFINE_LEVEL(n)					\
	static noinline void level_##n(struct walk *w)	\
	{						\
		step(w);				\
		barrier();				\
	}

DEFINE_LEVEL(0)
DEFINE_LEVEL(1)
DEFINE_LEVEL(2)
DEFINE_LEVEL(3)

static __always_inline void step(struct walk *w)
{
	if (!w->levels) {
		w->leaf(w->arg);
		return;
	}
	w->levels--;
	switch (w->path >> (2 * w->levels) & (BENCH_RADIX - 1)) {
	case 0:
		return level_0(w);
	case 1:
		return level_1(w);
	case 2:
		return level_2(w);
	default:
		return level_3(w);
	}
}

noinline void bench_descend(unsigned int levels, unsigned long path,
			    void (*leaf)(void *arg), void *arg)
{
	struct walk w = {
		.levels = levels,
		.path = path,
		.leaf = leaf,
		.arg = arg,
	};

	step(&w);
	barrier();
}
EXPORT_SYMBOL_GPL(bench_descend);

static noinline void count_frames(void *arg)
{
	unsigned long ips[64];

	*(unsigned int *)arg = stack_trace_save(ips, ARRAY_SIZE(ips), 0);
	barrier();
}

noinline unsigned int bench_levels(unsigned int depth)
{
	unsigned int base;

	/* This function is one frame more than its caller has. */
	bench_descend(0, 0, count_frames, &base);
	return depth > base - 1 ? depth - base + 1 : 0;
}
EXPORT_SYMBOL_GPL(bench_levels);

/* ==== Costs ==== */

static noinline void nothing(unsigned int i)
{
	barrier();
}

static u64 ticks_of(void (*op)(unsigned int i), unsigned int n)
{
	unsigned long flags;
	unsigned int i;
	u64 start;

	local_irq_save(flags);
	start = get_cycles();
	for (i = 0; i < n; i++)
		op(i);
	start = get_cycles() - start;
	local_irq_restore(flags);
	return start;
}

long bench_cost(void (*op)(unsigned int i), unsigned int n)
{
	u64 with = ticks_of(op, n), without = ticks_of(nothing, n);

	return div_s64((s64)(with - without) + n / 2, n);
}
EXPORT_SYMBOL_GPL(bench_cost);

/* ==== Pairs of kmalloc() and kfree() ==== */

static noinline void pair(unsigned int i)
{
	void *object = kmalloc(OBJECT_SIZE, GFP_ATOMIC);

	/* The compiler knows what kmalloc() and kfree() do. */
	OPTIMIZER_HIDE_VAR(object);
	kfree(object);
	barrier();
}

/* @n: how often; @cost: the result */
struct pairs {
	unsigned int n;
	long cost;
};

static void measure_pairs(void *arg)
{
	struct pairs *pairs = arg;
	unsigned int i;

	for (i = 0; i < WARM_UP; i++)
		pair(i);
	pairs->cost = bench_cost(pair, pairs->n);
}

/* pair DEPTH N: the stack that kmalloc()'s caller ends has DEPTH frames. */
static int run_pair(const long *args)
{
	struct pairs pairs = { .n = args[1] };

	/* pair() and bench_cost() with its helper are frames as well. */
	bench_descend(bench_levels(args[0] - 3), 0, measure_pairs, &pairs);
	bench_print("pair: %ld", pairs.cost);
	return 0;
}

/* ==== Many threads ==== */

/**
 * struct loader - a thread that makes pairs
 * @task: the thread
 * @levels: of its stack
 * @path: likewise
 * @done: pairs made
 * @ns: time taken for them
 */
struct loader {
	struct task_struct *task;
	unsigned int levels;
	unsigned long path;
	u64 done;
	u64 ns;
};

static struct loader loaders[MAX_THREADS];
static atomic_t loaders_ready;
static bool loaders_go, loaders_stop;

static void load(void *arg)
{
	struct loader *l = arg;
	unsigned int i;
	u64 start;

	for (i = 0; i < WARM_UP; i++)
		pair(i);
	atomic_inc(&loaders_ready);
	while (!READ_ONCE(loaders_go))
		cond_resched();
	start = ktime_get_ns();
	for (; !READ_ONCE(loaders_stop); l->done += 32) {
		for (i = 0; i < 32; i++)
			pair(i);
		cond_resched();
	}
	l->ns = ktime_get_ns() - start;
}

static int loader_fn(void *arg)
{
	struct loader *l = arg;

	bench_descend(l->levels, l->path, load, l);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static int start_loader(unsigned int cpu, unsigned int levels,
			unsigned long path)
{
	struct loader *l = &loaders[cpu];

	*l = (struct loader){ .levels = levels, .path = path };
	l->task = kthread_create(loader_fn, l, "bench/%u", cpu);
	if (IS_ERR(l->task))
		return PTR_ERR(l->task);
	kthread_bind(l->task, cpu);
	wake_up_process(l->task);
	return 0;
}

/* threads NR DEPTH MS DISTINCT: with one stack for all, or one for each. */
static int run_threads(const long *args)
{
	unsigned int nr = args[0], levels = bench_levels(args[1] - 1), i;
	u64 per_second = 0;
	int err = 0;

	if (nr > min_t(unsigned int, MAX_THREADS, num_online_cpus()))
		return -ERANGE;
	atomic_set(&loaders_ready, 0);
	loaders_go = false;
	loaders_stop = false;
	for (i = 0; i < nr && !err; i++)
		err = start_loader(i, levels, args[3] ? i : 0);
	if (err)
		nr = i - 1;
	while (!err && atomic_read(&loaders_ready) < nr)
		schedule_timeout_uninterruptible(1);
	WRITE_ONCE(loaders_go, true);
	schedule_timeout_uninterruptible(msecs_to_jiffies(err ? 0 : args[2]));
	WRITE_ONCE(loaders_stop, true);
	for (i = 0; i < nr; i++) {
		kthread_stop(loaders[i].task);
		per_second += div64_u64(loaders[i].done * NSEC_PER_SEC,
					max(loaders[i].ns, 1ULL));
	}
	bench_print("pairs_per_second: %llu", per_second);
	return err;
}

/* ==== Objects that stay, from many stacks ==== */

static void **kept;
static unsigned int nr_kept;

static noinline void keep_one(void *arg)
{
	kept[nr_kept] = kmalloc(OBJECT_SIZE, GFP_KERNEL);
	if (kept[nr_kept])
		nr_kept++;
}

static void free_kept(void)
{
	while (nr_kept)
		kfree(kept[--nr_kept]);
	vfree(kept);
	kept = NULL;
}

/* stacks N DEPTH: N objects, a stack of DEPTH frames each; 0 frees them. */
static int run_stacks(const long *args)
{
	unsigned int levels = bench_levels(args[1]), i;

	free_kept();
	if (!args[0])
		return 0;
	kept = vzalloc(array_size(args[0], sizeof(*kept)));
	if (!kept)
		return -ENOMEM;
	for (i = 0; i < args[0]; i++) {
		bench_descend(levels, i, keep_one, NULL);
		cond_resched();
	}
	bench_print("objects: %u", nr_kept);
	return 0;
}

/* Objects of many sizes; each begins with a pointer to the next. */
static void *held;

static void free_held(void)
{
	while (held) {
		void *next = *(void **)held;

		kfree(held);
		held = next;
	}
}

/**
 * struct holder - makes objects that are held
 * @size: of the next one
 * @total: of all so far, in bytes
 */
struct holder {
	size_t size;
	u64 total;
};

static noinline void hold_one(void *arg)
{
	struct holder *holder = arg;
	void **object = kmalloc(holder->size, GFP_KERNEL);

	if (!object)
		return;
	*object = held;
	held = object;
	holder->total += holder->size;
}

/*
 * hold MEGABYTES: objects of 16 bytes to 8 KiB, each power of two equally
 * likely, from 16 stacks; 0 frees them.
 */
static int run_hold(const long *args)
{
	u64 want = (u64)args[0] << 20;
	struct holder holder = { };
	u32 random = 1, i;

	free_held();
	for (i = 0; holder.total < want; i++) {
		u64 before = holder.total;

		random = random * 1664525 + 1013904223;
		holder.size = 16 << (random >> 16) % 9;
		holder.size += (random >> 8) % holder.size;
		bench_descend(2, i % 16, hold_one, &holder);
		if (holder.total == before)
			return -ENOMEM;
		cond_resched();
	}
	bench_print("held_bytes: %llu", holder.total);
	return 0;
}

/* ==== Probes: what others do at the same events ==== */

enum probe_mode {
	PROBE_OFF,
	PROBE_EMPTY,
	PROBE_STACK,		/* take the stack of allocations */
	PROBE_DEPOT,		/* and store it in the depot */
	PROBE_DEPOT_BOTH,	/* of frees as well */
	NR_PROBE_MODES
};

struct probe_cpu {
	unsigned int busy;
	long countdown;
	unsigned long ips[2][PROBE_DEPTH];
};

/*
 * A handle's low bits are the number of a pool of four pages, whatever the
 * kernel; they count up.
 */
enum { POOL_MASK = 0xffff, POOL_SIZE = 4 << PAGE_SHIFT };

static enum probe_mode probe_mode;
static u32 last_pool;
static long probe_sample = 1;
static DEFINE_PER_CPU(struct probe_cpu, probe_cpus);

static bool sampled(void)
{
	if (probe_sample == 1)
		return true;
	if (this_cpu_dec_return(probe_cpus.countdown) > 0)
		return false;
	this_cpu_write(probe_cpus.countdown, probe_sample);
	return true;
}

static void save_stack(unsigned long *ips, unsigned int nr)
{
	depot_stack_handle_t handle;

	handle = stack_depot_save(ips, nr, GFP_NOWAIT | __GFP_NOWARN);
	last_pool = max_t(u32, last_pool, handle & POOL_MASK);
}

/* Storing may allocate pages; an event of the depot's own is left out. */
static noinline void take_stack(void)
{
	struct probe_cpu *cpu = this_cpu_ptr(&probe_cpus);
	unsigned int nr;

	if (cpu->busy < ARRAY_SIZE(cpu->ips)) {
		unsigned long *ips = cpu->ips[cpu->busy++];

		nr = stack_trace_save(ips, PROBE_DEPTH, 2);
		if (probe_mode >= PROBE_DEPOT)
			save_stack(ips, nr);
		cpu->busy--;
	}
}

static __always_inline void on_alloc(const void *object)
{
	if (object && probe_mode >= PROBE_STACK && sampled())
		take_stack();
}

static __always_inline void on_free(const void *object)
{
	if (object && probe_mode == PROBE_DEPOT_BOTH && sampled())
		take_stack();
}

static void on_kmalloc(void *data, unsigned long call_site, const void *object,
		       size_t bytes_req, size_t bytes_alloc, gfp_t flags,
		       int node)
{
	on_alloc(object);
}

static void on_kmem_cache_alloc(void *data, unsigned long call_site,
				const void *object, struct kmem_cache *cache,
				gfp_t flags, int node)
{
	on_alloc(object);
}

static void on_kfree(void *data, unsigned long call_site, const void *object)
{
	on_free(object);
}

static void on_kmem_cache_free(void *data, unsigned long call_site,
			       const void *object,
			       const struct kmem_cache *cache)
{
	on_free(object);
}

static void unhook(void)
{
	if (probe_mode == PROBE_OFF)
		return;
	unregister_trace_kmalloc(on_kmalloc, NULL);
	unregister_trace_kmem_cache_alloc(on_kmem_cache_alloc, NULL);
	unregister_trace_kfree(on_kfree, NULL);
	unregister_trace_kmem_cache_free(on_kmem_cache_free, NULL);
	tracepoint_synchronize_unregister();
	probe_mode = PROBE_OFF;
}

static int hook(void)
{
	return register_trace_kmalloc(on_kmalloc, NULL) ?:
	       register_trace_kmem_cache_alloc(on_kmem_cache_alloc, NULL) ?:
	       register_trace_kfree(on_kfree, NULL) ?:
	       register_trace_kmem_cache_free(on_kmem_cache_free, NULL);
}

/* probe MODE SAMPLE */
static int run_probe(const long *args)
{
	int cpu;

	if (args[0] < 0 || args[0] >= NR_PROBE_MODES || args[1] < 1)
		return -ERANGE;
	unhook();
	probe_sample = args[1];
	for_each_possible_cpu(cpu)
		per_cpu(probe_cpus, cpu).countdown = 1;
	probe_mode = args[0];
	return probe_mode == PROBE_OFF ? 0 : hook();
}

/* depot: memory that the depot has taken for stacks, up to the last new one */
static int run_depot(const long *args)
{
	bench_print("bytes: %lu", (unsigned long)last_pool * POOL_SIZE);
	return 0;
}

/* ==== The clock ==== */

/* clock: busy_ns doesn't run while the CPU is idle. */
static int run_clock(const long *args)
{
	u64 wall, idle = get_cpu_idle_time_us(0, &wall);
	u64 now = ktime_get_ns();

	bench_print("now_ns: %llu", now);
	bench_print("busy_ns: %llu", now - idle * NSEC_PER_USEC);
	return 0;
}

static noinline void thousand(unsigned int i)
{
	unsigned long left = 500;

	asm volatile("1: dec %0; jnz 1b" : "+r" (left));
}

/* calibrate: ticks of 1000 instructions */
static int run_calibrate(const long *args)
{
	bench_print("ticks_of_1000: %ld", bench_cost(thousand, 1000));
	return 0;
}

/* ==== The file ==== */

static const struct bench_command own_commands[] = {
	{ "calibrate", 0, run_calibrate },
	{ "clock", 0, run_clock },
	{ "depot", 0, run_depot },
	{ "hold", 1, run_hold },
	{ "pair", 2, run_pair },
	{ "probe", 2, run_probe },
	{ "stacks", 2, run_stacks },
	{ "threads", 4, run_threads },
	{ }
};

static DEFINE_MUTEX(lock);
static const struct bench_command *added_commands;
static char result[4096];
static size_t result_len;
static struct dentry *file;

void bench_add_commands(const struct bench_command *commands)
{
	mutex_lock(&lock);
	added_commands = commands;
	mutex_unlock(&lock);
}
EXPORT_SYMBOL_GPL(bench_add_commands);

void bench_remove_commands(const struct bench_command *commands)
{
	bench_add_commands(NULL);
}
EXPORT_SYMBOL_GPL(bench_remove_commands);

void bench_print(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	result_len += vscnprintf(result + result_len,
				 sizeof(result) - result_len, format, args);
	result_len += scnprintf(result + result_len,
				sizeof(result) - result_len, "\n");
	va_end(args);
}
EXPORT_SYMBOL_GPL(bench_print);

/**
 * struct job - a command that is being carried out
 * @command: which
 * @args: its arguments
 * @err: its result
 * @done: it is over
 */
struct job {
	const struct bench_command *command;
	long args[BENCH_MAX_ARGS];
	int err;
	struct completion done;
};

static int job_fn(void *arg)
{
	struct job *job = arg;

	job->err = job->command->run(job->args);
	complete(&job->done);
	return 0;
}

/* A thread has few frames of its own, so that any depth can be had. */
static int run_job(struct job *job)
{
	struct task_struct *task;

	init_completion(&job->done);
	task = kthread_create(job_fn, job, "bench");
	if (IS_ERR(task))
		return PTR_ERR(task);
	kthread_bind(task, 0);
	wake_up_process(task);
	wait_for_completion(&job->done);
	return job->err;
}

static const struct bench_command *find(const struct bench_command *list,
					const char *name)
{
	for (; list && list->name; list++)
		if (!strcmp(list->name, name))
			return list;
	return NULL;
}

static int run_line(const char *line)
{
	struct job job = { };
	char name[16];
	int n;

	n = sscanf(line, "%15s %ld %ld %ld %ld", name, &job.args[0],
		   &job.args[1], &job.args[2], &job.args[3]);
	if (n < 1)
		return -EINVAL;
	job.command = find(own_commands, name) ?: find(added_commands, name);
	if (!job.command || n - 1 != job.command->nr_args)
		return -EINVAL;
	result_len = 0;
	result[0] = '\0';
	return run_job(&job);
}

static ssize_t file_write(struct file *f, const char __user *from, size_t len,
			  loff_t *pos)
{
	char line[80];
	int err;

	if (len >= sizeof(line))
		return -E2BIG;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	line[len] = '\0';
	mutex_lock(&lock);
	err = run_line(line);
	mutex_unlock(&lock);
	return err ?: len;
}

static ssize_t file_read(struct file *f, char __user *to, size_t len,
			 loff_t *pos)
{
	return simple_read_from_buffer(to, len, pos, result, result_len);
}

static const struct file_operations file_ops = {
	.owner = THIS_MODULE,
	.read = file_read,
	.write = file_write,
};

static int __init bench_load_init(void)
{
	int err = stack_depot_init();

	if (err)
		return err;
	file = debugfs_create_file("btlog_bench", 0600, NULL, NULL, &file_ops);
	return PTR_ERR_OR_ZERO(file);
}

static void __exit bench_load_exit(void)
{
	debugfs_remove(file);
	unhook();
	free_kept();
	free_held();
}

module_init(bench_load_init);
module_exit(bench_load_exit);
MODULE_DESCRIPTION("Loads for btlog's bench");
MODULE_LICENSE("GPL");
