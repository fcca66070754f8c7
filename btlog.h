/* SPDX-License-Identifier: GPL-2.0 */
/*
 * btlog.h - the kernel API of btlog: stacks stored once, and logs of events
 *
 * A *stack* is kept once in a library shared by everybody and is named by a
 * 32-bit reference with a count (btref_t). A *log* (struct btlog) holds
 * records: an address, an operation, a size and the reference of a stack.
 *
 * The usual life of an event, in any context, with any lock held:
 *
 *	if (btlog_wants(log, size)) {
 *		ref = btref_get(_RET_IP_, BTLOG_DEPTH, BTREF_NOWAIT);
 *		btlog_record(log, &(struct btlog_event){
 *			.addr = addr, .size = size, .op = op }, ref);
 *	}
 *	...
 *	btlog_erase(log, addr);
 *
 * Every event that btlog_wants() accepts is to be finished by exactly one
 * btlog_record() or btlog_refuse(); then "seen = recorded + refused" holds.
 */
#ifndef BTLOG_H
#define BTLOG_H

#include <linux/bits.h>
#include <linux/types.h>

/*
 * A reference to a stack:
 *
 *	31         30                    6 5        0
 *	+-----------+---------------------+----------+
 *	| permanent | granule             | op       |
 *	+-----------+---------------------+----------+
 *
 * The operation code belongs to whoever stores the reference; the library
 * ignores it. Granules below BTREF_FIRST_GRANULE name no stack but the reason
 * why there is none (btref_reason()), so that an event without a stack is
 * recorded, counted and reported as any other.
 */
typedef u32 btref_t;

enum {
	BTREF_OP_BITS		= 6,
	BTREF_OP_MASK		= (1 << BTREF_OP_BITS) - 1,
	BTREF_FIRST_GRANULE	= 1024,
	BTREF_GRANULE_BITS	= 25,
	BTREF_MAX_FRAMES	= 60,	/* of one stack */
};

/* Marks a reference that is never counted; always set in reason references. */
#define BTREF_PERMANENT_BIT	((u32)BIT(31))

/**
 * enum btref_flags - how to take a reference
 * @BTREF_NOWAIT: never sleep, whatever the context; without it the caller is
 *	in process context and the library may allocate memory to make room
 * @BTREF_PERMANENT: keep the stack for ever; the reference needs no put
 * @BTREF_CUT_IRQ: a stack taken in an interrupt ends at the interrupt's entry
 * @BTREF_TRUNCATED: (btref_intern() only) the stack goes on beyond the frames
 */
enum btref_flags {
	BTREF_NOWAIT	= 1 << 0,
	BTREF_PERMANENT	= 1 << 1,
	BTREF_CUT_IRQ	= 1 << 2,
	BTREF_TRUNCATED	= 1 << 3,
};

/**
 * enum btlog_reason - why something was not recorded, or not kept
 * @BTR_NO_MEMORY: no room prepared in the library yet; the worker is filling up
 * @BTR_LIBRARY_FULL: the library has reached lib_max_mb
 * @BTR_NMI_BUSY: an NMI met a lock that its CPU or another one holds
 * @BTR_NO_STACK: the unwinder gave no usable frame
 * @BTR_READ_ONLY: an invariant broke earlier and the library takes nothing new
 * @BTR_RECURSION: an event inside btlog's own handling in the same context
 * @BTR_DISABLED: the log was switched off while the event was in flight
 * @BTR_SAMPLED_OUT: left out by sampling, as asked
 * @BTR_LOG_BUSY: another CPU was stalled in just the slot that was needed
 * @BTR_NR: number of reasons
 *
 * The first five say why a recorded event has no stack, all but the first four
 * why an event was not recorded.
 */
enum btlog_reason {
	BTR_NO_MEMORY,
	BTR_LIBRARY_FULL,
	BTR_NO_STACK,
	BTR_READ_ONLY,
	BTR_NMI_BUSY,
	BTR_RECURSION,
	BTR_DISABLED,
	BTR_SAMPLED_OUT,
	BTR_LOG_BUSY,
	BTR_NR
};

