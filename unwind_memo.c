// SPDX-License-Identifier: GPL-2.0
/*
 * unwind_memo.c - whole stacks that were taken before
 *
 * With ORC, where a frame's return address lies depends on the return addresses
 * below it, and on a saved BP where one of them says so. So a stack that was
 * walked once is known again by comparing: if the same addresses lie at the same
 * places, and those saved BPs lead to where they must, the walk would take the
 * same steps and give the same frames. That costs a third of the walk, and the
 * library's reference, which is kept beside it, saves hashing and look-up.
 *
 *	fp -> | BP           |		part 1: words above fp
 *	      | in slab.c    | <- word
 *	      | ...          |
 *	      | in kmalloc   | <- word	its step is found from BP:
 *	      | ...          |
 *	base->| BP           |		part 2: words above what BP says
 *	      | ...          |
 *	      | call site    | <- word
 *	      | ...          |
 *
 * The reference isn't counted, so the stack may be reclaimed. Each time some
 * have been, before their grace period, the generation changes, as it does when
 * text comes or goes. Whoever sees the old one, with preemption off, finds at
 * the reference the same stack as ever, perhaps a dead one.
 *
 * No locks. A table belongs to its CPU; as in unwind_cache.c only the outermost
 * one of nested captures writes, and an entry is invalid meanwhile.
 */
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/vmalloc.h>
#include <asm/unwind.h>

#include "unwind.h"

enum {
	MEMO_SIZE	= 256,		/* bytes of an entry */
	MEMO_SHIFT	= 9,		/* entries per CPU, log2 */
	MEMO_BYTES	= MEMO_SIZE << MEMO_SHIFT,
	NR_WAYS		= 2,		/* entries of a set */
	NR_CANDIDATES	= 2,		/* of an entry */
	MAX_PARTS	= 8,
	MAX_WORDS	= 30,
};

/**
 * struct memo_part - words up to a step that is found from a saved BP
 * @nr: how many
 * @kind: STEP_BP or STEP_BP_INDIRECT: the step that leads here; for the first
 *	part, whose origin is the frame of who captures, STEP_SP
 * @older: the saved BP lies above the origin before the last
 * @bp: where it is, in words above that origin
 * @sp: STEP_BP_INDIRECT: where the caller's SP is saved, above BP
 */
struct memo_part {
	u8 nr;
	u8 kind : 4;
	u8 older : 1;
	s16 bp;
	s16 sp;
};

/**
 * struct memo - a stack
 * @key: what it was asked for by; 0: invalid
 * @generation: of memo_generation
 * @ref: not counted
 * @candidates: stacks that were taken instead, see is_due(); all of a set's
 *	entries' together
 * @nr_parts: in use
 * @to_user: the last frame is where user space was left
 * @regs: its registers, in words above the last origin
 * @parts: one after the other
 * @ip: the low halves of the return addresses of all parts; all text is where
 *	sign extension makes them whole
 * @at: where they lie, in words above the origin of their part
 */
struct memo {
	u64 key;
	u32 generation;
	btref_t ref;
	btref_t candidates[NR_CANDIDATES];
	u8 nr_parts;
	bool to_user;
	s16 regs;
	struct memo_part parts[MAX_PARTS];
	s32 ip[MAX_WORDS];
	s16 at[MAX_WORDS];
};

static_assert(sizeof(struct memo) == MEMO_SIZE);

/**
 * struct memo_cpu - what one CPU remembers
 * @memos: I: table of entries
 * @turn: whose turn it is to give place, counting on
 * @nest: look-ups and fillings under way, one inside the other
 */
struct memo_cpu {
	struct memo *memos;
	unsigned int turn;
	unsigned int nest;
};

static DEFINE_PER_CPU(struct memo_cpu, memo_cpu);
static atomic_t memo_generation;

u32 unwind_memo_generation(void)
{
	/* Pairs with unwind_forget(). */
	return atomic_read_acquire(&memo_generation);
}

void unwind_forget(void)
{
	/* What changed comes first; pairs with the acquire above. */
	smp_mb__before_atomic();
	atomic_inc(&memo_generation);
}
EXPORT_SYMBOL_FOR_TESTS(unwind_forget);

