// SPDX-License-Identifier: GPL-2.0
/*
 * unwind_step.c - how an unwinding step is decoded
 *
 * With ORC, a step depends on the return address alone: which register the
 * caller's frame is found from, and at which offsets. The tables that tell are
 * not exported, but unwind_next_frame() is, and it works on a state of the
 * caller's. So let it take the step on a made-up stack whose words all differ:
 * those that come back as IP, SP and BP tell where they were taken from.
 *
 * Everything here is read-only once unwind_step_init() is done: no locks.
 */
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <asm/unwind.h>

#include "unwind.h"

enum {
	NR_POINTERS	= 64,
	NR_MARKERS	= 1024,
	SP_INDEX	= 8,			/* into the markers or pointers */
	BP_INDEX	= NR_MARKERS / 2,	/* into the markers */
	BP_POINTER	= NR_POINTERS / 2,	/* into the pointers */
	TARGET_INDEX	= NR_MARKERS / 4,	/* of the first pointer */
};

static_assert(TARGET_INDEX + 2 * NR_POINTERS <= BP_INDEX);

/*
 * The made-up stack. A marker is an address that can't be: its low bits tell
 * which one it is. Pointers point to every second marker, one to each:
 *
 *	pointers		markers
 *	+---+---+-     -+---+---+---+---+---+-     -+---+
 *	| . | . |  ...  | . | 0 | 1 | 2 | 3 |  ...  | n |
 *	+-|-+-|-+-     -+-|-+---+---+---+---+-     -+---+
 *	  |   |           |	      ^	      ^ ^ ^
 *	  +---|-----------|-----------+	      | | |
 *	      +-----------|-------------------+ | |
 */
static struct {
	unsigned long pointers[NR_POINTERS];
	unsigned long markers[NR_MARKERS];
} stack;

#define MARKER		0xdead400000000000UL
#define NO_BP		0xbeef400000000000UL

/* Owner of the made-up stack: no real task, so nothing is said about it. */
static struct task_struct nobody;

static const char * const trampoline_names[] = {
	"return_to_handler", "arch_rethook_trampoline",
	"__kretprobe_trampoline",
};

static unsigned long trampolines[ARRAY_SIZE(trampoline_names)];
static struct bt_range init_text;

/* ==== Which text can be trusted ==== */

static bool is_trampoline(unsigned long ip)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(trampolines); i++)
		if (ip == trampolines[i])
			return true;
	return false;
}

/* Length of the instruction FF /2, call through a register or memory. */
static unsigned int indirect_call_len(const u8 *insn)
{
	u8 mod = insn[1] >> 6, rm = insn[1] & 7;
	unsigned int len = 2;

	if (mod == 3)
		return len;
	if (rm == 4)
		len++;
	if (mod == 1)
		return len + 1;
	if (mod == 2 || rm == 5 || (rm == 4 && (insn[2] & 7) == 5))
		return len + 4;
	return len;
}

/* Do the bytes end with a call instruction? */
static bool ends_with_call(const u8 *bytes, unsigned int n)
{
	unsigned int len;

	if (bytes[n - 5] == 0xe8)
		return true;
	for (len = 2; len <= n; len++) {
		const u8 *insn = bytes + n - len;

		if (insn[0] == 0xff && (insn[1] & 0x38) == 0x10 &&
		    indirect_call_len(insn) == len)
			return true;
	}
	return false;
}

/*
 * A return address has a call before it; what tracers put in its place has
 * not. The kernel's init text is freed, perhaps unmapped, but is still at the
 * bottom of the idle task's stack; no tracer lives there.
 */
static bool follows_call(unsigned long ip)
{
	u8 bytes[8] = {};

	if (ip - init_text.start < init_text.size)
		return true;
	if (copy_from_kernel_nofault(bytes, (void *)(ip - 7), 7))
		return false;
	return ends_with_call(bytes, 7);
}

/* Text in the eyes of the reference, which ends the stack at anything else. */
static bool is_text(unsigned long ip)
{
	struct unwind_state state = {
		.stack_info.type = STACK_TYPE_TASK,
		.ip = ip,
	};

	return unwind_get_return_address(&state);
}

/* ==== Steps on the made-up stack ==== */

static bool try_step(struct unwind_state *state, unsigned long ip,
		     unsigned long *sp, unsigned long bp)
{
	*state = (struct unwind_state){
		.task = &nobody,
		.stack_info = {
			.type = STACK_TYPE_TASK,
			.begin = stack.pointers,
			.end = stack.markers + NR_MARKERS,
		},
		.ip = ip,
		.sp = (unsigned long)sp,
		.bp = bp,
	};
	return unwind_next_frame(state);
}

static bool is_marker(unsigned long word)
{
	return word >= MARKER && word < MARKER + NR_MARKERS;
}

static unsigned long *marker_address(unsigned long word)
{
	return &stack.markers[word - MARKER];
}

/* A plain call frame whose return address lies right below its caller's SP. */
static bool is_call_frame(const struct unwind_state *state)
{
	return !state->error && !state->regs && !state->signal &&
	       is_marker(state->ip) &&
	       state->sp == (unsigned long)(marker_address(state->ip) + 1);
}

