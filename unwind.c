// SPDX-License-Identifier: GPL-2.0
/*
 * unwind.c - capture of the current stack as frames
 *
 * stack_trace_save() is the reference. Its price is over 90 % of that of an
 * event, so by default the frame cache (unwind_cache.c) takes its place, and
 * asks the reference whenever it is not certain. With capture_verify every
 * result of the cache is compared with the reference; the first difference is
 * reported and ends the use of the cache.
 *
 * No locks: the counters are per CPU, and a report is claimed by cmpxchg().
 */
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/seq_file.h>
#include <linux/stacktrace.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "unwind.h"

static const char * const mode_names[] = {
	[UNWIND_REFERENCE]	= "stack_trace_save",
	[UNWIND_CACHED]		= "cached",
};

enum unwind_mode unwind_mode = UNWIND_CACHED;
EXPORT_SYMBOL_FOR_TESTS(unwind_mode);

static int set_mode(const char *value, const struct kernel_param *kp)
{
	int i = sysfs_match_string(mode_names, value);

	if (i < 0)
		return i;
	unwind_mode = i;
	return 0;
}

static int get_mode(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%s\n", mode_names[READ_ONCE(unwind_mode)]);
}

static const struct kernel_param_ops mode_ops = {
	.set = set_mode,
	.get = get_mode,
};
module_param_cb(capture, &mode_ops, NULL, 0444);
MODULE_PARM_DESC(capture, "how stacks are taken: stack_trace_save or cached (default)");

bool unwind_verify;
module_param_named(capture_verify, unwind_verify, bool, 0644);
MODULE_PARM_DESC(capture_verify, "compare every stack from the cache with stack_trace_save");

DEFINE_PER_CPU(u64 [UWC_NR], unwind_counts);
atomic_t unwind_generation = ATOMIC_INIT(STEP_GENERATION);

static const char * const counter_names[] = {
	[UWC_REFERENCE]		= "stack_trace_save",
	[UWC_CACHED]		= "cached",
	[UWC_REMEMBERED]	= "remembered",
	[UWC_NMI]		= "fallback_nmi",
	[UWC_OFF_STACK]		= "fallback_off_stack",
	[UWC_OTHER_TEXT]	= "fallback_other_text",
	[UWC_BOUNDS]		= "fallback_bounds",
	[UWC_INTERRUPTED]	= "fallback_interrupted",
	[UWC_MISSES]		= "frame_misses",
	[UWC_FILLS]		= "frame_fills",
	[UWC_VERIFIED]		= "verified",
	[UWC_MISMATCHES]	= "mismatches",
};

static_assert(ARRAY_SIZE(counter_names) == UWC_NR);

/* ==== Where stacks start and end ==== */

/*
 * What may stand between btlog and the function it observes. The call_site
 * finds the start of most stacks; this is for those where it is not known.
 */
static const char * const lead_names[] = {
	"__traceiter_kmalloc", "__traceiter_kmem_cache_alloc",
	"__traceiter_kfree", "__traceiter_kmem_cache_free",
	"ftrace_call", "ftrace_regs_call", "arch_ftrace_ops_list_func",
	"ftrace_ops_assist_func", "kprobe_ftrace_handler",
	"fprobe_handler", "fprobe_exit_handler", "kretprobe_rethook_handler",
	"rethook_trampoline_handler", "arch_rethook_trampoline_callback",
	"arch_rethook_trampoline",
};

/* Entries of interrupts that the range of interrupt entries leaves out. */
static const char * const cut_names[] = {
	"handle_softirqs", "handle_softirqs.constprop.0",
	"handle_softirqs.isra.0", "asm_exc_nmi",
};

/* Entries in that range which no interrupt uses: who faults belongs to it. */
static const char * const exception_names[] = {
	"asm_exc_page_fault", "asm_exc_int3",
};

struct symbol_set {
	unsigned int nr;
	struct bt_range symbols[ARRAY_SIZE(lead_names)];
};

static_assert(ARRAY_SIZE(cut_names) <= ARRAY_SIZE(lead_names));
static_assert(ARRAY_SIZE(exception_names) <= ARRAY_SIZE(lead_names));

static struct symbol_set leads, cuts, exceptions;