/* ==== Look-up ==== */

/*
 * The entries of a set. The number of the system call that the task is in tells
 * apart stacks that begin alike. Any number does: it only picks the set.
 */
static __always_inline struct memo *memo_set(struct memo *memos, u64 key)
{
	u64 hint = task_pt_regs(current)->orig_ax;
	u64 hash = (key + hint * 0x10001) * GOLDEN_RATIO_64;

	return (void *)memos + (hash >> 32 & (MEMO_BYTES - NR_WAYS * MEMO_SIZE));
}

static __always_inline bool is_above(const struct unwind_stack *stack,
				     const unsigned long *at,
				     const unsigned long *word)
{
	return word > at && word < stack->hi &&
	       IS_ALIGNED((unsigned long)word, 8);
}

/* To the origin of a part; NULL if a slot isn't where it must be. */
static __always_inline const unsigned long *
find_origin(const struct memo_part *part, const struct unwind_stack *stack,
	    const unsigned long *origin, const unsigned long **older,
	    const unsigned long *at)
{
	const unsigned long *bp = (part->older ? *older : origin) + part->bp;
	const unsigned long *base, *sp;

	if (!unwind_is_on(stack, bp))
		return NULL;
	base = (void *)READ_ONCE_NOCHECK(*bp);
	if (!is_above(stack, at, base))
		return NULL;
	*older = origin;
	if (part->kind == STEP_BP)
		return base;
	*older = base;
	if (!is_above(stack, at, base + part->sp))
		return NULL;
	sp = (void *)READ_ONCE_NOCHECK(base[part->sp]);
	return is_above(stack, at, sp - 1) ? sp : NULL;
}

/* This loop is the price of a stack that is known. */
static __no_kasan_or_inline bool
words_are_there(const struct memo *m, unsigned long i, unsigned long end,
		const unsigned long *origin)
{
	do {
		if (origin[m->at[i]] != (unsigned long)(long)m->ip[i])
			return false;
	} while (++i != end);
	return true;
}

static bool is_user_entry(const struct memo *m, const unsigned long *origin,
			  const struct unwind_stack *stack)
{
	const struct pt_regs *regs = (const void *)(origin + m->regs);

	return (const void *)(regs + 1) <= (const void *)stack->hi &&
	       user_mode((struct pt_regs *)regs);
}

/* Is this stack the one on which we are? */
static __always_inline bool memo_holds(const struct memo *m,
				       const unsigned long *fp,
				       const struct unwind_stack *stack)
{
	const unsigned long *origin = fp, *older = fp, *at;
	const struct memo_part *part = m->parts;
	const struct memo_part *end = part + m->nr_parts;
	unsigned long i = 0, next;

	for (;; i = next) {
		next = i + part->nr;
		/* The places of the words of a part ascend. */
		at = origin + m->at[next - 1];
		if (unlikely(at >= stack->hi) ||
		    !words_are_there(m, i, next, origin))
			return false;
		if (++part == end)
			break;
		origin = find_origin(part, stack, origin, &older, at);
		if (unlikely(!origin))
			return false;
	}
	return !m->to_user || is_user_entry(m, origin, stack);
}

static __always_inline bool is_valid(const struct memo *m, u64 key,
				     u32 generation)
{
	return READ_ONCE(m->key) == key && m->generation == generation;
}

btref_t unwind_recall(const unsigned long *fp, u64 key)
{
	struct unwind_stack stack = unwind_stack_of(fp);
	struct memo *memos = this_cpu_read(memo_cpu.memos);
	u32 generation = unwind_memo_generation();
	const struct memo *m, *end;
	btref_t ref = 0;

	if (unlikely(!memos || in_nmi() || !stack.hi) ||
	    READ_ONCE(unwind_mode) != UNWIND_CACHED)
		return 0;
	this_cpu_inc(memo_cpu.nest);
	barrier();
	m = memo_set(memos, key);
	for (end = m + NR_WAYS; m != end; m++) {
		if (is_valid(m, key, generation) && memo_holds(m, fp, &stack)) {
			ref = m->ref;
			this_cpu_inc(unwind_counts[UWC_REMEMBERED]);
			break;
		}
	}
	barrier();
	this_cpu_dec(memo_cpu.nest);
	return ref;
}

