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
#include <linux/vmalloc.h>
#include <asm/unwind.h>

#include "unwind.h"

static unsigned int cache_kb = 64;
module_param_named(capture_cache_kb, cache_kb, uint, 0444);
MODULE_PARM_DESC(capture_cache_kb, "size of each CPU's frame cache (default 64, a power of two)");

enum { CACHE_KB_MIN = 4, CACHE_KB_MAX = 4096 };

/**
 * struct unwind_cpu - the cache of one CPU
 * @steps: the table; NULL until the first log is on
 * @nest: captures under way, one inside the other
 * @irq_stack: learnt when first met; @hi is NULL until then
 */
struct unwind_cpu {
	struct unwind_step *steps;
	unsigned int nest;
	struct unwind_stack irq_stack;
};

static DEFINE_PER_CPU(struct unwind_cpu, unwind_cpu);

/* Bits of an address, times 4, that are the offset of its step in the table. */
static u32 slot_mask __read_mostly;

/**
 * struct table - what a walk looks steps up in
 * @steps: this CPU's
 * @mask: slot_mask
 * @generation: of steps that are valid
 */
struct table {
	struct unwind_step *steps;
	u32 mask;
	u32 generation;
};

/**
 * struct walk - a walk that isn't all plain steps
 * @table: likewise
 * @place: the frame that is next to be given out
 * @stack: that it is on
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
	struct bt_frame place;
	struct unwind_stack stack;
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

/* ==== Stacks ==== */

/* Find out where this CPU's interrupt stack is, if we are on it. */
static noinline void learn_irq_stack(struct unwind_stack *irq)
{
	struct unwind_state state;

	unwind_start(&state, current, NULL, NULL);
	if (state.stack_info.type != STACK_TYPE_IRQ)
		return;
	irq->lo = state.stack_info.begin;
	barrier();
	irq->hi = state.stack_info.end;
}

struct unwind_stack unwind_irq_stack(void)
{
	struct unwind_stack *irq = this_cpu_ptr(&unwind_cpu.irq_stack);

	if (!irq->hi)
		learn_irq_stack(irq);
	return *irq;
}

/* ==== The table ==== */

static __always_inline struct table this_table(void)
{
	return (struct table){
		.steps = this_cpu_read(unwind_cpu.steps),
		.mask = slot_mask,
		/* Pairs with unwind_invalidate(). */
		.generation = atomic_read_acquire(&unwind_generation),
	};
}

/*
 * Return addresses are hardly ever less than four bytes apart, as most calls are
 * longer than that; from there on their low bits are as good as a hash's.
 */
static __always_inline struct unwind_step *slot(const struct table *t,
						unsigned long ip)
{
	return (void *)t->steps + (ip * (sizeof(struct unwind_step) / 4) &
				   t->mask);
}

/*
 * The other place of a step. Without it two addresses of one stack that share a
 * slot would drive each other out for ever.
 */