/**
 * btlog_reason_name() - the name under which reports list a reason
 * @reason: the reason
 *
 * Context: Any.
 * Return: a static string in snake_case.
 */
const char *btlog_reason_name(enum btlog_reason reason);

/**
 * btref_reason() - a reference that stands for the lack of a stack
 * @reason: why there is none
 *
 * Context: Any.
 * Return: a permanent reference; retain and put ignore it.
 */
static inline btref_t btref_reason(enum btlog_reason reason)
{
	return BTREF_PERMANENT_BIT | (reason + 1) << BTREF_OP_BITS;
}

/**
 * btref_granule() - the granule number of a reference
 * @ref: any reference
 *
 * Context: Any.
 * Return: the number, whatever operation and permanence are noted beside it.
 */
static inline u32 btref_granule(btref_t ref)
{
	return (ref & ~BTREF_PERMANENT_BIT) >> BTREF_OP_BITS;
}

/**
 * btref_is_stack() - does the reference name a stack?
 * @ref: any reference
 *
 * Context: Any.
 * Return: false for 0 and for reason references.
 */
static inline bool btref_is_stack(btref_t ref)
{
	return btref_granule(ref) >= BTREF_FIRST_GRANULE;
}

/**
 * btref_get() - take a reference to the current stack
 * @call_site: return address at which the stack is to start, usually _RET_IP_
 *	of the traced function; 0 starts at the caller of btref_get()
 * @depth: frames to keep at most, 1 to BTREF_MAX_FRAMES
 * @flags: of enum btref_flags
 *
 * Stores the stack if it is new. A stack deeper than @depth is marked as cut.
 *
 * Context: Any, NMI included, with BTREF_NOWAIT; else process, may sleep.
 * Return: a reference that the caller owns and gives back by btref_put(), or
 * by a function that consumes it. If the stack could not be kept, a reason
 * reference, which may be used in the same way. Never 0.
 */
btref_t __must_check btref_get(unsigned long call_site, unsigned int depth,
			       unsigned int flags);

/**
 * btref_intern() - take a reference to a stack that is given as frames
 * @frames: frame numbers (see image_frame()), innermost first
 * @n: how many, 1 to BTREF_MAX_FRAMES
 * @flags: of enum btref_flags
 *
 * Two stacks are the same if all their frames and BTREF_TRUNCATED are.
 *
 * Context: Any, NMI included, with BTREF_NOWAIT; else process, may sleep.
 * Return: as btref_get(); BTR_NO_STACK for a bad @n.
 */
btref_t __must_check btref_intern(const u32 *frames, unsigned int n,
				  unsigned int flags);

/**
 * btref_retain() - take one more reference to a stack
 * @ref: a reference that the caller owns
 *
 * Context: Any, NMI included.
 * Return: @ref, now owned twice; a reason reference if @ref was dead or
 * invalid, which turns the library read-only.
 */
btref_t btref_retain(btref_t ref);

/**
 * btref_put() - give a reference back
 * @ref: a reference that the caller owns, a reason reference, or 0
 *
 * The stack stays findable until its memory is wanted. Giving back more than
 * was taken turns the library read-only and is reported once.
 *
 * Context: Any, NMI included.
 */
void btref_put(btref_t ref);

/**
 * btref_decode() - read the frames of a stack
 * @ref: a reference that the caller owns
 * @frames: room for BTREF_MAX_FRAMES frame numbers
 * @truncated: set if the stack was cut at its depth; may be NULL
 *
 * Context: Any, NMI included.
 * Return: number of frames, 0 for reason references.
 */
unsigned int btref_decode(btref_t ref, u32 *frames, bool *truncated);

/**
 * enum btlog_type - what a log keeps
 * @BTLOG_HASH: outstanding elements by address; erasing removes
 * @BTLOG_LOG: the last events, in order
 */
enum btlog_type {
	BTLOG_HASH,
	BTLOG_LOG,
};

/**
 * enum btlog_op - operations of the sources that btlog brings along
 * @BTLOG_OP_ALLOC: something was allocated or taken
 * @BTLOG_OP_FREE: it was freed or given back
 *
 * Others may use any value up to BTREF_OP_MASK.
 */
