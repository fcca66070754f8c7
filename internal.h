/* SPDX-License-Identifier: GPL-2.0 */
/*
 * internal.h - what btlog's own files share
 *
 * Letter codes at the members of the structures say what guards them:
 *
 *	I  set before the object is published, read-only from then on
 *	A  atomic or per-CPU: changed by single instructions, no lock
 *	L  the library's lock (btlib.c)
 *	S  the lock of its shard (log.c)
 *	M  the log's mutex
 *	R  published by RCU; changed under M or the list's mutex
 *	W  touched only by the library's worker
 *
 * Lock order, outermost first; a raw lock is a leaf and is taken with
 * interrupts off, in NMI only by trylock:
 *
 *	btlog_list_lock (mutex)			list of logs, creation and removal
 *	  log->lock (mutex)			settings, enable and disable
 *	    the source's mutex			attached logs, registration of hooks
 *	      image_lock (mutex)		table of images
 *	        shard->lock (raw)		records of a HASH log
 *	        lib.lock (raw)			chains, free lists
 *	        the small raw locks of image.c and slab.c
 *
 * No raw lock is taken while another one is held: a reference that a record
 * gives up under its shard's lock is put after unlocking.
 *
 * Lifetime: whoever follows an R pointer has preemption off or holds
 * rcu_read_lock(); who takes it down clears the pointer, waits for
 * synchronize_rcu() in process context and only then frees.
 */
#ifndef BTLOG_INTERNAL_H
#define BTLOG_INTERNAL_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/types.h>

#include "btlog.h"
#include "compat.h"

/*
 * What KUnit suites and the guests' test modules reach beyond btlog.h. They say
 * MODULE_IMPORT_NS(BTLOG_TEST); nobody else does.
 */
#define EXPORT_SYMBOL_FOR_TESTS(symbol) EXPORT_SYMBOL_NS_GPL(symbol, BTLOG_TEST)

#undef pr_fmt
#define pr_fmt(fmt) "btlog: " fmt

/* ==== Context: one scratch area for each level that can nest on a CPU ==== */

/**
 * struct bt_trace - a captured stack
 * @nr: frames in use
 * @truncated: there were more than the wanted depth
 * @frames: frame numbers, innermost first
 */
struct bt_trace {
	unsigned int nr;
	bool truncated;
	u32 frames[BTREF_MAX_FRAMES];
};

/**
 * struct bt_context - scratch space of one nesting level of one CPU
 * @busy: an event of this level is being handled
 * @trace: its stack
 * @ips: raw addresses of the reference unwinder
 */
struct bt_context {
	bool busy;
	struct bt_trace trace;
	unsigned long ips[BTREF_MAX_FRAMES + 16];
};

/**
 * bt_context_enter() - claim the scratch space of the current nesting level
 *
 * Task, softirq, hardirq and NMI have one each on every CPU, so an event that
 * interrupts the handling of another one is handled as well.
 *
 * Context: Any; preemption is off from here to bt_context_leave().
 * Return: the space, or NULL if this level is busy: a recursion. Preemption
 * is then as it was.
 */
struct bt_context *bt_context_enter(void);
void bt_context_leave(struct bt_context *ctx);

/* ==== image.c: address <-> frame ==== */

int image_init(void);
void image_exit(void);

/**
 * image_frame() - the frame number of a text address
 * @addr: a return address
 *
 * An address in no known image gets an image of its own (one page) from a
 * preallocated reserve.
 *
 * Context: Any, NMI included; preemption off.
 * Return: the frame, never 0; if no image could be had (counted), the frame
 * that stands for all such text.
 */
u32 image_frame(unsigned long addr);

/* As image_frame(), but 0 if the address is not in the kernel or a module. */
u32 image_known_frame(unsigned long addr);

/* Some addresses. */
struct bt_range {
	unsigned long start;
	unsigned long size;
};

/**
 * image_find_symbol() - look up a symbol that is not exported
 * @name: of a function or variable of the kernel
 * @symbol: filled on success
 *
 * Context: Process, may sleep.
 * Return: true if there is one.
 */
bool image_find_symbol(const char *name, struct bt_range *symbol);

/**
 * image_address() - where the text of a frame lies now
 * @frame: a frame number
 *
 * Context: Any but NMI.
 * Return: the address, 0 if the image is unloaded or the frame is invalid.
 */
unsigned long image_address(u32 frame);

