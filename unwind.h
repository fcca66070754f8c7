/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unwind.h - what the parts of the capture share
 *
 *	unwind.c	the reference, where stacks start and end, verification
 *	unwind_cache.c	the frame cache: capture from steps decoded once
 *	unwind_memo.c	whole stacks that were taken before
 *	unwind_step.c	how an unwinding step is decoded
 */
#ifndef BTLOG_UNWIND_H
#define BTLOG_UNWIND_H

#include <linux/sched/task_stack.h>

#include "internal.h"

enum {
	/* Among how many frames a stack's start is looked for. */
	UNWIND_LEAD_MAX = 10,
};

enum unwind_mode {
	UNWIND_REFERENCE,
	UNWIND_CACHED,
};

/* Parameters capture= and capture_verify=; a mismatch changes the mode. */
extern enum unwind_mode unwind_mode;
extern bool unwind_verify;

/**
 * enum unwind_role - what a frame means for start and end of a stack
 * @UNWIND_LEAD: it is btlog's, or lies between it and what it observes
 * @UNWIND_CUT: it is the entry of an interrupt or softirq
 */
enum unwind_role {
	UNWIND_LEAD	= 1 << 0,
	UNWIND_CUT	= 1 << 1,
};

/**
 * struct unwind_stack - a stack in memory
 * @lo: its beginning
 * @hi: its end; NULL: there is none
 */
struct unwind_stack {
	const unsigned long *lo;
	const unsigned long *hi;
};

/* The roles of a return address. Context: any; preemption off. */
unsigned int unwind_role(unsigned long ip);

/**
 * enum unwind_counter - what is counted, per CPU
 * @UWC_REFERENCE: captures by the reference, as asked by capture=
 * @UWC_CACHED: captures by the frame cache
 * @UWC_REMEMBERED: stacks that were known again as a whole
 * @UWC_NMI: captures that fell back to the reference: in an NMI
 * @UWC_OFF_STACK: not on the task's stack nor on the CPU's interrupt stack
 * @UWC_OTHER_TEXT: trampolines, BPF, freed text, steps that were not understood
 * @UWC_BOUNDS: a slot that is not where it must be
 * @UWC_INTERRUPTED: the step over interrupted code failed
 * @UWC_MISSES: frames whose step was not in the cache
 * @UWC_FILLS: of them, now in the cache
 * @UWC_VERIFIED: captures that were compared with the reference
 * @UWC_MISMATCHES: of them, different
 * @UWC_NR: number of counters
 */
enum unwind_counter {
	UWC_REFERENCE,
	UWC_CACHED,
	UWC_REMEMBERED,
	UWC_NMI,
	UWC_OFF_STACK,
	UWC_OTHER_TEXT,
	UWC_BOUNDS,
	UWC_INTERRUPTED,
	UWC_MISSES,
	UWC_FILLS,
	UWC_VERIFIED,
	UWC_MISMATCHES,
	UWC_NR
};

DECLARE_PER_CPU(u64 [UWC_NR], unwind_counts);

/* The sum over all CPUs. */
u64 unwind_count(enum unwind_counter i);

/* Changes by STEP_GENERATION whenever text has come or gone. */
extern atomic_t unwind_generation;

/**
 * enum step_kind - how to get from a frame to its caller's
 * @STEP_OTHER: only the reference knows
 * @STEP_SP: return address and BP are saved at fixed places above SP
 * @STEP_BP: the same above BP
 * @STEP_SP_INDIRECT: the same above the SP of another stack, which is saved at
 *	SP: the way from the interrupt stack back to the task's
 * @STEP_BP_INDIRECT: the caller's SP is saved near BP: a realigned stack
 * @STEP_REGS: what was interrupted has its registers saved above SP
 * @STEP_END: there is no caller
 */
enum step_kind {
	STEP_OTHER,
	STEP_SP,
	STEP_BP,
	STEP_SP_INDIRECT,
	STEP_BP_INDIRECT,
	STEP_REGS,
	STEP_END,
};

/* A tag is a generation + roles << STEP_ROLE_SHIFT + kind. */
enum {
	STEP_KIND_MASK		= 7,
	STEP_ROLE_SHIFT		= 3,
	STEP_LEAD		= UNWIND_LEAD << STEP_ROLE_SHIFT,
	STEP_GENERATION		= 1 << 5,
	STEP_SAME_BP		= S16_MIN,
};

/* All text lies above. */
#define TEXT_BASE	0xffffffff00000000UL

