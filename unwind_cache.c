// SPDX-License-Identifier: GPL-2.0
/*
 * unwind_cache.c - the current stack from unwinding steps decoded once
 *
 * Each CPU has a table of steps (struct unwind_step) by return address, so a
 * walk costs some twenty instructions a frame instead of over five hundred,
 * and gives frame numbers without looking for images. Whatever the walk is not
 * certain of it leaves to the reference.
 *
 * No locks. A table belongs to its CPU; captures nest on it, but only the
 * outermost one writes: it invalidates an entry's tag, writes the rest, and
 * sets the tag. So an entry that a nested one sees is whole, and an entry that
 * the outermost one reads stays as it is. In NMI the table isn't used.
 *
 * Steps decoded before text came or went are told by their generation. A walk
 * that is under way meanwhile may use old ones: the text of what is on a stack
 * can't have changed, and it is only freed once preemption was on everywhere.
 */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/sched/task_stack.h>
#include <linux/vmalloc.h>
#include <asm/unwind.h>

#include "unwind.h"

static unsigned int cache_kb = 64;
module_param_named(capture_cache_kb, cache_kb, uint, 0444);
MODULE_PARM_DESC(capture_cache_kb, "size of each CPU's frame cache (default 64, a power of two)");

enum { CACHE_KB_MIN = 4, CACHE_KB_MAX = 4096 };

/**
 * struct unwind_cpu - the cache of one CPU
 * @steps: the table; NULL before unwind_cache_init() and after the exit
 * @nest: captures under way, one inside the other
 * @irq_stack: learnt when first met; its size is 0 until then
 */
struct unwind_cpu {
	struct unwind_step *steps;
	unsigned int nest;
	struct bt_range irq_stack;
};

static DEFINE_PER_CPU(struct unwind_cpu, unwind_cpu);

/* Bits of the hash that are no index. */
static unsigned int hash_shift __read_mostly;

/**
 * struct walk - where a walk has got to
 * @cpu: this CPU's cache
 * @req: what is wanted
 * @generation: of steps that are valid
 * @ip: the frame's return address; not given out yet
 * @sp: behind the word where @ip was found
 * @bp: where the frame's BP is saved
 * @lo: beginning of the stack that @sp is on
 * @hi: its end
 * @out: where the next frame goes
 * @end: end of the room for frames
 * @cut_irq: end at the entry of an interrupt
 * @truncated: there are more frames
 * @how: result, once the walk has ended
 * @saved_bp: a BP that is not on the stack
 * @step: last one decoded
 */
struct walk {
	struct unwind_cpu *cpu;
	const struct unwind_request *req;
	u32 generation;
	unsigned long ip;
	const unsigned long *sp;
	const unsigned long *bp;
	const unsigned long *lo;
	const unsigned long *hi;
	u32 *out;
	u32 *end;
	bool cut_irq;
	bool truncated;
	enum unwind_counter how;
	unsigned long saved_bp;
	struct unwind_step step;
};

static bool end_walk(struct walk *w, enum unwind_counter how)
{
	w->how = how;
	return false;
}

/* ==== The table ==== */

static __always_inline struct unwind_step *slot(struct unwind_step *steps,
						unsigned int shift,
						unsigned long ip)
{
	return &steps[(u32)ip * GOLDEN_RATIO_32 >> shift];
}

static void fill(struct unwind_step *entry, const struct unwind_step *step)
{
	WRITE_ONCE(entry->tag, 0);
	barrier();
	entry->ip = step->ip;
	entry->frame = step->frame;
	entry->ra = step->ra;
	entry->bp = step->bp;
	barrier();
	WRITE_ONCE(entry->tag, step->tag);
}

static noinline const struct unwind_step *miss(struct walk *w,
					       struct unwind_step *entry)
{
	this_cpu_inc(unwind_counts[UWC_MISSES]);
	unwind_decode(&w->step, w->ip, w->generation);
	if (w->cpu->nest == 1) {
		this_cpu_inc(unwind_counts[UWC_FILLS]);
		fill(entry, &w->step);
	}
	return &w->step;
}

