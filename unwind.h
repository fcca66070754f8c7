/* SPDX-License-Identifier: GPL-2.0 */
/*
 * unwind.h - what the parts of the capture share
 *
 *	unwind.c	the reference: stack_trace_save(); rules of start and end
 *	unwind_cache.c	the frame cache: the same from steps decoded once
 *	unwind_step.c	how an unwinding step is decoded
 */
#ifndef BTLOG_UNWIND_H
#define BTLOG_UNWIND_H

#include "internal.h"

enum {
	/* Among how many frames a stack's start is looked for. */
	UNWIND_LEAD_MAX = 10,
};

/**
 * struct unwind_request - what unwind_capture() was asked for
 * @ip: where it was called: the first frame of the stack
 * @call_site: see unwind_capture()
 * @depth: likewise
 * @cut_irq: end the stack at the entry of an interrupt
 */
struct unwind_request {
	unsigned long ip;
	unsigned long call_site;
	unsigned int depth;
	bool cut_irq;
};

/**
 * enum unwind_role - what a frame means for start and end of a stack
 * @UNWIND_LEAD: it is btlog's, or lies between it and what it observes
 * @UNWIND_CUT: it is the entry of an interrupt or softirq
 */
enum unwind_role {
	UNWIND_LEAD	= 1 << 0,
	UNWIND_CUT	= 1 << 1,
};

/* The roles of a return address. Context: any; preemption off. */
unsigned int unwind_role(unsigned long ip);

/**
 * enum unwind_counter - what is counted, per CPU
 * @UWC_REFERENCE: captures by the reference, as asked by capture=
 * @UWC_CACHED: captures by the frame cache
 * @UWC_NMI: captures that fell back to the reference: in an NMI
 * @UWC_NO_CACHE: likewise: this CPU has none
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
	UWC_NMI,
	UWC_NO_CACHE,
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

/* Counts the changes of what is loaded; never 0. */
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

enum {
	STEP_KIND_BITS		= 3,
	STEP_ROLE_BITS		= 2,
	STEP_GENERATION_SHIFT	= STEP_KIND_BITS + STEP_ROLE_BITS,
	STEP_SAME_BP		= S16_MIN,
};

/**
 * struct unwind_step - the step from the frame of one return address
 * @ip: the return address, which sign-extends to 64 bits
 * @tag: see step_tag(); 0: invalid
 * @frame: frame number of @ip
 * @ra: where the caller's return address is, in words above the base;
 *	BP_INDIRECT: where the caller's SP is, REGS: where the registers are
 * @bp: where the caller's BP is, or STEP_SAME_BP
 */
struct unwind_step {
	s32 ip;
	u32 tag;
	u32 frame;
	s16 ra;
	s16 bp;
};

static_assert(sizeof(struct unwind_step) == 16);

static inline u32 step_tag(u32 generation, enum step_kind kind,
			   unsigned int role)
{
	return generation << STEP_GENERATION_SHIFT | role << STEP_KIND_BITS |
	       kind;
}

static inline enum step_kind step_kind(u32 tag)
{
	return tag & ((1 << STEP_KIND_BITS) - 1);
}

static inline unsigned int step_role(u32 tag)
{
	return tag >> STEP_KIND_BITS & ((1 << STEP_ROLE_BITS) - 1);
}

#ifdef CONFIG_UNWINDER_ORC

void unwind_step_init(void);

/**
 * unwind_decode() - find out the step from the frame of a return address
 * @step: filled
 * @ip: the return address; sign-extends from 32 bits
 * @generation: read before what decides about @ip is read
 *
 * Context: Any but NMI; preemption off.
 */
void unwind_decode(struct unwind_step *step, unsigned long ip, u32 generation);

int unwind_cache_init(void);
void unwind_cache_exit(void);

/**
 * unwind_cache_capture() - the current stack, from the frame cache
 * @req: what is wanted
 * @fp: frame pointer of unwind_capture()
 * @trace: filled on success
 *
 * Context: Any; preemption off.
 * Return: UWC_CACHED, or why the reference has to be asked.
 */
enum unwind_counter unwind_cache_capture(const struct unwind_request *req,
					 const unsigned long *fp,
					 struct bt_trace *trace);

#else

static inline int unwind_cache_init(void)
{
	return 0;
}

static inline void unwind_cache_exit(void)
{
}

static inline enum unwind_counter
unwind_cache_capture(const struct unwind_request *req, const unsigned long *fp,
		     struct bt_trace *trace)
{
	return UWC_NO_CACHE;
}

#endif

#endif