/* "name+0x1/0x2 [mod]" is cut at this, with its NUL. */
#define IMAGE_SYMBOL_LEN 256

/**
 * image_symbol() - print the name of a frame
 * @buf: room for IMAGE_SYMBOL_LEN bytes
 * @frame: a frame number
 *
 * "sym+0x1c/0x40 [mod]"; "sym+0x1c/0x40 [mod (unloaded)]" after the module is
 * gone; "[mod build-id +0xoffset]" if the name could not be saved, or
 * "[mod:init build-id +0xoffset]" in its init text. Other text (BPF,
 * trampolines) prints as the kernel names it now, "prog+0x1c/0x40 [bpf]", else
 * as "[text +0xaddress]"; "[unknown text]" if it had no image.
 *
 * Context: Any but NMI; takes no lock that could be waited for.
 * Return: length, without the NUL.
 */
int image_symbol(char *buf, u32 frame);

/* Is the frame in btlog's own text? Context: any. */
bool image_is_own(u32 frame);

/* Does the frame belong to a module of this name, loaded or not? */
bool image_in_module(u32 frame, const char *module);

struct seq_file;
void image_show(struct seq_file *m);

/* ==== unwind.c: capture ==== */

int unwind_setup(void);
void unwind_cleanup(void);

/* Forget all decoded unwinding steps; called when text comes or goes. */
void unwind_invalidate(void);

/**
 * unwind_capture() - the current stack as frames
 * @ctx: the caller's context; ->trace is filled
 * @call_site: return address at which the stack starts; 0: at the caller of
 *	the outermost btlog function. Frames of btlog, __traceiter_* and
 *	trampolines above it are left out
 * @depth: frames to keep at most; if there are more, truncated is set
 * @flags: BTREF_CUT_IRQ or 0
 *
 * Context: Any, NMI included; preemption off.
 * Return: true; false if there is no usable frame.
 */
bool unwind_capture(struct bt_context *ctx, unsigned long call_site,
		    unsigned int depth, unsigned int flags);

/**
 * struct bt_frame - a frame of the current stack
 * @ip: return address into it
 * @at: where that is or was; the frame's SP is behind it
 * @bp: where its BP is saved
 */
struct bt_frame {
	unsigned long ip;
	const unsigned long *at;
	const unsigned long *bp;
};

/**
 * unwind_capture_from() - the current stack from a frame on, as frame numbers
 * @ctx: as for unwind_capture()
 * @from: the innermost frame to be given out
 * @depth: likewise
 * @flags: likewise
 *
 * For hooks that are told the registers of what they observe, and between which
 * and that there are frames that only the reference understands.
 *
 * Context: Any, NMI included; preemption off.
 * Return: true; false if there is no usable frame.
 */
bool unwind_capture_from(struct bt_context *ctx, const struct bt_frame *from,
			 unsigned int depth, unsigned int flags);

/*
 * What is asked of btref_get(), in one word: the call site, whose upper bits are
 * all alike, depth and flags.
 */
static inline u64 unwind_key(unsigned long call_site, unsigned int depth,
			     unsigned int flags)
{
	return (u64)call_site << 16 | depth << 8 | flags;
}

static inline unsigned long unwind_key_call_site(u64 key)
{
	return (s64)key >> 16;
}

static inline unsigned int unwind_key_depth(u64 key)
{
	return (u8)(key >> 8);
}

static inline unsigned int unwind_key_flags(u64 key)
{
	return (u8)key;
}

#ifdef CONFIG_UNWINDER_ORC

/**
 * unwind_recall() - know a stack again that was taken before
 * @fp: frame of the function whose caller is the innermost frame, or the first
 *	before the call site
 * @key: of unwind_key()
 *
 * Context: Any; preemption is off from here until the result isn't needed or is
 * counted.
 * Return: the stack's reference, which isn't counted and may be dead; 0: it
 * has to be captured.
 */
btref_t unwind_recall(const unsigned long *fp, u64 key);

/* Read before a stack is captured that is to be remembered. */
u32 unwind_memo_generation(void);

/**
 * unwind_remember() - note a stack for unwind_recall(), if that is possible
 * @fp: as there
 * @key: as there
 * @generation: of unwind_memo_generation(), before the capture
 * @ref: what was captured
 *
 * Context: Any; preemption is off since before the capture.
 */
void unwind_remember(const unsigned long *fp, u64 key, u32 generation,
		     btref_t ref);