/* The step of the walk's frame; NULL, and the end, if only the reference knows. */
static const struct unwind_step *find_step(struct walk *w)
{
	struct unwind_step *entry = slot(w->cpu->steps, hash_shift, w->ip);
	const struct unwind_step *step = entry;

	if (entry->ip != w->ip ||
	    READ_ONCE(entry->tag) >> STEP_GENERATION_SHIFT != w->generation) {
		if ((s32)w->ip != w->ip)
			goto other;
		step = miss(w, entry);
	}
	if (step_kind(step->tag) != STEP_OTHER)
		return step;
other:
	end_walk(w, UWC_OTHER_TEXT);
	return NULL;
}

/* ==== Steps ==== */

/*
 * Take plain steps as long as they are in the table. Leading frames have the
 * role of one and are not kept: they are overwritten later.
 */
static __always_inline void plain_steps(struct walk *w, unsigned long stop,
					bool leading)
{
	const u32 want = step_tag(w->generation, STEP_SP, 0);
	const u32 ignore = leading ? step_tag(0, 0, UNWIND_LEAD) : 0;
	struct unwind_step *steps = w->cpu->steps;
	const unsigned int shift = hash_shift;
	const unsigned long *sp = w->sp, *bp = w->bp, *hi = w->hi;
	unsigned long ip = w->ip;
	u32 *out = w->out, *end = w->end;

	while (out < end && !(leading && ip == stop)) {
		const struct unwind_step *s = slot(steps, shift, ip);
		const unsigned long *ra = sp + s->ra;

		if ((s->tag & ~ignore) != want || s->ip != ip || ra >= hi)
			break;
		*out++ = s->frame;
		if (s->bp != STEP_SAME_BP)
			bp = sp + s->bp;
		ip = READ_ONCE_NOCHECK(*ra);
		sp = ra + 1;
	}
	w->out = out;
	w->ip = ip;
	w->sp = sp;
	w->bp = bp;
}

static bool is_on_stack(const struct walk *w, const unsigned long *p)
{
	return p >= w->sp && p < w->hi && IS_ALIGNED((unsigned long)p, 8);
}

/* The caller's return address is at @ra, its BP relative to @base. */
static bool step_to(struct walk *w, const struct unwind_step *step,
		    const unsigned long *base, const unsigned long *ra)
{
	if (!is_on_stack(w, ra))
		return end_walk(w, UWC_BOUNDS);
	if (step->bp != STEP_SAME_BP)
		w->bp = base + step->bp;
	w->ip = READ_ONCE_NOCHECK(*ra);
	w->sp = ra + 1;
	return true;
}

static bool step_bp(struct walk *w, const struct unwind_step *step)
{
	const unsigned long *base = (void *)READ_ONCE_NOCHECK(*w->bp);

	if (!is_on_stack(w, base))
		return end_walk(w, UWC_BOUNDS);
	return step_to(w, step, base, base + step->ra);
}

static bool step_bp_indirect(struct walk *w, const struct unwind_step *step)
{
	const unsigned long *base = (void *)READ_ONCE_NOCHECK(*w->bp);
	const unsigned long *caller;

	if (!is_on_stack(w, base) || !is_on_stack(w, base + step->ra) ||
	    !is_on_stack(w, base + step->bp))
		return end_walk(w, UWC_BOUNDS);
	caller = (void *)READ_ONCE_NOCHECK(base[step->ra]);
	return step_to(w, step, base, caller - 1);
}

static void on_task_stack(struct walk *w)
{
	w->lo = task_stack_page(current);
	w->hi = (void *)w->lo + THREAD_SIZE;
}

static bool is_on_task_stack(const struct walk *w)
{
	return w->lo == task_stack_page(current);
}

/* From the interrupt stack to the task's, where the interrupt came. */
static bool step_sp_indirect(struct walk *w, const struct unwind_step *step)
{
	const unsigned long *base;

	if (is_on_task_stack(w) || !is_on_stack(w, w->sp))
		return end_walk(w, UWC_BOUNDS);
	base = (void *)READ_ONCE_NOCHECK(*w->sp);
	on_task_stack(w);
	w->sp = w->lo;
	if (!is_on_stack(w, base))
		return end_walk(w, UWC_BOUNDS);
	return step_to(w, step, base, base + step->ra);
}