static void find_symbols(struct symbol_set *set, const char * const *names,
			 unsigned int n)
{
	unsigned int i;

	set->nr = 0;
	for (i = 0; i < n; i++)
		if (image_find_symbol(names[i], &set->symbols[set->nr]))
			set->nr++;
}

/* A return address may lie right behind the last byte of its function. */
static bool set_has(const struct symbol_set *set, unsigned long ip)
{
	unsigned int i;

	for (i = 0; i < set->nr; i++)
		if (ip - 1 - set->symbols[i].start < set->symbols[i].size)
			return true;
	return false;
}

static bool is_lead(unsigned long ip)
{
	u32 frame = image_known_frame(ip);

	/* Trampolines are in no image; nor is BPF, but no stack starts with it. */
	return !frame || image_is_own(frame) || set_has(&leads, ip);
}

static bool is_cut(unsigned long ip)
{
	unsigned long two[] = { ip, 0 };

	if (filter_irq_stacks(two, 2) == 1)
		return !set_has(&exceptions, ip);
	return set_has(&cuts, ip);
}

unsigned int unwind_role(unsigned long ip)
{
	return (is_lead(ip) ? UNWIND_LEAD : 0) | (is_cut(ip) ? UNWIND_CUT : 0);
}
EXPORT_SYMBOL_FOR_TESTS(unwind_role);

/*
 * Orders the change of the text before the change of the generation: who sees
 * the new generation decodes with the new text.
 */
void unwind_invalidate(void)
{
	smp_mb__before_atomic(); /* pairs with the acquire of who decodes */
	atomic_add(STEP_GENERATION, &unwind_generation);
	unwind_forget();
}

/* ==== The reference ==== */

/* Frames of this file's own that the reference sees. */
enum { INNER_MAX = 5 };

static_assert(BTREF_MAX_FRAMES + 1 + UNWIND_LEAD_MAX + INNER_MAX <=
	      ARRAY_SIZE(((struct bt_context *)0)->ips));

/* Index of @ip in the first @max entries from @from on, or -1. */
static int find_ip(const unsigned long *ips, unsigned int from,
		   unsigned int nr, unsigned int max, unsigned long ip)
{
	unsigned int i;

	for (i = from; i < nr && i < from + max; i++)
		if (ips[i] == ip)
			return i;
	return -1;
}

static unsigned int find_start(const unsigned long *ips, unsigned int nr,
			       unsigned long caller, unsigned long call_site)
{
	int from = max(find_ip(ips, 0, nr, INNER_MAX + 1, caller), 0);
	int start = -1;

	if (call_site)
		start = find_ip(ips, from, nr, UNWIND_LEAD_MAX, call_site);
	if (start >= 0)
		return start;
	while (from < nr && is_lead(ips[from]))
		from++;
	return from;
}

noinline void unwind_reference(struct bt_trace *trace, unsigned long *ips,
			       unsigned long caller, unsigned long call_site,
			       unsigned int depth, unsigned int flags)
{
	unsigned int size = depth + 1 + UNWIND_LEAD_MAX + INNER_MAX;
	unsigned int nr = stack_trace_save(ips, size, 0);
	unsigned int i = find_start(ips, nr, caller, call_site);

	trace->nr = 0;
	trace->truncated = false;
	for (; i < nr; i++) {
		if (trace->nr == depth) {
			trace->truncated = true;
			break;
		}
		trace->frames[trace->nr++] = image_frame(ips[i]);
		if (flags & BTREF_CUT_IRQ && is_cut(ips[i]))
			break;
	}
}

/* ==== Verification ==== */

/*
 * @state: only the first mismatch is kept and reported
 * @notify: out of the context of the capture, @work: into that of a process
 */
static struct {
	atomic_t state;
	struct bt_trace cached;
	struct bt_trace reference;
	struct irq_work notify;
	struct work_struct work;
} mismatch;

static bool same_trace(const struct bt_trace *a, const struct bt_trace *b)
{
	return a->nr == b->nr && a->truncated == b->truncated &&
	       !memcmp(a->frames, b->frames, a->nr * sizeof(a->frames[0]));
}