/**
 * unwind_forget() - references are dead, or text came or went
 *
 * Context: Any, before the grace period after which they are used again.
 */
void unwind_forget(void);

#else

static inline btref_t unwind_recall(const unsigned long *fp, u64 key)
{
	return 0;
}

static inline u32 unwind_memo_generation(void)
{
	return 0;
}

static inline void unwind_remember(const unsigned long *fp, u64 key,
				   u32 generation, btref_t ref)
{
}

static inline void unwind_forget(void)
{
}

#endif

/**
 * unwind_prepare() - make room for the frame cache and for remembered stacks
 *
 * Until then stacks are taken by the reference.
 *
 * Context: Process, may sleep; one at a time.
 * Return: 0 or -ENOMEM.
 */
int unwind_prepare(void);

void unwind_show(struct seq_file *m);

/* ==== btlib.c: the library ==== */

/**
 * btref_get_from() - btref_get() of the current stack from a frame on
 * @from: the innermost frame
 * @depth: as for btref_get()
 * @flags: likewise, with BTREF_NOWAIT
 *
 * Context: Any, NMI included; preemption off.
 * Return: as btref_get()
 */
btref_t btref_get_from(const struct bt_frame *from, unsigned int depth,
		       unsigned int flags);

int btlib_init(void);
void btlib_exit(void);

/**
 * btlib_prepare() - fill up the free records of the library
 *
 * Context: Process, may sleep.
 * Return: 0, also if the library has reached its limit; -ENOMEM.
 */
int btlib_prepare(void);

/**
 * btlib_use() - somebody is going to take stacks
 *
 * From here to btlib_unuse() memory is kept ready for new stacks.
 *
 * Context: Process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int btlib_use(void);
void btlib_unuse(void);

/**
 * btref_tryget() - take a reference to a stack that may be dying
 * @ref: a reference seen under RCU, not owned
 *
 * Context: Any; RCU read side held since @ref was read.
 * Return: true if the reference is now owned.
 */
bool btref_tryget(btref_t ref);

/* Stacks with a frame of btlog itself: own allocations. Context: any. */
bool btref_is_own(btref_t ref);

typedef void (*btlib_frame_fn)(u32 frame, void *arg);

/**
 * btlib_visit_frames() - visit the frames of all stacks
 * @lo: first frame number of interest
 * @hi: last one + 1
 * @fn: called for each frame in the range; the same frame can come often
 * @arg: passed on
 *
 * Sees every stack that is present during the whole call.
 *
 * Context: Process, may sleep; @fn may not (RCU).
 */
void btlib_visit_frames(u32 lo, u32 hi, btlib_frame_fn fn, void *arg);

/**
 * btlib_break() - an invariant broke: the library becomes read-only
 * @what: static text that says which
 *
 * Context: Any, NMI included. The line is printed later, from the worker.
 */
void btlib_break(const char *what);

/* Has an invariant broken? */
bool btlib_is_broken(void);

/* Wake the worker from any context, NMI included. */
void btlib_kick(void);

/* The record of a stack for tests: next, hash, count, length and flags, frames. */
u32 *btlib_record(btref_t ref);

/**
 * btlib_stacks() - how many stacks the library holds
 *
 * Context: Any.
 * Return: the number, those with a count of 0 included.
 */
u32 btlib_stacks(void);

/**
 * btlib_validate() - check the table's invariants
 * @quiet: nobody else uses the library, so that totals can be compared as well
 *
 * Each bucket's chain is sorted, holds only hashes of the bucket and no dead
 * record; the lock is held for one bucket at a time.
 *
 * Context: Process, may sleep.
 * Return: NULL, or what is wrong.
 */
const char *btlib_validate(bool quiet);

/* The module parameter lib_max_stacks. */
extern unsigned int btlib_max_stacks;

#if IS_ENABLED(CONFIG_KUNIT)
/* Bits of the hash that are used; tests clear some to provoke collisions. */
extern u32 btlib_hash_mask;
#endif

void btlib_show(struct seq_file *m);

/* ==== log.c: the logs ==== */

enum {
	BTLOG_NAME_LEN		= 32,
	BTLOG_SOURCE_LEN	= 256,
	BTLOG_MIN_RECORDS	= 16,
	BTLOG_MAX_RECORDS	= 1 << 24,
	BTLOG_DEPTH		= 16,	/* default */
	BTLOG_TIME_HZ		= 100,	/* unit of a record's time: 10 ms */
};