/* Give a frame out; false if it ends the stack. */
static bool emit(struct walk *w, u32 frame, unsigned int role)
{
	if (w->out == w->end) {
		w->truncated = true;
		return end_walk(w, UWC_CACHED);
	}
	*w->out++ = frame;
	if (w->cut_irq && role & UNWIND_CUT)
		return end_walk(w, UWC_CACHED);
	return true;
}

/*
 * Cross frames that were interrupted: what their caller is depends on the
 * exact instruction, or on registers. The kernel's unwinder takes these steps
 * on the real stack.
 */
static bool cross(struct walk *w, struct unwind_state *state)
{
	unsigned long ip;

	do {
		ip = unwind_get_return_address(state);
		if (!ip)
			return end_walk(w, UWC_CACHED);
		if (!emit(w, image_frame(ip), unwind_role(ip)))
			return false;
		if (!unwind_next_frame(state))
			return end_walk(w, UWC_CACHED);
	} while (state->regs);
	if (state->signal)
		return end_walk(w, UWC_INTERRUPTED);
	return true;
}

static noinline bool step_interrupted(struct walk *w, const void *regs)
{
	bool on_task = is_on_task_stack(w);
	struct unwind_state state = {
		.task = current,
		.stack_info = {
			.type = on_task ? STACK_TYPE_TASK : STACK_TYPE_IRQ,
			.begin = (unsigned long *)w->lo,
			.end = (unsigned long *)w->hi,
		},
		.stack_mask = BIT(STACK_TYPE_IRQ) |
			      (on_task ? BIT(STACK_TYPE_TASK) : 0),
		.ip = w->ip,
		.sp = (unsigned long)w->sp,
		.bp = READ_ONCE_NOCHECK(*w->bp),
	};

	if (!unwind_next_frame(&state) || state.regs != regs)
		return end_walk(w, UWC_INTERRUPTED);
	if (!cross(w, &state))
		return false;
	w->ip = state.ip;
	w->sp = (void *)state.sp;
	w->saved_bp = state.bp;
	w->bp = &w->saved_bp;
	w->lo = state.stack_info.begin;
	w->hi = state.stack_info.end;
	return true;
}

static bool step_regs(struct walk *w, const struct unwind_step *step)
{
	const struct pt_regs *regs = (const void *)(w->sp + step->ra);

	if ((void *)(regs + 1) > (void *)w->hi)
		return end_walk(w, UWC_BOUNDS);
	if (user_mode((struct pt_regs *)regs))
		return end_walk(w, UWC_CACHED);
	return step_interrupted(w, regs);
}

static bool take_step(struct walk *w, const struct unwind_step *step)
{
	switch (step_kind(step->tag)) {
	case STEP_SP:
		return step_to(w, step, w->sp, w->sp + step->ra);
	case STEP_BP:
		return step_bp(w, step);
	case STEP_SP_INDIRECT:
		return step_sp_indirect(w, step);
	case STEP_BP_INDIRECT:
		return step_bp_indirect(w, step);
	case STEP_REGS:
		return step_regs(w, step);
	case STEP_END:
		return end_walk(w, UWC_CACHED);
	case STEP_OTHER:
		break;
	}
	return end_walk(w, UWC_OTHER_TEXT);
}

/* ==== The walk ==== */

/* Find out where this CPU's interrupt stack is, if we are on it. */
static noinline void learn_irq_stack(struct unwind_cpu *cpu)
{
	struct unwind_state state;

	unwind_start(&state, current, NULL, NULL);
	if (state.stack_info.type != STACK_TYPE_IRQ)
		return;
	cpu->irq_stack.start = (unsigned long)state.stack_info.begin;
	barrier();
	cpu->irq_stack.size = (unsigned long)state.stack_info.end -
			      (unsigned long)state.stack_info.begin;
}

static bool find_stack(struct walk *w)
{
	const struct bt_range *irq = &w->cpu->irq_stack;

	on_task_stack(w);
	if (w->sp >= w->lo && w->sp < w->hi)
		return true;
	if (!irq->size)
		learn_irq_stack(w->cpu);
	w->lo = (void *)irq->start;
	w->hi = (void *)irq->start + irq->size;
	if (w->sp >= w->lo && w->sp < w->hi)
		return true;
	return end_walk(w, UWC_OFF_STACK);
}