static void print_trace(const char *name, const struct bt_trace *trace)
{
	char buf[IMAGE_SYMBOL_LEN];
	unsigned int i;

	pr_err("%s: %u frames%s\n", name, trace->nr,
	       trace->truncated ? ", truncated" : "");
	for (i = 0; i < trace->nr; i++) {
		image_symbol(buf, trace->frames[i]);
		pr_err(" 0x%08x %s\n", trace->frames[i], buf);
	}
}

static void report_mismatch(struct work_struct *work)
{
	pr_err("the frame cache took a wrong stack and is off from now on\n");
	print_trace("cached", &mismatch.cached);
	print_trace("stack_trace_save", &mismatch.reference);
}

static void notify_mismatch(struct irq_work *work)
{
	schedule_work(&mismatch.work);
}

noinline void unwind_compare(struct bt_context *ctx, unsigned long caller,
			     unsigned long call_site, unsigned int depth,
			     unsigned int flags)
{
	struct bt_trace reference;

	unwind_reference(&reference, ctx->ips, caller, call_site, depth, flags);
	this_cpu_inc(unwind_counts[UWC_VERIFIED]);
	if (likely(same_trace(&ctx->trace, &reference)))
		return;
	this_cpu_inc(unwind_counts[UWC_MISMATCHES]);
	WRITE_ONCE(unwind_mode, UNWIND_REFERENCE);
	if (!atomic_cmpxchg(&mismatch.state, 0, 1)) {
		mismatch.cached = ctx->trace;
		mismatch.reference = reference;
		irq_work_queue(&mismatch.notify);
	}
	ctx->trace = reference;
}

/* ==== Capture without a cache ==== */

#ifndef CONFIG_UNWINDER_ORC

noinline notrace bool unwind_capture(struct bt_context *ctx,
				     unsigned long call_site,
				     unsigned int depth, unsigned int flags)
{
	this_cpu_inc(unwind_counts[UWC_REFERENCE]);
	unwind_reference(&ctx->trace, ctx->ips, _RET_IP_, call_site, depth,
			 flags);
	return ctx->trace.nr;
}

noinline notrace bool unwind_capture_from(struct bt_context *ctx,
					  const struct bt_frame *from,
					  unsigned int depth,
					  unsigned int flags)
{
	return unwind_capture(ctx, from->ip, depth, flags);
}

#endif

/* ==== Statistics, start and end ==== */

u64 unwind_count(enum unwind_counter i)
{
	u64 total = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		total += READ_ONCE(per_cpu(unwind_counts, cpu)[i]);
	return total;
}
EXPORT_SYMBOL_FOR_TESTS(unwind_count);

static void show_counter(struct seq_file *m, const char *prefix,
			 enum unwind_counter i)
{
	seq_printf(m, "%s%s: %llu\n", prefix, counter_names[i],
		   unwind_count(i));
}

void unwind_show(struct seq_file *m)
{
	u64 captures = 0;
	unsigned int i;

	for (i = 0; i < UWC_MISSES; i++)
		captures += unwind_count(i);
	seq_printf(m, "capture: %s\n", mode_names[READ_ONCE(unwind_mode)]);
	seq_printf(m, "captures: %llu\n", captures);
	for (i = 0; i < UWC_MISSES; i++)
		show_counter(m, "captures_", i);
	for (i = UWC_MISSES; i < UWC_NR; i++)
		show_counter(m, "", i);
	seq_printf(m, "frame_cache_bytes: %zu\n", unwind_cache_bytes());
	seq_printf(m, "stack_memo_bytes: %zu\n", unwind_memo_bytes());
}

int unwind_setup(void)
{
	if (!IS_ENABLED(CONFIG_UNWINDER_ORC))
		unwind_mode = UNWIND_REFERENCE;
	init_irq_work(&mismatch.notify, notify_mismatch);
	INIT_WORK(&mismatch.work, report_mismatch);
	find_symbols(&leads, lead_names, ARRAY_SIZE(lead_names));
	find_symbols(&cuts, cut_names, ARRAY_SIZE(cut_names));
	find_symbols(&exceptions, exception_names, ARRAY_SIZE(exception_names));
	return unwind_cache_init();
}

int unwind_prepare(void)
{
	return unwind_cache_prepare() ?: unwind_memo_prepare();
}

void unwind_cleanup(void)
{
	irq_work_sync(&mismatch.notify);
	cancel_work_sync(&mismatch.work);
	unwind_memo_exit();
	unwind_cache_exit();
}