/* What a log counts beside the refusals; u64 per CPU each. */
enum btlog_counter {
	BTC_SEEN,		/* events that came to btlog_wants() */
	BTC_RECORDED,		/* of them, now or once in the log */
	BTC_RECORDED_BYTES,
	BTC_ERASED,		/* recorded, then freed */
	BTC_REPLACED,		/* recorded, then the same address again */
	BTC_OVERWRITTEN,	/* recorded, then made room for another one */
	BTC_CLEARED,		/* recorded, then forgotten by clear or disable */
	BTC_UNTRACKED_FREE,	/* frees whose allocation is not in the log */
	BTC_ERASE_BUSY,		/* frees lost to a lock in NMI: stale records */
	BTC_REFUSED,		/* + enum btlog_reason */
	BTC_NR = BTC_REFUSED + BTR_NR
};

/* Names of the counters before BTC_REFUSED, for files; NULL-terminated. */
extern const char * const btlog_counter_names[];

/**
 * struct btlog_cpu - a log's counters and sampling state on one CPU
 * @counts: A: by enum btlog_counter
 * @countdown: A: events or bytes to go until the next sample
 * @random: state of the generator that draws the next distance
 */
struct btlog_cpu {
	u64 counts[BTC_NR];
	long countdown;
	u64 random;
};

/**
 * struct btlog_settings - what can be set while a log is disabled
 * @type: HASH or LOG
 * @records: how many records the log holds at least
 * @depth: frames per stack
 * @sample: 1 in that many events, or one sample per that many bytes
 * @sample_bytes: which of the two
 * @cut_irq: stacks taken in interrupts end at the interrupt's entry
 * @source: "slab:kmalloc-*", or empty: only records made through btlog.h
 */
struct btlog_settings {
	enum btlog_type type;
	u32 records;
	u32 depth;
	u32 sample;
	bool sample_bytes;
	bool cut_irq;
	char source[BTLOG_SOURCE_LEN];
};

enum btlog_sort { BTLOG_SORT_BYTES, BTLOG_SORT_COUNT, BTLOG_SORT_AGE };

/**
 * struct btlog_filter - what a log's report shows; may change at any time
 * @min_age: seconds
 * @min_size: bytes of one element
 * @pid: only this process; 0: all
 * @top_n: number of stacks shown; 0: all
 * @sort: order, largest first
 * @cache: shell pattern for the tag's name; empty: all
 * @module: only stacks with a frame of this module; empty: all
 */
struct btlog_filter {
	u32 min_age;
	u32 min_size;
	u32 pid;
	u32 top_n;
	enum btlog_sort sort;
	char cache[64];
	char module[64];
};

struct btlog_index;
struct btlog_source;
struct btlog_store;

/**
 * struct btlog - a log
 * @name: I
 * @kref: uses: the list's, open files', finders'
 * @list: btlog_list_lock: entry in the list of logs
 * @lock: M: the mutex itself
 * @removed: M: no longer in the list; nothing can be enabled
 * @set: M, changed while disabled only; the hot path reads it while enabled
 * @filter: M
 * @store: R: the records; NULL while disabled
 * @index: R: its index if it is a HASH log's; else NULL
 * @source: M: what feeds it while enabled
 * @source_private: R, source: as the source likes
 * @cpu: A: counters and sampling state; since creation
 * @enabled_at: M: ktime_get_boottime_seconds() of the last enable
 * @files: M: debugfs: the log's directory
 */
struct btlog {
	char name[BTLOG_NAME_LEN];
	struct kref kref;
	struct list_head list;
	struct mutex lock;	/* of the settings and of enabling */
	bool removed;
	struct btlog_settings set;
	struct btlog_filter filter;
	struct btlog_store __rcu *store;
	struct btlog_index __rcu *index;
	const struct btlog_source *source;
	void *source_private;
	struct btlog_cpu __percpu *cpu;
	time64_t enabled_at;
	struct dentry *files;
};

int btlog_init(void);
void btlog_exit(void);

/* One more use of a log by somebody who has one; ends by btlog_release(). */
static inline struct btlog *btlog_use(struct btlog *log)
{
	kref_get(&log->kref);
	return log;
}

/**
 * struct btlog_record_copy - a record as readers see it
 * @addr: the element's address
 * @ref: stack and, in the low bits, operation; see btref_is_stack()
 * @size: bytes
 * @age: in units of 1 / BTLOG_TIME_HZ seconds
 * @pid: of the process that was current
 * @cpu: on which; 1023 and above are not told apart
 * @tag: the source's number for the kind of element
 * @seq: LOG: position in the order of events; HASH: 0
 */