/* Begin at the caller of unwind_capture(), with the leading frames. */
static bool begin(struct walk *w, const unsigned long *fp, u32 *frames)
{
	w->ip = fp[1];
	w->sp = fp + 2;
	w->bp = fp;
	w->out = frames;
	w->end = frames + UNWIND_LEAD_MAX;
	w->cut_irq = false;
	w->how = UWC_CACHED;
	return find_stack(w);
}

/* One leading frame; the frames it gives out are overwritten. */
static bool leading_step(struct walk *w)
{
	const struct unwind_step *step = find_step(w);

	if (!step)
		return false;
	*w->out++ = step->frame;
	return take_step(w, step);
}

/* Go to the frame that was asked for; false if it isn't among the first. */
static bool skip_to(struct walk *w, unsigned long ip)
{
	for (;;) {
		plain_steps(w, ip, true);
		if (w->ip == ip)
			return w->out < w->end;
		if (w->out == w->end || !leading_step(w))
			return false;
	}
}

static bool skip_leading(struct walk *w)
{
	for (;;) {
		const struct unwind_step *step = find_step(w);

		if (!step)
			return false;
		if (!(step_role(step->tag) & UNWIND_LEAD))
			return true;
		if (!take_step(w, step))
			return false;
	}
}

static bool find_start(struct walk *w, const unsigned long *fp, u32 *frames)
{
	if (!begin(w, fp, frames))
		return false;
	if (w->req->call_site) {
		if (skip_to(w, w->req->call_site))
			return true;
		if (w->how != UWC_CACHED || !begin(w, fp, frames))
			return false;
	}
	return skip_leading(w);
}

static bool slow_step(struct walk *w)
{
	const struct unwind_step *step = find_step(w);

	return step && emit(w, step->frame, step_role(step->tag)) &&
	       take_step(w, step);
}

static void walk(struct walk *w, const unsigned long *fp, u32 *frames)
{
	bool found = find_start(w, fp, frames);

	w->out = frames;
	w->truncated = false;
	if (!found)
		return;
	w->end = frames + w->req->depth;
	w->cut_irq = w->req->cut_irq;
	do {
		plain_steps(w, 0, false);
	} while (slow_step(w));
}

enum unwind_counter unwind_cache_capture(const struct unwind_request *req,
					 const unsigned long *fp,
					 struct bt_trace *trace)
{
	struct walk w;

	if (in_nmi())
		return UWC_NMI;
	w.cpu = this_cpu_ptr(&unwind_cpu);
	if (!w.cpu->steps)
		return UWC_NO_CACHE;
	w.req = req;
	/* Pairs with unwind_invalidate(). */
	w.generation = atomic_read_acquire(&unwind_generation) &
		       (U32_MAX >> STEP_GENERATION_SHIFT);

	w.cpu->nest++;
	barrier();
	walk(&w, fp, trace->frames);
	barrier();
	w.cpu->nest--;

	trace->nr = w.out - trace->frames;
	trace->truncated = w.truncated;
	return w.how;
}

/* ==== Start and end ==== */

static int allocate(size_t size)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct unwind_step *steps = vzalloc_node(size, cpu_to_node(cpu));

		if (!steps)
			return -ENOMEM;
		per_cpu(unwind_cpu, cpu).steps = steps;
	}
	return 0;
}

int unwind_cache_init(void)
{
	size_t size = (size_t)cache_kb << 10;
	int err;

	if (cache_kb < CACHE_KB_MIN || cache_kb > CACHE_KB_MAX ||
	    !is_power_of_2(cache_kb)) {
		pr_err("capture_cache_kb is %u, not a power of two from %d to %d\n",
		       cache_kb, CACHE_KB_MIN, CACHE_KB_MAX);
		return -ERANGE;
	}
	hash_shift = 32 - ilog2(size / sizeof(struct unwind_step));
	unwind_step_init();
	err = allocate(size);
	if (err)
		unwind_cache_exit();
	return err;
}

void unwind_cache_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		vfree(per_cpu(unwind_cpu, cpu).steps);
		per_cpu(unwind_cpu, cpu).steps = NULL;
	}
}