/* ==== Learning ==== */

/**
 * struct lesson - a walk whose places are noted
 * @m: the entry
 * @stack: on which the walk is
 * @part: the current part
 * @nr: words so far
 * @origin: of the part
 * @older: the one before
 * @at: place of the current return address
 * @bp: place of the frame's saved BP
 * @bp_parts: how many parts ago it was found
 */
struct lesson {
	struct memo *m;
	struct unwind_stack stack;
	struct memo_part *part;
	unsigned int nr;
	const unsigned long *origin;
	const unsigned long *older;
	const unsigned long *at;
	const unsigned long *bp;
	unsigned int bp_parts;
};

static bool fits(long words)
{
	return words == (s16)words;
}

static bool note_word(struct lesson *l)
{
	if (l->nr == MAX_WORDS || !fits(l->at - l->origin) ||
	    l->at >= l->stack.hi)
		return false;
	l->m->ip[l->nr] = READ_ONCE_NOCHECK(*l->at);
	l->m->at[l->nr] = l->at - l->origin;
	l->nr++;
	l->part->nr++;
	return true;
}

static bool learn_sp_step(struct lesson *l, const struct unwind_step *step)
{
	l->at += step->ra;
	if (step->bp != STEP_SAME_BP) {
		l->bp = l->at + step->bp;
		l->bp_parts = 0;
	}
	return true;
}

/* A new part begins at what the saved BP says. */
static bool learn_bp_step(struct lesson *l, const struct unwind_step *step)
{
	const unsigned long *from = l->bp_parts ? l->older : l->origin;
	struct memo_part *part = l->part + 1;

	if (part == l->m->parts + MAX_PARTS || l->bp_parts > 1 ||
	    step->bp == STEP_SAME_BP || !fits(l->bp - from))
		return false;
	*part = (struct memo_part){
		.kind = step_kind(step),
		.older = l->bp_parts,
		.bp = l->bp - from,
		.sp = step->ra,
	};
	l->origin = find_origin(part, &l->stack, l->origin, &l->older, l->at);
	if (!l->origin)
		return false;
	l->part = part;
	l->m->nr_parts++;
	if (part->kind == STEP_BP) {
		l->at = l->origin + step->ra;
		l->bp = l->at + step->bp;
		l->bp_parts = 0;
	} else {
		l->at = l->origin - 1;
		l->bp = l->older + step->bp;
		l->bp_parts = 1;
	}
	return true;
}

static bool learn_user_entry(struct lesson *l, const struct unwind_step *step)
{
	long regs = l->at + step->ra - l->origin;

	l->m->to_user = true;
	l->m->regs = regs;
	return fits(regs) && is_user_entry(l->m, l->origin, &l->stack);
}

/*
 * One frame; false if its step is of a kind that can't be compared. *last: it is
 * the outermost one.
 */
static bool learn_step(struct lesson *l, bool *last)
{
	unsigned long ip = READ_ONCE_NOCHECK(*l->at);
	const struct unwind_step *step = unwind_known_step(ip);

	if (!step)
		return false;
	switch (step_kind(step)) {
	case STEP_SP:
		return learn_sp_step(l, step);
	case STEP_BP:
	case STEP_BP_INDIRECT:
		return learn_bp_step(l, step);
	case STEP_REGS:
		*last = true;
		return learn_user_entry(l, step);
	case STEP_END:
		*last = true;
		return true;
	default:
		return false;
	}
}

static bool learn_to_call_site(struct lesson *l, unsigned long call_site)
{
	unsigned int n;
	bool last = false;

	for (n = 1; READ_ONCE_NOCHECK(*l->at) != call_site; n++)
		if (n == UNWIND_LEAD_MAX || !note_word(l) ||
		    !learn_step(l, &last) || last)
			return false;
	return true;
}