struct btlog_record_copy {
	u64 addr;
	btref_t ref;
	u32 size;
	u32 age;
	u32 pid;
	u16 cpu;
	u16 tag;
	u32 seq;
};

typedef void (*btlog_record_fn)(const struct btlog_record_copy *rec, void *arg);

/**
 * btlog_visit_records() - visit the records of a log
 * @log: the log
 * @fn: called for each record; the record's stack can't go away meanwhile,
 *	and btref_tryget() tells if it may be kept beyond the call
 * @arg: passed on
 *
 * Recording goes on meanwhile: a shard's lock is held for a few records at a
 * time. What comes or goes during the visit may or may not be seen.
 *
 * Context: Process, may sleep; @fn may not (RCU read side).
 * Return: number of records visited; 0 for a disabled log.
 */
u64 btlog_visit_records(struct btlog *log, btlog_record_fn fn, void *arg);

/**
 * btlog_find_address() - the records of one address, newest first
 * @log: the log
 * @addr: the address
 * @recs: room for @n copies; the caller gets a reference with each record
 *	that names a stack and puts it
 * @n: how many to return at most
 *
 * Context: Process, may sleep.
 * Return: how many were found.
 */
unsigned int btlog_find_address(struct btlog *log, u64 addr,
				struct btlog_record_copy *recs, unsigned int n);

/* Sum of a counter over all CPUs. */
u64 btlog_count(struct btlog *log, enum btlog_counter counter);

/* Count an event that is refused before btlog_wants() could be asked. */
void btlog_refuse_unseen(struct btlog *log, enum btlog_reason reason);

/* Records in a log now: what was recorded and not erased, replaced, ... */
u64 btlog_outstanding(struct btlog *log);

/* Memory held by an enabled log, in bytes; 0 while disabled. */
size_t btlog_memory(struct btlog *log);

/**
 * btlog_weight() - how many events a sampled record stands for
 * @log: the log
 * @size: bytes of the record
 *
 * Return: the weight in 1/65536; 65536 without sampling.
 */
u64 btlog_weight(struct btlog *log, u32 size);

/**
 * btlog_get_setting() - print a setting as btlog_set() would read it
 * @log: the log; its lock is held
 * @key: as for btlog_set()
 * @buf: room for BTLOG_SOURCE_LEN bytes
 *
 * Return: length, or -ENOENT.
 */
int btlog_get_setting(struct btlog *log, const char *key, char *buf);

/* The keys of btlog_set(), NULL-terminated. */
extern const char * const btlog_setting_names[];

/* Walk the list of logs: NULL gives the first; puts prev, gets the next one. */
struct btlog *btlog_next(struct btlog *prev);

/* Parse and carry out the module parameter logs=. */
int btlog_apply(const char *logs);

/* ==== report.c and debugfs.c ==== */

struct report;

/**
 * report_create() - read a log and sum its records up by stack
 * @log: the log, which the report keeps in use until report_free()
 *
 * Context: Process, may sleep.
 * Return: the report, or ERR_PTR(-ENOMEM).
 */
struct report *report_create(struct btlog *log);
void report_free(struct report *r);

#if IS_ENABLED(CONFIG_KUNIT)
/* Tables of reports larger than this can't be allocated. */
extern size_t report_alloc_max;
#endif

/* What report_show() can print: header, stacks, totals. At least two items. */
u32 report_items(const struct report *r);
void report_show(struct seq_file *m, const struct report *r, u32 item);

/* Print one stack, a frame a line, each after one space. */
void report_stack(struct seq_file *m, btref_t ref);

/* Print one record of btlog_find_address() with its stack. */
void report_record(struct seq_file *m, struct btlog *log,
		   const struct btlog_record_copy *rec);

/* Print a log's settings and counters as "key: value" lines. */
void report_stats(struct seq_file *m, struct btlog *log);

/* By enum btlog_sort. */
extern const char * const report_sort_names[];
enum { BTLOG_SORTS = BTLOG_SORT_AGE + 1 };

int debugfs_init(void);
void debugfs_exit(void);

/* Files of one log; called by btlog_create() and btlog_remove(). */
void debugfs_add_log(struct btlog *log);
void debugfs_remove_log(struct btlog *log);

#endif