static __always_inline struct unwind_step *
second_slot(const struct unwind_step *step)
{
	return (void *)((unsigned long)step ^ sizeof(*step));
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

static __always_inline const struct unwind_step *
known_step(const struct table *t, unsigned long ip)
{
	const struct unwind_step *step = slot(t, ip);

	if (is_known(t, step, ip))
		return step;
	step = second_slot(step);
	return is_known(t, step, ip) ? step : NULL;
}

const struct unwind_step *unwind_known_step(unsigned long ip)
{
	const struct table t = this_table();

	return known_step(&t, ip);
}

static void put_step(struct unwind_step *entry, const struct unwind_step *step)
{
	WRITE_ONCE(entry->key, 0);
	barrier();
	entry->frame = step->frame;
	entry->ra = step->ra;
	entry->bp = step->bp;
	barrier();
	WRITE_ONCE(entry->key, step->key);
}

static bool is_current(const struct table *t, const struct unwind_step *step)
{
	return !((step->tag ^ t->generation) & ~(STEP_GENERATION - 1));
}

static void fill(const struct table *t, const struct unwind_step *step)
{
	struct unwind_step *entry = slot(t, TEXT_BASE + step->ip);

	if (is_current(t, entry))
		put_step(second_slot(entry), entry);
	put_step(entry, step);
}

static noinline const struct unwind_step *miss(struct walk *w)
{
	this_cpu_inc(unwind_counts[UWC_MISSES]);
	unwind_decode(&w->step, w->place.ip, w->table.generation);
	if (this_cpu_read(unwind_cpu.nest) == 1) {
		this_cpu_inc(unwind_counts[UWC_FILLS]);
		fill(&w->table, &w->step);
	}
	return &w->step;
}

/* The step of the walk's frame; NULL, and the end, if only the reference knows. */
static const struct unwind_step *find_step(struct walk *w)
{
	const struct unwind_step *step = known_step(&w->table, w->place.ip);

	if (!step && w->place.ip >= TEXT_BASE)
		step = miss(w);
	if (step && step_kind(step) != STEP_OTHER)
		return step;
	end_walk(w, UWC_OTHER_TEXT);
	return NULL;
}

/* ==== Steps on one stack ==== */

static __always_inline bool is_above(const struct bt_frame *p,
				     const unsigned long *word,
				     const unsigned long *hi)
{
	return word > p->at && word < hi && IS_ALIGNED((unsigned long)word, 8);
}

/*
 * The caller's frame is found from the saved BP. False if a slot isn't where it
 * must be; the place then is as it was.
 */
static noinline bool bp_step(struct bt_frame *p, const struct unwind_step *step,
			     const unsigned long *hi)
{
	const unsigned long *base = (void *)READ_ONCE_NOCHECK(*p->bp);
	const unsigned long *ra = base + step->ra, *bp = ra + step->bp;

	if (!is_above(p, base, hi) || !is_above(p, ra, hi))
		return false;
	if (step_kind(step) == STEP_BP_INDIRECT) {
		bp = base + step->bp;
		ra = (const unsigned long *)READ_ONCE_NOCHECK(*ra) - 1;
		if (!is_above(p, bp, hi) || !is_above(p, ra, hi))
			return false;
	}
	if (step->bp != STEP_SAME_BP)
		p->bp = bp;
	p->at = ra;
	p->ip = READ_ONCE_NOCHECK(*ra);
	return true;
}

/* To the caller of a frame whose step has the key that makes it plain. */
static __always_inline bool plain_step(struct bt_frame *p,
				       const struct unwind_step *step,
				       const unsigned long *hi)
{
	const unsigned long *ra = p->at + step->ra;

	if (unlikely(ra >= hi))
		return false;
	if (step->bp != STEP_SAME_BP)
		p->bp = ra + step->bp;
	p->at = ra;
	p->ip = READ_ONCE_NOCHECK(*ra);
	return true;
}

/*
 * To the caller of a frame that isn't plain or not where it is looked for first;
 * false if that isn't on the same stack.
 */
static __always_inline bool other_step(struct bt_frame *p,
				       const struct unwind_step *step,
				       const unsigned long *hi)
{
	struct bt_frame place = *p;

	if (step_role(step) & UNWIND_CUT)
		return false;
	switch (step_kind(step)) {
	case STEP_SP:
		return plain_step(p, step, hi);
	case STEP_BP:
	case STEP_BP_INDIRECT:
		if (!bp_step(&place, step, hi))
			return false;
		*p = place;
		return true;
	default:
		return false;
	}
}

/*
 * Give frames out until a step leaves the stack, or isn't known: returns where
 * its frame goes. This loop is the price of a capture. NULL: there is no room
 * for the next frame, which is known.
 */
static __always_inline u32 *give_out(const struct table *t, struct bt_frame *p,
				     const unsigned long *hi, u32 *out,
				     u32 *end)
{
	const u64 plain = key_of(t->generation | STEP_SP);

	for (;;) {
		const struct unwind_step *step = slot(t, p->ip);

		if (likely(step->key == p->ip + plain)) {
			if (unlikely(out == end))
				return NULL;
			if (!plain_step(p, step, hi))
				return out;
		} else {
			step = known_step(t, p->ip);
			if (!step || out == end || !other_step(p, step, hi))
				return out;
		}
		*out++ = step->frame;
	}
}

/* Go to the frame @ip, if it is among the first ones. */
static __always_inline bool skip_to(const struct table *t, struct bt_frame *p,
				    const unsigned long *hi, unsigned long ip)
{
	const u64 plain = key_of(t->generation | STEP_SP);
	unsigned int n;

	for (n = 1; p->ip != ip; n++) {
		const struct unwind_step *step = slot(t, p->ip);

		if (unlikely(n == UNWIND_LEAD_MAX))
			return false;
		if (likely((step->key & ~((u64)STEP_LEAD << 32)) ==
			   p->ip + plain)) {
			if (!plain_step(p, step, hi))
				return false;
		} else {
			step = known_step(t, p->ip);
			if (!step || !other_step(p, step, hi))
				return false;
		}
	}
	return true;
}

/* ==== Other steps ==== */

static bool step_above(struct walk *w, const struct unwind_step *step,
		       const unsigned long *base)
{
	const unsigned long *ra = base + step->ra;

	if (!is_above(&w->place, ra, w->stack.hi))
		return end_walk(w, UWC_BOUNDS);
	if (step->bp != STEP_SAME_BP)
		w->place.bp = ra + step->bp;
	w->place.ip = READ_ONCE_NOCHECK(*ra);
	w->place.at = ra;
	return true;
}

static bool step_bp(struct walk *w, const struct unwind_step *step)
{
	return bp_step(&w->place, step, w->stack.hi) || end_walk(w, UWC_BOUNDS);
}

/* From the interrupt stack to the task's, where the interrupt came. */
static bool step_sp_indirect(struct walk *w, const struct unwind_step *step)
{
	const unsigned long *slot = w->place.at + 1, *base;
	const struct unwind_stack task = unwind_task_stack();

	if (unwind_is_on(&task, slot) || !unwind_is_on(&w->stack, slot))
		return end_walk(w, UWC_BOUNDS);
	base = (void *)READ_ONCE_NOCHECK(*slot);
	w->stack = task;
	w->place.at = task.lo;
	if (!is_above(&w->place, base, task.hi))
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
	bool on_task = w->stack.lo == unwind_task_stack().lo;
	struct unwind_state state = {
		.task = current,
		.stack_info = {
			.type = on_task ? STACK_TYPE_TASK : STACK_TYPE_IRQ,
			.begin = (unsigned long *)w->stack.lo,
			.end = (unsigned long *)w->stack.hi,
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
	w->place = (struct bt_frame){
		.ip = state.ip,
		.at = (unsigned long *)state.sp - 1,
		.bp = &w->saved_bp,
	};
	w->stack.lo = state.stack_info.begin;
	w->stack.hi = state.stack_info.end;
	return true;
}

static bool step_regs(struct walk *w, const struct unwind_step *step)
{
	const struct pt_regs *regs = (const void *)(w->place.at + step->ra);

	if ((void *)(regs + 1) > (void *)w->stack.hi)
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
	case STEP_BP_INDIRECT:
		return step_bp(w, step);
	case STEP_SP_INDIRECT:
		return step_sp_indirect(w, step);
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

/* One leading frame; the frames that it gives out are overwritten later. */
static bool leading_step(struct walk *w)
{
	const struct unwind_step *step = find_step(w);

	return step && emit(w, step->frame, 0) && take_step(w, step);
}

/* Go to the frame that was asked for; false if it isn't among the first. */
static bool search_for(struct walk *w, unsigned long ip)
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
static __always_inline struct bt_frame first_place(const unsigned long *fp)
{
	return (struct bt_frame){ .ip = fp[1], .at = fp + 1, .bp = fp };
}

static bool begin(struct walk *w, const unsigned long *fp, u32 *frames)
{
	w->place = first_place(fp);
	w->stack = unwind_stack_of(fp);
	w->out = frames;
	w->end = frames + UNWIND_LEAD_MAX;
	w->how = UWC_CACHED;
	return unwind_is_on(&w->stack, fp) || end_walk(w, UWC_OFF_STACK);
}

static bool find_start(struct walk *w, const unsigned long *fp,
		       unsigned long call_site, u32 *frames)
{
	if (!begin(w, fp, frames))
		return false;
	if (!call_site)
		return skip_leading(w);
	if (search_for(w, call_site))
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
		out = give_out(&w->table, &w->place, w->stack.hi, w->out,
			       w->end);
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

/* The rest of a walk; frames go to @out. */
static noinline enum unwind_counter
walk_rest(struct bt_context *ctx, u32 *out, struct bt_frame place,
	  unsigned int depth, unsigned int flags)
{
	struct walk w = {
		.table = this_table(),
		.place = place,
		.stack = unwind_stack_of(place.at),
		.out = out,
		.end = ctx->trace.frames + depth,
		.cut_irq = flags & BTREF_CUT_IRQ,
		.how = UWC_CACHED,
	};

	ctx->trace.nr = 0;
	if (!unwind_is_on(&w.stack, place.at))
		return UWC_OFF_STACK;
	return finish(&w, &ctx->trace);
}

/* ==== Capture ==== */

/*
 * The way of most stacks, and the price of an event: from the call site to the
 * depth at which the stack is cut, all on one stack. Nothing here lives in
 * memory but the table and the stack. The first frame that is of another kind,
 * or not known, hands over to the functions above.
 */
static __always_inline enum unwind_counter
walk_fast(struct bt_context *ctx, const unsigned long *fp,
	  unsigned long call_site, unsigned int depth, unsigned int flags)
{
	const struct table t = this_table();
	const struct unwind_stack stack = unwind_stack_of(fp);
	struct bt_frame p = first_place(fp);
	u32 *out;

	if (!call_site || unlikely(!unwind_is_on(&stack, fp)) ||
	    !skip_to(&t, &p, stack.hi, call_site))
		return walk_all(ctx, fp, call_site, depth, flags);
	out = give_out(&t, &p, stack.hi, ctx->trace.frames,
		       ctx->trace.frames + depth);
	if (out)
		return walk_rest(ctx, out, p, depth, flags);
	ctx->trace.nr = depth;
	ctx->trace.truncated = true;
	return UWC_CACHED;
}

/* Is the cache to be used here? If not: why. */
static __always_inline enum unwind_counter how_to_capture(void)
{
	if (in_nmi())
		return UWC_NMI;
	if (likely(READ_ONCE(unwind_mode) == UNWIND_CACHED &&
		   this_cpu_read(unwind_cpu.steps)))
		return UWC_CACHED;
	return UWC_REFERENCE;
}

/* @how: what came of the cache. */
static __always_inline bool conclude(struct bt_context *ctx,
				     enum unwind_counter how,
				     unsigned long caller,
				     unsigned long call_site,
				     unsigned int depth, unsigned int flags)
{
	this_cpu_inc(unwind_counts[how]);
	if (unlikely(how != UWC_CACHED))
		unwind_reference(&ctx->trace, ctx->ips, caller, call_site,
				 depth, flags);
	else if (unlikely(READ_ONCE(unwind_verify)))
		unwind_compare(ctx, caller, call_site, depth, flags);
	return ctx->trace.nr;
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
	enum unwind_counter how = how_to_capture();

	if (likely(how == UWC_CACHED)) {
		this_cpu_inc(unwind_cpu.nest);
		barrier();
		how = walk_fast(ctx, fp, call_site, depth, flags);
		barrier();
		this_cpu_dec(unwind_cpu.nest);
	}
	return conclude(ctx, how, fp[1], call_site, depth, flags);
}
EXPORT_SYMBOL_FOR_TESTS(unwind_capture);

noinline notrace bool unwind_capture_from(struct bt_context *ctx,
					  const struct bt_frame *from,
					  unsigned int depth,
					  unsigned int flags)
{
	enum unwind_counter how = how_to_capture();

	if (likely(how == UWC_CACHED)) {
		this_cpu_inc(unwind_cpu.nest);
		barrier();
		how = walk_rest(ctx, ctx->trace.frames, *from, depth, flags);
		barrier();
		this_cpu_dec(unwind_cpu.nest);
	}
	return conclude(ctx, how, _RET_IP_, from->ip, depth, flags);
}

/* ==== Start and end ==== */

static size_t table_bytes(void)
{
	return (size_t)cache_kb << 10;
}

int unwind_cache_init(void)
{
	if (cache_kb < CACHE_KB_MIN || cache_kb > CACHE_KB_MAX ||
	    !is_power_of_2(cache_kb)) {
		pr_err("capture_cache_kb is %u, not a power of two from %d to %d\n",
		       cache_kb, CACHE_KB_MIN, CACHE_KB_MAX);
		return -ERANGE;
	}
	slot_mask = table_bytes() - sizeof(struct unwind_step);
	unwind_step_init();
	return 0;
}

/* What is there already stays, so that it may be called again. */
int unwind_cache_prepare(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct unwind_cpu *c = per_cpu_ptr(&unwind_cpu, cpu);
		struct unwind_step *steps = c->steps;

		if (!steps)
			steps = vzalloc_node(table_bytes(), cpu_to_node(cpu));
		if (!steps)
			return -ENOMEM;
		/* Zeroes first. */
		smp_store_release(&c->steps, steps);
	}
	return 0;
}

void unwind_cache_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		vfree(per_cpu(unwind_cpu, cpu).steps);
		per_cpu(unwind_cpu, cpu).steps = NULL;
	}
}

size_t unwind_cache_bytes(void)
{
	size_t bytes = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		if (READ_ONCE(per_cpu(unwind_cpu, cpu).steps))
			bytes += table_bytes();
	return bytes;
}