/* The frames that are given out, and the one that would come next. */
static bool learn_frames(struct lesson *l, unsigned int depth,
			 unsigned int flags)
{
	const struct unwind_step *step;
	bool last = false;
	unsigned int n;

	for (n = 0; n < depth; n++) {
		if (!note_word(l))
			return false;
		step = unwind_known_step(READ_ONCE_NOCHECK(*l->at));
		if (step && flags & BTREF_CUT_IRQ &&
		    step_role(step) & UNWIND_CUT)
			return true;
		if (!learn_step(l, &last))
			return false;
		if (last)
			return true;
	}
	step = unwind_known_step(READ_ONCE_NOCHECK(*l->at));
	return step && step_kind(step) != STEP_OTHER && note_word(l);
}

static bool learn(struct memo *m, const unsigned long *fp, u64 key)
{
	struct lesson l = {
		.m = m,
		.stack = unwind_stack_of(fp),
		.part = m->parts,
		.origin = fp,
		.older = fp,
		.at = fp + 1,
		.bp = fp,
	};

	m->nr_parts = 1;
	m->to_user = false;
	m->parts[0] = (struct memo_part){ .kind = STEP_SP };
	return learn_to_call_site(&l, unwind_key_call_site(key)) &&
	       learn_frames(&l, unwind_key_depth(key), unwind_key_flags(key));
}

static unsigned int next_turn(void)
{
	return this_cpu_inc_return(memo_cpu.turn);
}

/*
 * Learning costs as much as a walk, so it is not for what comes only once. A
 * stack is due if it is still a candidate of its set when it comes again. As
 * candidates replace each other in turn, those that alternate are learnt too.
 */
static bool is_due(struct memo *set, btref_t ref)
{
	unsigned int i;

	for (i = 0; i < NR_WAYS * NR_CANDIDATES; i++)
		if (set[i % NR_WAYS].candidates[i / NR_WAYS] == ref)
			return true;
	i = next_turn();
	set[i % NR_WAYS].candidates[i / NR_WAYS % NR_CANDIDATES] = ref;
	return false;
}

static struct memo *choose_way(struct memo *set, u32 generation)
{
	unsigned int i;

	for (i = 0; i < NR_WAYS; i++)
		if (!set[i].key || set[i].generation != generation)
			return &set[i];
	return &set[next_turn() % NR_WAYS];
}

static void remember(struct memo *set, const unsigned long *fp, u64 key,
		     u32 generation, btref_t ref)
{
	struct memo *m;

	if (!is_due(set, ref))
		return;
	m = choose_way(set, generation);
	WRITE_ONCE(m->key, 0);
	barrier();
	m->generation = generation;
	m->ref = ref;
	if (!learn(m, fp, key))
		return;
	barrier();
	WRITE_ONCE(m->key, key);
}

void unwind_remember(const unsigned long *fp, u64 key, u32 generation,
		     btref_t ref)
{
	struct memo *memos = this_cpu_read(memo_cpu.memos);

	if (!memos || in_nmi() || unwind_key_flags(key) & BTREF_PERMANENT ||
	    !unwind_key_call_site(key) || unwind_key_depth(key) >= MAX_WORDS ||
	    READ_ONCE(unwind_mode) != UNWIND_CACHED)
		return;
	if (this_cpu_inc_return(memo_cpu.nest) == 1)
		remember(memo_set(memos, key), fp, key, generation, ref);
	barrier();
	this_cpu_dec(memo_cpu.nest);
}

/* ==== Start and end ==== */

int unwind_memo_prepare(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct memo_cpu *c = per_cpu_ptr(&memo_cpu, cpu);
		struct memo *memos = c->memos;

		if (!memos)
			memos = vzalloc_node(MEMO_BYTES, cpu_to_node(cpu));
		if (!memos)
			return -ENOMEM;
		/* Zeroes first. */
		smp_store_release(&c->memos, memos);
	}
	return 0;
}

void unwind_memo_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		vfree(per_cpu(memo_cpu, cpu).memos);
		per_cpu(memo_cpu, cpu).memos = NULL;
	}
}

size_t unwind_memo_bytes(void)
{
	size_t bytes = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		if (READ_ONCE(per_cpu(memo_cpu, cpu).memos))
			bytes += MEMO_BYTES;
	return bytes;
}
