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
 * @steps: I: the table
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
 * struct place - a frame on the stack
 * @ip: its return address
 * @at: where that is; the frame's SP was behind it
 * @bp: where the frame's BP is saved
 */
struct place {
	unsigned long ip;
	const unsigned long *at;
	const unsigned long *bp;
};

/**
 * struct table - what a walk looks steps up in
 * @steps: this CPU's
 * @shift: hash_shift
 * @generation: of steps that are valid
 */
struct table {
	struct unwind_step *steps;
	unsigned int shift;
	u32 generation;
};

/**
 * struct walk - a walk that isn't all plain steps
 * @table: likewise
 * @place: the frame that is next to be given out
 * @lo: beginning of the stack that it is on
 * @hi: end of that
 * @out: where the next frame number goes
 * @end: end of the room for them
 * @cut_irq: end at the entry of an interrupt
 * @truncated: there are more frames
 * @how: result, once the walk has ended
 * @saved_bp: a BP that is not on the stack
 * @step: last one decoded
 */
struct walk {
	struct table table;
	struct place place;
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

static const unsigned long *task_stack(void)
{
	return task_stack_page(current);
}

static const unsigned long *task_stack_end(void)
{
	return task_stack_page(current) + THREAD_SIZE;
}

static __always_inline bool is_on(const void *p, const void *stack, size_t size)
{
	return (unsigned long)(p - stack) < size;
}

/* ==== The table ==== */

static __always_inline struct table this_table(void)
{
	return (struct table){
		.steps = this_cpu_read(unwind_cpu.steps),
		.shift = hash_shift,
		/* Pairs with unwind_invalidate(). */
		.generation = atomic_read_acquire(&unwind_generation),
	};
}

static __always_inline struct unwind_step *slot(const struct table *t,
						unsigned long ip)
{
	return &t->steps[(u32)ip * GOLDEN_RATIO_32 >> t->shift];
}

/* The key of the step of @ip, with @tag: what is added to @ip. */
static __always_inline u64 key_of(u32 tag)
{
	return ((u64)tag << 32) - TEXT_BASE;
}

/* Is it the step of @ip, all bits of it? Any kind and role will do. */
static bool is_known(const struct table *t, const struct unwind_step *step,
		     unsigned long ip)
{
	u64 differences = step->key ^ (ip + key_of(t->generation));

	return !(differences & ~((u64)(STEP_GENERATION - 1) << 32));
}

static void fill(struct unwind_step *entry, const struct unwind_step *step)
{
	WRITE_ONCE(entry->key, 0);
	barrier();
	entry->frame = step->frame;
	entry->ra = step->ra;
	entry->bp = step->bp;
	barrier();
	WRITE_ONCE(entry->key, step->key);
}

static noinline const struct unwind_step *miss(struct walk *w,
					       struct unwind_step *entry)
{
	this_cpu_inc(unwind_counts[UWC_MISSES]);
	unwind_decode(&w->step, w->place.ip, w->table.generation);
	if (this_cpu_read(unwind_cpu.nest) == 1) {
		this_cpu_inc(unwind_counts[UWC_FILLS]);
		fill(entry, &w->step);
	}
	return &w->step;
}

/* The step of the walk's frame; NULL, and the end, if only the reference knows. */
static const struct unwind_step *find_step(struct walk *w)
{
	struct unwind_step *entry = slot(&w->table, w->place.ip);
	const struct unwind_step *step = entry;

	if (!is_known(&w->table, entry, w->place.ip)) {
		if (w->place.ip < TEXT_BASE)
			goto other;
		step = miss(w, entry);
	}
	if (step_kind(step) != STEP_OTHER)
		return step;
other:
	end_walk(w, UWC_OTHER_TEXT);
	return NULL;
}

/* ==== Plain steps ==== */

/* Where a plain step's caller is; the step's place must be on the stack. */
static __always_inline void go_to_caller(struct place *p,
					 const struct unwind_step *step)
{
	if (step->bp != STEP_SAME_BP)
		p->bp = p->at + step->bp;
	p->ip = READ_ONCE_NOCHECK(*p->at);
}

/*
 * Give frames out until a step isn't plain, or not known: returns where its
 * frame goes. This loop is the price of a capture. NULL: there is no room for
 * the next frame, which is plain.
 */
static __always_inline u32 *plain_steps(const struct table *t, struct place *p,
					const unsigned long *hi, u32 *out,
					u32 *end)
{
	const u64 plain = key_of(t->generation | STEP_SP);

	for (;;) {
		const struct unwind_step *step = slot(t, p->ip);

		if (unlikely(step->key != p->ip + plain))
			return out;
		if (unlikely(out == end))
			return NULL;
		p->at += step->ra;
		if (unlikely(p->at >= hi)) {
			p->at -= step->ra;
			return out;
		}
		*out++ = step->frame;
		go_to_caller(p, step);
	}
}

/* Go to the frame @ip, if it is among the first ones, by plain steps. */
static __always_inline bool plain_skip(const struct table *t, struct place *p,
				       const unsigned long *hi,
				       unsigned long ip)
{
	const u64 plain = key_of(t->generation | STEP_SP);
	unsigned int n;

	for (n = 1; p->ip != ip; n++) {
		const struct unwind_step *step = slot(t, p->ip);

		if (unlikely((step->key & ~((u64)STEP_LEAD << 32)) !=
			     p->ip + plain))
			return false;
		if (unlikely(n == UNWIND_LEAD_MAX))
			return false;
		p->at += step->ra;
		if (unlikely(p->at >= hi))
			return false;
		go_to_caller(p, step);
	}
	return true;
}

/* ==== Other steps ==== */

static bool is_on_stack(const struct walk *w, const unsigned long *p)
{
	return p > w->place.at && p < w->hi && IS_ALIGNED((unsigned long)p, 8);
}

/* The caller's return address is at @ra, its BP saved at @bp. */
static bool step_to(struct walk *w, const struct unwind_step *step,
		    const unsigned long *ra, const unsigned long *bp)
{
	if (!is_on_stack(w, ra))
		return end_walk(w, UWC_BOUNDS);
	if (step->bp != STEP_SAME_BP)
		w->place.bp = bp;
	w->place.ip = READ_ONCE_NOCHECK(*ra);
	w->place.at = ra;
	return true;
}

static bool step_above(struct walk *w, const struct unwind_step *step,
		       const unsigned long *base)
{
	return step_to(w, step, base + step->ra, base + step->ra + step->bp);
}

static bool step_bp(struct walk *w, const struct unwind_step *step)
{
	const unsigned long *base = (void *)READ_ONCE_NOCHECK(*w->place.bp);

	if (!is_on_stack(w, base))
		return end_walk(w, UWC_BOUNDS);
	return step_above(w, step, base);
}

static bool step_bp_indirect(struct walk *w, const struct unwind_step *step)
{
	const unsigned long *base = (void *)READ_ONCE_NOCHECK(*w->place.bp);
	const unsigned long *caller;

	if (!is_on_stack(w, base) || !is_on_stack(w, base + step->ra) ||
	    !is_on_stack(w, base + step->bp))
		return end_walk(w, UWC_BOUNDS);
	caller = (void *)READ_ONCE_NOCHECK(base[step->ra]);
	return step_to(w, step, caller - 1, base + step->bp);
}

/* From the interrupt stack to the task's, where the interrupt came. */
static bool step_sp_indirect(struct walk *w, const struct unwind_step *step)
{
	const unsigned long *base;

	if (w->lo == task_stack() || !is_on_stack(w, w->place.at + 1))
		return end_walk(w, UWC_BOUNDS);
	base = (void *)READ_ONCE_NOCHECK(w->place.at[1]);
	w->lo = task_stack();
	w->hi = task_stack_end();
	w->place.at = w->lo;
	if (!is_on_stack(w, base))
		return end_walk(w, UWC_BOUNDS);
	return step_above(w, step, base);
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
	bool on_task = w->lo == task_stack();
	struct unwind_state state = {
		.task = current,
		.stack_info = {
			.type = on_task ? STACK_TYPE_TASK : STACK_TYPE_IRQ,
			.begin = (unsigned long *)w->lo,
			.end = (unsigned long *)w->hi,
		},
		.stack_mask = BIT(STACK_TYPE_IRQ) |
			      (on_task ? BIT(STACK_TYPE_TASK) : 0),
		.ip = w->place.ip,
		.sp = (unsigned long)(w->place.at + 1),
		.bp = READ_ONCE_NOCHECK(*w->place.bp),
	};

	if (!unwind_next_frame(&state) || state.regs != regs)
		return end_walk(w, UWC_INTERRUPTED);
	if (!cross(w, &state))
		return false;
	w->saved_bp = state.bp;
	w->place = (struct place){
		.ip = state.ip,
		.at = (unsigned long *)state.sp - 1,
		.bp = &w->saved_bp,
	};
	w->lo = state.stack_info.begin;
	w->hi = state.stack_info.end;
	return true;
}

static bool step_regs(struct walk *w, const struct unwind_step *step)
{
	const struct pt_regs *regs = (const void *)(w->place.at + step->ra);

	if ((void *)(regs + 1) > (void *)w->hi)
		return end_walk(w, UWC_BOUNDS);
	if (user_mode((struct pt_regs *)regs))
		return end_walk(w, UWC_CACHED);
	return step_interrupted(w, regs);
}

static bool take_step(struct walk *w, const struct unwind_step *step)
{
	switch (step_kind(step)) {
	case STEP_SP:
		return step_above(w, step, w->place.at);
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

/* ==== A walk with other steps ==== */

/* Find out where this CPU's interrupt stack is, if we are on it. */
static noinline void learn_irq_stack(struct bt_range *irq)
{
	struct unwind_state state;

	unwind_start(&state, current, NULL, NULL);
	if (state.stack_info.type != STACK_TYPE_IRQ)
		return;
	irq->start = (unsigned long)state.stack_info.begin;
	barrier();
	irq->size = (unsigned long)state.stack_info.end - irq->start;
}

static bool find_stack(struct walk *w, const unsigned long *fp)
{
	struct bt_range *irq = this_cpu_ptr(&unwind_cpu.irq_stack);

	w->lo = task_stack();
	w->hi = task_stack_end();
	if (is_on(fp, w->lo, THREAD_SIZE))
		return true;
	if (!irq->size)
		learn_irq_stack(irq);
	w->lo = (void *)irq->start;
	w->hi = (void *)irq->start + irq->size;
	if (is_on(fp, w->lo, irq->size))
		return true;
	return end_walk(w, UWC_OFF_STACK);
}

/* One leading frame; the frames that it gives out are overwritten later. */
static bool leading_step(struct walk *w)
{
	const struct unwind_step *step = find_step(w);

	return step && emit(w, step->frame, 0) && take_step(w, step);
}

/* Go to the frame that was asked for; false if it isn't among the first. */
static bool skip_to(struct walk *w, unsigned long ip)
{
	while (w->place.ip != ip)
		if (!leading_step(w))
			return false;
	return w->out < w->end;
}

static bool skip_leading(struct walk *w)
{
	for (;;) {
		const struct unwind_step *step = find_step(w);

		if (!step)
			return false;
		if (!(step_role(step) & UNWIND_LEAD))
			return true;
		if (!take_step(w, step))
			return false;
	}
}

/* The caller of unwind_capture(). */
static __always_inline struct place first_place(const unsigned long *fp)
{
	return (struct place){ .ip = fp[1], .at = fp + 1, .bp = fp };
}

static bool begin(struct walk *w, const unsigned long *fp, u32 *frames)
{
	w->place = first_place(fp);
	w->out = frames;
	w->end = frames + UNWIND_LEAD_MAX;
	w->how = UWC_CACHED;
	return find_stack(w, fp);
}

static bool find_start(struct walk *w, const unsigned long *fp,
		       unsigned long call_site, u32 *frames)
{
	if (!begin(w, fp, frames))
		return false;
	if (!call_site)
		return skip_leading(w);
	if (skip_to(w, call_site))
		return true;
	return w->how == UWC_CACHED && begin(w, fp, frames) && skip_leading(w);
}

/* A frame of any kind. */
static bool any_step(struct walk *w)
{
	const struct unwind_step *step = find_step(w);

	return step && emit(w, step->frame, step_role(step)) &&
	       take_step(w, step);
}

static enum unwind_counter finish(struct walk *w, struct bt_trace *trace)
{
	u32 *out;

	do {
		out = plain_steps(&w->table, &w->place, w->hi, w->out, w->end);
		w->out = out ?: w->end;
	} while (out && any_step(w));
	trace->nr = w->out - trace->frames;
	trace->truncated = !out || w->truncated;
	return w->how;
}

/* The whole walk. */
static noinline enum unwind_counter
walk_all(struct bt_context *ctx, const unsigned long *fp,
	 unsigned long call_site, unsigned int depth, unsigned int flags)
{
	struct bt_trace *trace = &ctx->trace;
	struct walk w = { .table = this_table() };

	if (!find_start(&w, fp, call_site, trace->frames)) {
		trace->nr = 0;
		trace->truncated = false;
		return w.how;
	}
	w.out = trace->frames;
	w.end = trace->frames + depth;
	w.cut_irq = flags & BTREF_CUT_IRQ;
	w.truncated = false;
	return finish(&w, trace);
}

/* The rest of a walk on the task's stack; frames go to @out. */
static noinline enum unwind_counter
walk_rest(struct bt_context *ctx, u32 *out, unsigned long ip,
	  const unsigned long *at, const unsigned long *bp,
	  unsigned int depth, unsigned int flags)
{
	struct walk w = {
		.table = this_table(),
		.place = { .ip = ip, .at = at, .bp = bp },
		.lo = task_stack(),
		.hi = task_stack_end(),
		.out = out,
		.end = ctx->trace.frames + depth,
		.cut_irq = flags & BTREF_CUT_IRQ,
		.how = UWC_CACHED,
	};

	return finish(&w, &ctx->trace);
}

/* ==== Capture ==== */

/*
 * The way of most stacks, and the price of an event: from the call site, by
 * plain steps, to the depth at which the stack is cut. Nothing here lives in
 * memory but the table and the stack. The first frame that isn't plain, or
 * not known, hands over to the functions above.
 */
static __always_inline enum unwind_counter
walk_plain(struct bt_context *ctx, const unsigned long *fp,
	   unsigned long call_site, unsigned int depth, unsigned int flags)
{
	const struct table t = this_table();
	const unsigned long *hi = task_stack_end();
	struct place p = first_place(fp);
	u32 *out;

	if (!call_site || unlikely(!is_on(fp, task_stack(), THREAD_SIZE)) ||
	    !plain_skip(&t, &p, hi, call_site))
		return walk_all(ctx, fp, call_site, depth, flags);
	out = plain_steps(&t, &p, hi, ctx->trace.frames,
			  ctx->trace.frames + depth);
	if (out)
		return walk_rest(ctx, out, p.ip, p.at, p.bp, depth, flags);
	ctx->trace.nr = depth;
	ctx->trace.truncated = true;
	return UWC_CACHED;
}

/*
 * The walk starts from the frame of this function: it must have one of its
 * own, and return to where its caller called it.
 */
noinline notrace bool unwind_capture(struct bt_context *ctx,
				     unsigned long call_site,
				     unsigned int depth, unsigned int flags)
{
	const unsigned long *fp = __builtin_frame_address(0);
	enum unwind_counter how = UWC_REFERENCE;

	if (in_nmi()) {
		how = UWC_NMI;
	} else if (likely(READ_ONCE(unwind_mode) == UNWIND_CACHED)) {
		this_cpu_inc(unwind_cpu.nest);
		barrier();
		how = walk_plain(ctx, fp, call_site, depth, flags);
		barrier();
		this_cpu_dec(unwind_cpu.nest);
	}
	this_cpu_inc(unwind_counts[how]);
	if (unlikely(how != UWC_CACHED))
		unwind_reference(&ctx->trace, ctx->ips, fp[1], call_site, depth,
				 flags);
	else if (unlikely(READ_ONCE(unwind_verify)))
		unwind_compare(ctx, fp[1], call_site, depth, flags);
	return ctx->trace.nr;
}
EXPORT_SYMBOL_FOR_TESTS(unwind_capture);

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