/**
 * struct unwind_step - the step from the frame of one return address
 * @ip: the return address - TEXT_BASE
 * @tag: generation, roles and kind
 * @key: both at once; 0: invalid
 * @frame: frame number of @ip
 * @ra: where the caller's return address is, in words above the base: SP: the
 *	place of @ip; BP: BP; SP_INDIRECT: the other SP. BP_INDIRECT: where the
 *	caller's SP is, above BP; REGS: where the registers are, above @ip
 * @bp: where the caller's BP is, in words from its return address, or
 *	STEP_SAME_BP; BP_INDIRECT: above BP
 */
struct unwind_step {
	union {
		struct {
			u32 ip;
			u32 tag;
		};
		u64 key;
	};
	u32 frame;
	s16 ra;
	s16 bp;
};

static_assert(sizeof(struct unwind_step) == 16);

static inline enum step_kind step_kind(const struct unwind_step *step)
{
	return step->tag & STEP_KIND_MASK;
}

static inline unsigned int step_role(const struct unwind_step *step)
{
	return (step->tag & (STEP_GENERATION - 1)) >> STEP_ROLE_SHIFT;
}

/**
 * unwind_reference() - the current stack, from stack_trace_save()
 * @trace: filled; empty if there is no usable frame
 * @ips: room for the addresses, as in struct bt_context
 * @caller: where unwind_capture() returns to
 * @call_site: as for unwind_capture()
 * @depth: likewise
 * @flags: likewise
 *
 * Context: Any; preemption off.
 */
void unwind_reference(struct bt_trace *trace, unsigned long *ips,
		      unsigned long caller, unsigned long call_site,
		      unsigned int depth, unsigned int flags);

/**
 * unwind_compare() - verify a stack from the cache
 * @ctx: ->trace is it; the reference takes its place if it differs
 * @caller: as for unwind_reference()
 * @call_site: likewise
 * @depth: likewise
 * @flags: likewise
 *
 * Context: Any but NMI; preemption off.
 */
void unwind_compare(struct bt_context *ctx, unsigned long caller,
		    unsigned long call_site, unsigned int depth,
		    unsigned int flags);

static __always_inline bool unwind_is_on(const struct unwind_stack *stack,
					 const unsigned long *p)
{
	unsigned long lo = (unsigned long)stack->lo;

	return (unsigned long)p - lo < (unsigned long)stack->hi - lo;
}

static __always_inline struct unwind_stack unwind_task_stack(void)
{
	const unsigned long *lo = task_stack_page(current);

	return (struct unwind_stack){
		.lo = lo,
		.hi = lo + THREAD_SIZE / sizeof(*lo),
	};
}

#ifdef CONFIG_UNWINDER_ORC

void unwind_step_init(void);

/* This CPU's, or none as long as nobody was seen on it. */
struct unwind_stack unwind_irq_stack(void);

/* The stack that @fp is on, or none. Context: any; preemption off. */
static __always_inline struct unwind_stack
unwind_stack_of(const unsigned long *fp)
{
	struct unwind_stack stack = unwind_task_stack();

	return likely(unwind_is_on(&stack, fp)) ? stack : unwind_irq_stack();
}

/* The step of a return address, if it is cached. Context: preemption off. */
const struct unwind_step *unwind_known_step(unsigned long ip);

/**
 * unwind_decode() - find out the step from the frame of a return address
 * @step: filled
 * @ip: the return address, above TEXT_BASE
 * @generation: read before what decides about @ip is read
 *
 * Context: Any but NMI; preemption off.
 */
void unwind_decode(struct unwind_step *step, unsigned long ip, u32 generation);

int unwind_cache_init(void);
void unwind_cache_exit(void);

/*
 * Make room, unless there is some already. Context: process, one at a time.
 * Return: 0 or -ENOMEM.
 */
int unwind_cache_prepare(void);
int unwind_memo_prepare(void);
void unwind_memo_exit(void);

/* What was made, in bytes. */
size_t unwind_cache_bytes(void);
size_t unwind_memo_bytes(void);

#else

static inline int unwind_cache_init(void)
{
	return 0;
}

static inline void unwind_cache_exit(void)
{
}

static inline int unwind_cache_prepare(void)
{
	return 0;
}

static inline int unwind_memo_prepare(void)
{
	return 0;
}

static inline size_t unwind_cache_bytes(void)
{
	return 0;
}

static inline size_t unwind_memo_bytes(void)
{
	return 0;
}

static inline void unwind_memo_exit(void)
{
}

#endif

#endif