/*
 * Note where return address and BP came from. BP must lie between @base and
 * the return address, as only that is checked to be on the stack.
 */
static enum step_kind note_frame(struct unwind_step *step,
				 const struct unwind_state *state,
				 const unsigned long *base, unsigned long old_bp,
				 enum step_kind kind)
{
	const unsigned long *ra = marker_address(state->ip), *bp;

	if (ra <= base)
		return STEP_OTHER;
	step->ra = ra - base;
	step->bp = STEP_SAME_BP;
	if (state->bp == old_bp)
		return kind;
	bp = marker_address(state->bp);
	if (!is_marker(state->bp) || bp < base || bp >= ra)
		return STEP_OTHER;
	step->bp = bp - ra;
	return kind;
}

static enum step_kind note_regs(struct unwind_step *step,
				const struct unwind_state *state)
{
	long ra = (unsigned long *)state->regs - &stack.markers[SP_INDEX - 1];

	if (!state->full_regs || ra < 0)
		return STEP_OTHER;
	step->ra = ra;
	step->bp = STEP_SAME_BP;
	return STEP_REGS;
}

static enum step_kind decode_sp(struct unwind_step *step, unsigned long ip)
{
	unsigned long *sp = &stack.markers[SP_INDEX];
	struct unwind_state state;

	if (!try_step(&state, ip, sp, NO_BP))
		return state.error ? STEP_OTHER : STEP_END;
	if (state.regs && !state.error)
		return note_regs(step, &state);
	if (!is_call_frame(&state))
		return STEP_OTHER;
	return note_frame(step, &state, sp - 1, NO_BP, STEP_SP);
}

static enum step_kind decode_bp(struct unwind_step *step, unsigned long ip)
{
	unsigned long *base = &stack.markers[BP_INDEX];
	struct unwind_state state;

	if (!try_step(&state, ip, &stack.markers[SP_INDEX], (unsigned long)base) ||
	    !is_call_frame(&state))
		return STEP_OTHER;
	return note_frame(step, &state, base, (unsigned long)base, STEP_BP);
}

static enum step_kind decode_sp_indirect(struct unwind_step *step,
					 unsigned long ip)
{
	unsigned long *base = (unsigned long *)stack.pointers[SP_INDEX];
	struct unwind_state state;

	if (!try_step(&state, ip, &stack.pointers[SP_INDEX], NO_BP) ||
	    !is_call_frame(&state))
		return STEP_OTHER;
	return note_frame(step, &state, base, NO_BP, STEP_SP_INDIRECT);
}

/* Index of the pointer with this value, from BP_POINTER; NR_POINTERS: none. */
static int find_pointer(unsigned long word)
{
	int i;

	for (i = 0; i < NR_POINTERS; i++)
		if (stack.pointers[i] == word)
			return i - BP_POINTER;
	return NR_POINTERS;
}

static enum step_kind decode_bp_indirect(struct unwind_step *step,
					 unsigned long ip)
{
	struct unwind_state state;

	if (!try_step(&state, ip, &stack.pointers[SP_INDEX],
		      (unsigned long)&stack.pointers[BP_POINTER]) ||
	    !is_call_frame(&state))
		return STEP_OTHER;
	step->ra = find_pointer(state.sp);
	step->bp = find_pointer(state.bp);
	if (step->ra == NR_POINTERS || step->bp == NR_POINTERS)
		return STEP_OTHER;
	return STEP_BP_INDIRECT;
}

static enum step_kind decode_kind(struct unwind_step *step, unsigned long ip)
{
	if (is_trampoline(ip) || !is_text(ip) || !follows_call(ip))
		return STEP_OTHER;
	return decode_sp(step, ip) ?: decode_bp(step, ip) ?:
	       decode_sp_indirect(step, ip) ?: decode_bp_indirect(step, ip);
}

void unwind_decode(struct unwind_step *step, unsigned long ip, u32 generation)
{
	enum step_kind kind = STEP_OTHER;
	unsigned int role = 0;

	*step = (struct unwind_step){
		.ip = ip - TEXT_BASE,
		.frame = image_known_frame(ip),
	};
	/* Text that may change without a word is never trusted. */
	if (step->frame) {
		role = unwind_role(ip);
		kind = decode_kind(step, ip);
	}
	step->tag = generation | role << STEP_ROLE_SHIFT | kind;
}
EXPORT_SYMBOL_FOR_TESTS(unwind_decode);

void unwind_step_init(void)
{
	struct bt_range symbol, end;
	unsigned int i;

	for (i = 0; i < NR_MARKERS; i++)
		stack.markers[i] = MARKER + i;
	for (i = 0; i < NR_POINTERS; i++)
		stack.pointers[i] =
			(unsigned long)&stack.markers[TARGET_INDEX + 2 * i];
	for (i = 0; i < ARRAY_SIZE(trampolines); i++)
		if (image_find_symbol(trampoline_names[i], &symbol))
			trampolines[i] = symbol.start;
	if (image_find_symbol("_sinittext", &init_text) &&
	    image_find_symbol("_einittext", &end))
		init_text.size = end.start - init_text.start;
}