enum btlog_op {
	BTLOG_OP_ALLOC,
	BTLOG_OP_FREE,
};

/**
 * struct btlog_event - what happened
 * @addr: the element; kept inverted, so that leak scanners don't see it
 * @size: bytes, cut at 4 GiB - 1
 * @op: see enum btlog_op
 * @tag: number of the kind of element in its source (slab: the cache), 0: none
 */
struct btlog_event {
	u64 addr;
	size_t size;
	u8 op;
	u16 tag;
};

struct btlog;

/**
 * btlog_create() - make a new log, disabled, with the default settings
 * @name: up to BTLOG_NAME_LEN - 1 letters, digits, '-', '_' and '.'
 *
 * Context: Process, may sleep.
 * Return: the log, which the caller owns a use of and gives back by
 * btlog_release(); ERR_PTR(-EINVAL, -EEXIST, -ENOMEM, -ENOSPC).
 */
struct btlog *btlog_create(const char *name);

/**
 * btlog_remove() - end a log
 * @log: the log
 *
 * Disables it and takes it out of the list; its memory goes with the last use.
 * Events in flight and open files are allowed.
 *
 * Context: Process, may sleep.
 */
void btlog_remove(struct btlog *log);

/**
 * btlog_find() - look a log up by name
 * @name: its name
 *
 * Context: Process, may sleep.
 * Return: the log with one more use, or NULL.
 */
struct btlog *btlog_find(const char *name);

/**
 * btlog_release() - give a use of a log back
 * @log: the log
 *
 * Context: Process, may sleep.
 */
void btlog_release(struct btlog *log);

/**
 * btlog_set() - change a setting of a disabled log
 * @log: the log
 * @key: "type", "records", "depth", "sample", "cut" or "source"
 * @value: as one would write it into the file of that name
 *
 * Context: Process, may sleep.
 * Return: 0; -EBUSY while the log is enabled; -ENOENT, -EINVAL, -ERANGE for a
 * key or value that is not understood (with a line in the kernel log). Nothing
 * is changed on error.
 */
int btlog_set(struct btlog *log, const char *key, const char *value);

/**
 * btlog_enable() - start to record
 * @log: the log
 *
 * Context: Process, may sleep.
 * Return: 0, also if it is on already; -ENOMEM, or what its source says.
 */
int btlog_enable(struct btlog *log);

/**
 * btlog_disable() - stop to record and give all memory back
 * @log: the log
 *
 * Events in flight come out as refused (disabled).
 *
 * Context: Process, may sleep.
 */
void btlog_disable(struct btlog *log);

/**
 * btlog_clear() - forget all records
 * @log: the log
 *
 * Recording goes on meanwhile. What is forgotten counts as cleared.
 *
 * Context: Process, may sleep.
 */
void btlog_clear(struct btlog *log);

/**
 * btlog_wants() - count an event and say if it is to be recorded
 * @log: the log
 * @size: bytes of the element
 *
 * Context: Any, NMI included.
 * Return: true if the caller is to go on to btlog_record() or btlog_refuse().
 */
bool btlog_wants(struct btlog *log, size_t size);

/**
 * btlog_refuse() - finish an event that btlog_wants() accepted, unrecorded
 * @log: the log
 * @reason: under what to count it
 *
 * Context: Any, NMI included.
 */
void btlog_refuse(struct btlog *log, enum btlog_reason reason);

/**
 * btlog_record() - record an event that btlog_wants() accepted
 * @log: the log
 * @ev: the event
 * @ref: its stack or a reason reference; consumed on every path
 *
 * HASH: a record of the same address is replaced, and if the log is full the
 * oldest record makes room. LOG: the event is appended.
 *
 * Context: Any, NMI included.
 */
void btlog_record(struct btlog *log, const struct btlog_event *ev, btref_t ref);

/**
 * btlog_erase() - forget the record of an address in a HASH log
 * @log: the log
 * @addr: the address
 *
 * Without such a record the call counts as an untracked free. Does nothing to
 * a LOG log.
 *
 * Context: Any, NMI included.
 */
void btlog_erase(struct btlog *log, u64 addr);

#endif
