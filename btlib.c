// SPDX-License-Identifier: GPL-2.0
/*
 * btlib.c - the backtrace library: every distinct stack once
 *
 * A stack lives in one record of 1, 2 or 4 granules of 64 bytes (12, 28 or 60
 * frames). Granules come in chunks of 64 KiB, each chunk for one size class,
 * so that a reference which doesn't point at the start of a record is caught.
 *
 * Records hang in the chains of a hash table that grows by linear hashing: one
 * bucket at a time is split, the new one is appended, and "active" buckets are
 * in use. Chains are sorted by the bit-reversed hash. A bucket that is split
 * therefore consists of two runs, and splitting is one cut:
 *
 *	before, 4 buckets			after splitting bucket 1 (= 001)
 *
 *	slot[1] -> 0x01 -> 0x09 -> 0x05 -> 0	slot[1] -> 0x01 -> 0x09 -> 0
 *	           run 001         run 101	slot[5] -> 0x05 -> 0
 *
 * Readers take no lock. A reader that started before the cut and looks for a
 * stack of the second run may meet the end of the first one; it then sees that
 * "active" has moved its hash to another bucket, and looks there. One in the
 * second run goes on to its end as if nothing had happened. The table needs no
 * second copy of itself, and no step is longer than two chains.
 *
 * A reference count of 0 leaves the stack in the table. When memory is wanted,
 * the worker claims such stacks (0 -> dead), takes them out of their chains and
 * frees them after a grace period, which it polls for.
 *
 * Locks: lib.lock (raw, a leaf) guards chains, free lists and "active".
 * lib.worker is only ever run once at a time and owns what is marked W.
 */
#include <linux/bitrev.h>
#include <linux/hash.h>
#include <linux/irq_work.h>
#include <linux/jump_label.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "internal.h"
#include "unwind.h"

enum {
	GRANULE_SIZE	= 64,
	CHUNK_SHIFT	= 10,			/* granules in a chunk, log2 */
	CHUNK_GRANULES	= 1 << CHUNK_SHIFT,
	CHUNK_SIZE	= CHUNK_GRANULES * GRANULE_SIZE,
	NR_CLASSES	= 3,
	BASE_SHIFT	= 10,			/* buckets at the start, log2 */
	BASE_BUCKETS	= 1 << BASE_SHIFT,
	NR_SEGMENTS	= BTREF_GRANULE_BITS - BASE_SHIFT + 1,
	SPLIT_BATCH	= 16,			/* buckets split in one hold */
	SWEEP_BATCH	= 32,			/* records looked at in one hold */
	CHAIN_MAX	= 1 << 20,		/* a longer one is a circle */
	TICK_MS		= 1000,			/* worker's rest while in use */
	GRACE_POLL_MS	= 5,
};

/*
 * The count of a record. Between REFS_PERMANENT and INT_MAX it is permanent and
 * is pushed back to REFS_SATURATED whenever somebody moves it; below 0 the
 * record is dead: free, or waiting for its grace period.
 */
enum {
	REFS_PERMANENT	= 1 << 30,
	REFS_SATURATED	= REFS_PERMANENT + (1 << 29),
	REFS_DEAD	= -(1 << 30),
};

enum {
	STACK_TRUNCATED	= 1 << 0,
	STACK_OWN	= 1 << 1,
};

/**
 * struct bt_stack - a record of the library
 * @next: L, R: granule of the next one in its chain, or in its free list
 * @hash: I; while in limbo, granule of the next one there
 * @refs: A
 * @nr: I: frames in use
 * @flags: I
 * @frames: I: innermost first
 */
struct bt_stack {
	u32 next;
	u32 hash;
	atomic_t refs;
	u8 nr;
	u8 flags;
	u32 frames[];
};

static_assert(offsetof(struct bt_stack, frames) +
	      12 * sizeof(u32) == GRANULE_SIZE);
static_assert(offsetof(struct bt_stack, frames) +
	      BTREF_MAX_FRAMES * sizeof(u32) == 4 * GRANULE_SIZE);
static_assert(CHUNK_GRANULES == (int)BTREF_FIRST_GRANULE);

/**
 * struct bt_chunk - memory for records of one class
 * @list: L: in the class's list while it has free records
 * @mem: I: the records
 * @index: I: its place in the directory
 * @class: I
 * @nr_free: L: free records
 * @free: L: granule of the first of them, 0 if none
 */
struct bt_chunk {
	struct list_head list;
	void *mem;
	u32 index;
	u8 class;
	u16 nr_free;
	u32 free;
};

/**
 * struct bt_class - records of one size
 * @partial: L: chunks with free records
 * @nr_free: L: free records in them
 * @nr_chunks: L: all chunks of the class
 */
struct bt_class {
	struct list_head partial;
	u32 nr_free;
	u32 nr_chunks;
};

enum lib_stat {
	LS_INSERTED,
	LS_RECLAIMED,
	LS_DOUBLINGS,
	LS_CHUNKS_FREED,
	LS_REFUSED,			/* + enum btlog_reason */
	LS_NR = LS_REFUSED + BTR_NR
};

static struct {
	/* R: chunk memory by granule >> CHUNK_SHIFT, class mask in low bits */
	unsigned long *dir;
	/* L, R: buckets in use; see bucket_of() */
	u32 active;
	/* R: bucket heads, less the number of the segment's first bucket */
	u32 *segment[NR_SEGMENTS];
	const char *broken;		/* A: first invariant that broke */

	raw_spinlock_t lock ____cacheline_aligned_in_smp;
	u32 stacks;			/* L: records in chains */
	u64 stats[LS_NR];		/* L */
	struct bt_class class[NR_CLASSES];
	struct bt_chunk **chunks;	/* L: by granule >> CHUNK_SHIFT */
	u64 longest_hold;		/* L: ns, with lib_timing */
	u64 hold_start;			/* L */

	u32 dir_size;			/* I */
	u32 nr_chunks;			/* W */
	u32 nr_segments;		/* W */
	size_t table_bytes;		/* W */
	atomic_t users;			/* A: logs that are on */
	struct mutex worker_lock;	/* the worker or btlib_prepare() */
	u32 limbo;			/* W: unlinked since the last cookie */
	u32 limbo_waiting;		/* W: unlinked before that cookie */
	unsigned long limbo_cookie;	/* W */
	u32 nr_limbo;			/* W: both */
	u64 last_inserted;		/* W: at the previous tick */
	unsigned long next_tick;	/* W: jiffies */
	bool reported;			/* W: the broken invariant */
	struct delayed_work work;
	struct irq_work kick;
} lib;

static u32 base_segment[BASE_BUCKETS];

/* Scratch space of the nesting levels: task, softirq, hardirq, NMI. */
struct bt_contexts {
	struct bt_context level[4];
};

static struct bt_contexts __percpu *contexts;

/* Stacks whose count is 0; the sum over the CPUs counts, not the parts. */
static DEFINE_PER_CPU(long, unreferenced);

static unsigned int lib_max_mb;
module_param(lib_max_mb, uint, 0444);
MODULE_PARM_DESC(lib_max_mb, "memory for stacks, MiB (default 1/64 of RAM, at most 1024)");

unsigned int btlib_max_stacks;
EXPORT_SYMBOL_FOR_TESTS(btlib_max_stacks);
module_param_named(lib_max_stacks, btlib_max_stacks, uint, 0644);
MODULE_PARM_DESC(lib_max_stacks, "keep no more than that many stacks (default 0: no limit)");

static DEFINE_STATIC_KEY_FALSE(lib_timing_key);

#if IS_ENABLED(CONFIG_KUNIT)
/* Tests clear bits of the hash to provoke collisions. */
u32 btlib_hash_mask = U32_MAX;
EXPORT_SYMBOL_FOR_TESTS(btlib_hash_mask);
#else
#define btlib_hash_mask U32_MAX
#endif

/* ==== Lock, with the longest hold measured on request ==== */

static void hold_begin(void)
{
	if (static_branch_unlikely(&lib_timing_key))
		lib.hold_start = ktime_get_mono_fast_ns();
}

static void hold_end(void)
{
	u64 held;

	if (!static_branch_unlikely(&lib_timing_key) || !lib.hold_start)
		return;
	held = ktime_get_mono_fast_ns() - lib.hold_start;
	lib.longest_hold = max(lib.longest_hold, held);
	lib.hold_start = 0;
}

static int lib_timing_set(const char *val, const struct kernel_param *kp)
{
	bool on;
	int err = kstrtobool(val, &on);

	if (err)
		return err;
	if (on)
		static_branch_enable(&lib_timing_key);
	else
		static_branch_disable(&lib_timing_key);
	return 0;
}

static int lib_timing_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%d\n", static_key_enabled(&lib_timing_key));
}

static const struct kernel_param_ops lib_timing_ops = {
	.set = lib_timing_set,
	.get = lib_timing_get,
};
module_param_cb(lib_timing, &lib_timing_ops, NULL, 0644);
MODULE_PARM_DESC(lib_timing, "measure the longest hold of the library's lock");

static void lib_lock(unsigned long *flags) __acquires(&lib.lock)
{
	raw_spin_lock_irqsave(&lib.lock, *flags);
	hold_begin();
}

static void lib_unlock(unsigned long flags) __releases(&lib.lock)
{
	hold_end();
	raw_spin_unlock_irqrestore(&lib.lock, flags);
}

/* ==== Granules and references ==== */

static u32 class_granules(unsigned int class)
{
	return 1U << class;
}

static u32 class_of(unsigned int nr_frames)
{
	return nr_frames <= 12 ? 0 : nr_frames <= 28 ? 1 : 2;
}

static struct bt_stack *dir_stack(unsigned long entry, u32 granule)
{
	void *mem = (void *)(entry & PAGE_MASK);

	return mem + (granule & (CHUNK_GRANULES - 1)) * GRANULE_SIZE;
}

/* NULL if there can be no record; chains and lists may be damaged as well. */
static __always_inline struct bt_stack *stack_at(u32 granule)
{
	u32 chunk = granule >> CHUNK_SHIFT;
	unsigned long entry;

	if (unlikely(chunk >= lib.dir_size))
		return NULL;
	entry = READ_ONCE(lib.dir[chunk]);
	if (unlikely(!entry || (granule & entry & ~PAGE_MASK)))
		return NULL;
	return dir_stack(entry, granule);
}

/* The same for a granule out of a chain; left counts down to the end of it. */
static __always_inline struct bt_stack *chain_stack(u32 granule,
						    unsigned int *left)
{
	struct bt_stack *s = (*left)-- ? stack_at(granule) : NULL;

	if (unlikely(!s))
		btlib_break("a chain is damaged");
	return s;
}

/* Frames that a record can hold. */
static unsigned int capacity_at(u32 granule)
{
	unsigned long entry = READ_ONCE(lib.dir[granule >> CHUNK_SHIFT]);

	return ((entry & ~PAGE_MASK) + 1) * (GRANULE_SIZE / sizeof(u32)) -
	       offsetof(struct bt_stack, frames) / sizeof(u32);
}

static btref_t make_ref(u32 granule)
{
	return granule << BTREF_OP_BITS;
}

static bool acquire_odd(struct bt_stack *s, int old)
{
	if (old == 0) {
		this_cpu_dec(unreferenced);
		return true;
	}
	if (old >= REFS_PERMANENT - 1) {
		atomic_set(&s->refs, REFS_SATURATED);
		return true;
	}
	/* Dead. RCU keeps the record from being used again before this. */
	atomic_dec(&s->refs);
	return false;
}

static __always_inline bool acquire(struct bt_stack *s)
{
	int old = atomic_fetch_inc(&s->refs);

	if (likely(old > 0 && old < REFS_PERMANENT - 1))
		return true;
	return acquire_odd(s, old);
}

static void release_odd(struct bt_stack *s, int old)
{
	if (old == 1) {
		this_cpu_inc(unreferenced);
	} else if (old >= REFS_PERMANENT) {
		atomic_set(&s->refs, REFS_SATURATED);
	} else {
		atomic_inc(&s->refs);
		btlib_break("a reference was put more often than taken");
	}
}

/*
 * From here on, preemption is off while a record is looked at because of a
 * reference: if it is a stale one, its chunk may be about to be freed.
 */
btref_t btref_retain(btref_t ref)
{
	struct bt_stack *s;

	if (!btref_is_stack(ref) || ref & BTREF_PERMANENT_BIT)
		return ref;
	preempt_disable();
	s = stack_at(btref_granule(ref));
	/* An owner has a count of 1 or more, so 0 is as wrong as dead. */
	if (unlikely(!s || atomic_read(&s->refs) <= 0 || !acquire(s))) {
		btlib_break("a dead or invalid reference was retained");
		ref = btref_reason(BTR_READ_ONLY);
	}
	preempt_enable();
	return ref;
}
EXPORT_SYMBOL_GPL(btref_retain);

bool btref_tryget(btref_t ref)
{
	struct bt_stack *s;

	if (!btref_is_stack(ref) || ref & BTREF_PERMANENT_BIT)
		return true;
	s = stack_at(btref_granule(ref));
	return s && acquire(s);
}
EXPORT_SYMBOL_FOR_TESTS(btref_tryget);

void btref_put(btref_t ref)
{
	struct bt_stack *s;
	int old;

	if (!btref_is_stack(ref) || ref & BTREF_PERMANENT_BIT)
		return;
	preempt_disable();
	s = stack_at(btref_granule(ref));
	if (likely(s)) {
		old = atomic_fetch_dec_release(&s->refs);
		if (unlikely(old <= 1 || old >= REFS_PERMANENT))
			release_odd(s, old);
	} else {
		btlib_break("an invalid reference was put");
	}
	preempt_enable();
}
EXPORT_SYMBOL_GPL(btref_put);

bool btref_is_own(btref_t ref)
{
	struct bt_stack *s;
	bool own = false;

	if (!btref_is_stack(ref))
		return false;
	preempt_disable();
	s = stack_at(btref_granule(ref));
	if (likely(s))
		own = s->flags & STACK_OWN;
	preempt_enable();
	return own;
}
EXPORT_SYMBOL_FOR_TESTS(btref_is_own);

/* ==== Look-up ==== */

/**
 * struct stack_key - what a stack is looked up by
 * @frames: its frames
 * @hash: of frames and @flags
 * @nr: number of frames
 * @flags: STACK_TRUNCATED or 0; part of the identity
 */
struct stack_key {
	const u32 *frames;
	u32 hash;
	u8 nr;
	u8 flags;
};

/* Two frames at a time; the compiler makes one load of it. */
static __always_inline u64 frame_pair(const u32 *frames)
{
	return frames[0] | (u64)frames[1] << 32;
}

/* The upper half of a product depends on all of what was multiplied. */
static __always_inline u64 mix(u64 hash, u64 word)
{
	return (rol64(hash, 32) ^ word) * GOLDEN_RATIO_64;
}

/*
 * Every event pays for this. Equality is never by hash alone, so all that is
 * wanted is that chains are short, and one multiplication for two frames does
 * for that what the kernel's general hashes do with many more instructions.
 */
static __always_inline u32 hash_frames(const u32 *frames, unsigned int nr,
				       u64 hash)
{
	const u32 *last = frames + (nr & ~1U);

	for (; frames != last; frames += 2)
		hash = mix(hash, frame_pair(frames));
	if (nr & 1)
		hash = mix(hash, *frames);
	return hash >> 32;
}

static __always_inline bool same_frames(const u32 *a, const u32 *b,
					unsigned int nr)
{
	const u32 *last = a + (nr & ~1U);

	for (; a != last; a += 2, b += 2)
		if (frame_pair(a) != frame_pair(b))
			return false;
	return !(nr & 1) || *a == *b;
}

static __always_inline void make_key(struct stack_key *key, const u32 *frames,
				     unsigned int nr, unsigned int flags)
{
	key->frames = frames;
	key->nr = nr;
	key->flags = flags & BTREF_TRUNCATED ? STACK_TRUNCATED : 0;
	key->hash = hash_frames(frames, nr, key->flags) & btlib_hash_mask;
}

/* Does a record still hold what its hash was made of? */
static bool is_intact(const struct bt_stack *s, unsigned int capacity)
{
	struct stack_key key;

	if (!s->nr || s->nr > capacity)
		return false;
	make_key(&key, s->frames, s->nr,
		 s->flags & STACK_TRUNCATED ? BTREF_TRUNCATED : 0);
	return key.hash == READ_ONCE(s->hash);
}

static unsigned int decode(u32 granule, u32 *frames, bool *truncated)
{
	struct bt_stack *s = stack_at(granule);
	unsigned int nr;

	if (unlikely(!s)) {
		btlib_break("an invalid reference was decoded");
		return 0;
	}
	if (unlikely(!is_intact(s, capacity_at(granule)))) {
		/*
		 * Who reads under RCU, without a reference, may see a stack that
		 * is dying: unlink_stack() has taken its hash after its count.
		 */
		smp_rmb();
		if (atomic_read(&s->refs) >= 0 || s->nr > capacity_at(granule)) {
			btlib_break("the record of a stack is damaged");
			return 0;
		}
	}
	nr = s->nr;
	memcpy(frames, s->frames, nr * sizeof(*frames));
	*truncated = s->flags & STACK_TRUNCATED;
	return nr;
}

unsigned int btref_decode(btref_t ref, u32 *frames, bool *truncated)
{
	unsigned int nr = 0;
	bool cut = false;

	if (btref_is_stack(ref)) {
		preempt_disable();
		nr = decode(btref_granule(ref), frames, &cut);
		preempt_enable();
	}
	if (truncated)
		*truncated = cut;
	return nr;
}
EXPORT_SYMBOL_GPL(btref_decode);

/* A bucket for every hash, while the last doubling is partly done. */
static u32 bucket_of(u32 hash, u32 active)
{
	u32 mask = (1U << fls(active - 1)) - 1;
	u32 bucket = hash & mask;

	return bucket < active ? bucket : bucket & (mask >> 1);
}

static u32 *slot_of(u32 bucket)
{
	return &lib.segment[fls(bucket >> BASE_SHIFT)][bucket];
}

static __always_inline bool same_stack(const struct bt_stack *s,
				       const struct stack_key *key)
{
	return READ_ONCE(s->hash) == key->hash && s->nr == key->nr &&
	       (s->flags & STACK_TRUNCATED) == key->flags &&
	       same_frames(s->frames, key->frames, key->nr);
}

static __always_inline u32 search_chain(u32 granule,
					const struct stack_key *key)
{
	unsigned int left = CHAIN_MAX;

	while (granule) {
		struct bt_stack *s = chain_stack(granule, &left);

		if (unlikely(!s))
			return 0;
		if (same_stack(s, key) && acquire(s))
			break;
		/* Pairs with the releases in link_stack() and split_bucket(). */
		granule = smp_load_acquire(&s->next);
	}
	return granule;
}

/*
 * Find a stack and take a reference, without the lock. A miss counts only if
 * the bucket still is the right one afterwards: the acquire in search_chain()
 * orders a cut (split_bucket()) before the second look at "active".
 */
static __always_inline u32 lookup(const struct stack_key *key)
{
	u32 bucket, now, granule;

	/* Pairs with split_bucket(): the bucket's slot is there and filled. */
	now = bucket_of(key->hash, smp_load_acquire(&lib.active));
	do {
		bucket = now;
		/* Pairs with link_stack() and split_bucket(). */
		granule = smp_load_acquire(slot_of(bucket));
		granule = search_chain(granule, key);
		if (granule)
			break;
		now = bucket_of(key->hash, READ_ONCE(lib.active));
	} while (unlikely(now != bucket));
	return granule;
}

/* ==== Insertion ==== */

/* The link behind which a hash belongs in its sorted chain. */
static u32 *find_link(u32 hash)
{
	u32 order = bitrev32(hash), granule;
	u32 *link = slot_of(bucket_of(hash, lib.active));
	unsigned int left = CHAIN_MAX;

	lockdep_assert_held(&lib.lock);
	while ((granule = *link)) {
		struct bt_stack *s = chain_stack(granule, &left);

		if (unlikely(!s) || bitrev32(s->hash) >= order)
			break;
		link = &s->next;
	}
	return link;
}

static void link_stack(struct bt_stack *s, u32 granule)
{
	u32 *link = find_link(s->hash);

	s->next = *link;
	/* Pairs with the acquires of search_chain() and lookup(). */
	smp_store_release(link, granule);
	lib.stacks++;
	lib.stats[LS_INSERTED]++;
}

static u32 take_free(unsigned int class)
{
	struct bt_class *c = &lib.class[class];
	struct bt_chunk *chunk;
	struct bt_stack *s;
	u32 granule;

	lockdep_assert_held(&lib.lock);
	chunk = list_first_entry_or_null(&c->partial, struct bt_chunk, list);
	if (!chunk)
		return 0;
	granule = chunk->free;
	s = stack_at(granule);
	if (unlikely(!s || atomic_read(&s->refs) >= 0)) {
		btlib_break("a list of free records is damaged");
		return 0;
	}
	chunk->free = s->next;
	c->nr_free--;
	if (!--chunk->nr_free)
		list_del_init(&chunk->list);
	return granule;
}

static size_t memory_limit(void)
{
	return (size_t)(lib.dir_size - 1) * CHUNK_SIZE;
}

static size_t memory_used(void)
{
	return (size_t)READ_ONCE(lib.nr_chunks) * CHUNK_SIZE +
	       READ_ONCE(lib.table_bytes);
}

static bool too_many_stacks(void)
{
	unsigned int limit = READ_ONCE(btlib_max_stacks);

	return limit && btlib_stacks() >= limit;
}

static bool library_full(void)
{
	return too_many_stacks() ||
	       memory_used() + CHUNK_SIZE > memory_limit();
}

static btref_t refuse(enum btlog_reason reason)
{
	lib.stats[LS_REFUSED + reason]++;
	return btref_reason(reason);
}

/* Is one of the first @nr frames the entry of an interrupt? */
static bool has_interrupt(const u32 *frames, unsigned int nr)
{
	while (nr--)
		if (unwind_role(image_address(frames[nr])) & UNWIND_CUT)
			return true;
	return false;
}

/*
 * Is it btlog itself that allocates? Not if an interrupt does that came while
 * btlog's code ran, which a stack that isn't cut shows below the interrupt.
 */
static bool has_own_frame(const struct stack_key *key)
{
	unsigned int i;

	for (i = 0; i < key->nr; i++)
		if (image_is_own(key->frames[i]))
			return !in_nmi() && !has_interrupt(key->frames, i);
	return false;
}

static btref_t insert_locked(const struct stack_key *key, bool own)
{
	u32 granule = search_chain(*slot_of(bucket_of(key->hash, lib.active)),
				   key);
	struct bt_stack *s;

	lockdep_assert_held(&lib.lock);
	if (granule)
		return make_ref(granule);
	if (btlib_is_broken())
		return refuse(BTR_READ_ONLY);
	if (too_many_stacks())
		return refuse(BTR_LIBRARY_FULL);
	granule = take_free(class_of(key->nr));
	if (!granule)
		return refuse(library_full() ? BTR_LIBRARY_FULL : BTR_NO_MEMORY);

	s = stack_at(granule);
	WRITE_ONCE(s->hash, key->hash);
	s->nr = key->nr;
	s->flags = key->flags | (own ? STACK_OWN : 0);
	memcpy(s->frames, key->frames, key->nr * sizeof(u32));
	/* btlib_visit_frames() reads the frames of whatever isn't dead. */
	atomic_set_release(&s->refs, 1);
	link_stack(s, granule);
	return make_ref(granule);
}

/* While in use, a chunk's worth of free records of each class is kept ready. */
static u32 low_water(unsigned int class)
{
	return atomic_read(&lib.users) ?
		CHUNK_GRANULES / class_granules(class) : 0;
}

static bool wants_worker(unsigned int class)
{
	if (btlib_is_broken())
		return false;
	return READ_ONCE(lib.class[class].nr_free) < low_water(class) ||
	       READ_ONCE(lib.stacks) > READ_ONCE(lib.active);
}

static btref_t insert_nmi(const struct stack_key *key, bool own)
{
	btref_t ref;

	if (!raw_spin_trylock(&lib.lock))
		return btref_reason(BTR_NMI_BUSY);
	ref = insert_locked(key, own);
	raw_spin_unlock(&lib.lock);
	return ref;
}

static btref_t insert(const struct stack_key *key)
{
	bool own = has_own_frame(key);
	unsigned long flags;
	btref_t ref;

	if (unlikely(in_nmi()))
		return insert_nmi(key, own);
	lib_lock(&flags);
	ref = insert_locked(key, own);
	lib_unlock(flags);
	if (wants_worker(class_of(key->nr)))
		btlib_kick();
	return ref;
}

static btref_t make_permanent(btref_t ref)
{
	if (!btref_is_stack(ref))
		return ref;
	atomic_set(&stack_at(btref_granule(ref))->refs, REFS_SATURATED);
	return ref | BTREF_PERMANENT_BIT;
}

static btref_t intern(const u32 *frames, unsigned int nr, unsigned int flags)
{
	struct stack_key key;
	btref_t ref;

	make_key(&key, frames, nr, flags);
	preempt_disable();
	ref = make_ref(lookup(&key));
	if (unlikely(!ref))
		ref = insert(&key);
	if (unlikely(flags & BTREF_PERMANENT))
		ref = make_permanent(ref);
	preempt_enable();
	return ref;
}

/* ==== Capture ==== */

struct bt_context *bt_context_enter(void)
{
	struct bt_context *ctx;

	preempt_disable();
	ctx = &this_cpu_ptr(contexts)->level[interrupt_context_level()];
	if (unlikely(READ_ONCE(ctx->busy))) {
		preempt_enable();
		return NULL;
	}
	WRITE_ONCE(ctx->busy, true);
	barrier();
	return ctx;
}
EXPORT_SYMBOL_FOR_TESTS(bt_context_enter);

void bt_context_leave(struct bt_context *ctx)
{
	barrier();
	WRITE_ONCE(ctx->busy, false);
	preempt_enable();
}
EXPORT_SYMBOL_FOR_TESTS(bt_context_leave);

static btref_t intern_trace(const struct bt_trace *trace, unsigned int flags)
{
	if (trace->truncated)
		flags |= BTREF_TRUNCATED;
	return intern(trace->frames, trace->nr, flags);
}

/*
 * The functions below are parts of btref_get(): @fp is its frame, @key what it
 * was asked for.
 */
static btref_t capture(struct bt_context *ctx, const unsigned long *fp, u64 key)
{
	unsigned int flags = unwind_key_flags(key);
	u32 generation = unwind_memo_generation();
	btref_t ref;

	if (!unwind_capture(ctx, unwind_key_call_site(key),
			    unwind_key_depth(key), flags & BTREF_CUT_IRQ))
		return btref_reason(BTR_NO_STACK);
	ref = intern_trace(&ctx->trace, flags);
	if (likely(btref_is_stack(ref)))
		unwind_remember(fp, key, generation, ref);
	return ref;
}

static noinline btref_t take_current(const unsigned long *fp, u64 key)
{
	struct bt_context *ctx = bt_context_enter();
	btref_t ref;

	if (unlikely(!ctx))
		return btref_reason(BTR_RECURSION);
	ref = capture(ctx, fp, key);
	bt_context_leave(ctx);
	return ref;
}

/* What was known again goes through the same comparison as what was walked. */
static noinline btref_t verify(btref_t ref, const unsigned long *fp, u64 key)
{
	unsigned int flags = unwind_key_flags(key);
	struct bt_context *ctx = bt_context_enter();
	btref_t right;

	if (!ctx)
		return ref;
	ctx->trace.nr = btref_decode(ref, ctx->trace.frames,
				     &ctx->trace.truncated);
	unwind_compare(ctx, fp[1], unwind_key_call_site(key),
		       unwind_key_depth(key), flags & BTREF_CUT_IRQ);
	right = intern_trace(&ctx->trace, flags);
	bt_context_leave(ctx);
	btref_put(ref);
	return right;
}

/* 0: it isn't known, or not any more. */
static __always_inline btref_t recall(const unsigned long *fp, u64 key)
{
	btref_t ref = unwind_recall(fp, key);
	struct bt_stack *s;

	if (!ref)
		return 0;
	s = stack_at(btref_granule(ref));
	return likely(s && acquire(s)) ? ref : 0;
}

/* True: there is room now, until btlib_unuse(). */
static bool may_refill(btref_t ref, unsigned int flags)
{
	return unlikely(ref == btref_reason(BTR_NO_MEMORY)) &&
	       !(flags & BTREF_NOWAIT) && !btlib_use();
}

static noinline btref_t refill_and_take(const unsigned long *fp, u64 key)
{
	btref_t ref;

	preempt_disable();
	ref = take_current(fp, key);
	preempt_enable();
	btlib_unuse();
	return ref;
}

/*
 * The memo knows a stack by its way from the frame of this function, which must
 * have one of its own.
 */
noinline notrace btref_t btref_get(unsigned long call_site, unsigned int depth,
				   unsigned int flags)
{
	const unsigned long *fp = __builtin_frame_address(0);
	btref_t ref;
	u64 key;

	if (unlikely(depth - 1 >= BTREF_MAX_FRAMES))
		depth = depth ? BTREF_MAX_FRAMES : 1;
	key = unwind_key(call_site, depth, flags & ~BTREF_TRUNCATED);
	preempt_disable();
	ref = recall(fp, key);
	if (unlikely(!ref))
		ref = take_current(fp, key);
	else if (unlikely(READ_ONCE(unwind_verify)))
		ref = verify(ref, fp, key);
	preempt_enable();
	if (may_refill(ref, flags))
		ref = refill_and_take(fp, key);
	/* No call above is the last thing done: the frame must stay. */
	barrier();
	return ref;
}
EXPORT_SYMBOL_GPL(btref_get);

btref_t btref_get_from(const struct bt_frame *from, unsigned int depth,
		       unsigned int flags)
{
	struct bt_context *ctx = bt_context_enter();
	btref_t ref = btref_reason(BTR_NO_STACK);

	if (unlikely(!ctx))
		return btref_reason(BTR_RECURSION);
	if (unwind_capture_from(ctx, from, depth, flags & BTREF_CUT_IRQ))
		ref = intern_trace(&ctx->trace, flags);
	bt_context_leave(ctx);
	return ref;
}

btref_t btref_intern(const u32 *frames, unsigned int n, unsigned int flags)
{
	btref_t ref;

	if (!n || n > BTREF_MAX_FRAMES)
		return btref_reason(BTR_NO_STACK);
	ref = intern(frames, n, flags);
	if (may_refill(ref, flags)) {
		ref = intern(frames, n, flags);
		btlib_unuse();
	}
	return ref;
}
EXPORT_SYMBOL_GPL(btref_intern);

/* ==== Growing the table (worker) ==== */

static void split_bucket(void)
{
	u32 active = lib.active, bit = 1U << (fls(active) - 1);
	u32 *link = slot_of(active - bit), rest;
	unsigned int left = CHAIN_MAX;

	lockdep_assert_held(&lib.lock);
	while ((rest = *link)) {
		struct bt_stack *s = chain_stack(rest, &left);

		if (unlikely(!s))
			return;
		if (s->hash & bit)
			break;
		link = &s->next;
	}
	WRITE_ONCE(*slot_of(active), rest);
	/* Pairs with lookup(): who is sent to the new bucket finds it filled. */
	smp_store_release(&lib.active, active + 1);
	/* Pairs with lookup(): who misses because of the cut looks again. */
	smp_store_release(link, 0);
}

/* Make sure that the segment of bucket "active" exists. */
static bool add_segment(void)
{
	u32 nr = fls(lib.active >> BASE_SHIFT), first;
	size_t bytes;
	u32 *heads;

	if (nr < lib.nr_segments)
		return true;
	/* A batch of splits ends at a power of two: the segment is all new. */
	first = lib.active;
	bytes = first * sizeof(u32);
	if (nr >= NR_SEGMENTS || memory_used() + bytes > memory_limit())
		return false;
	heads = kvzalloc(bytes, GFP_KERNEL | __GFP_NOWARN);
	if (!heads)
		return false;
	WRITE_ONCE(lib.table_bytes, lib.table_bytes + bytes);
	/* Readers get here only by an "active" that is released later. */
	lib.segment[nr] = heads - first;
	lib.nr_segments = nr + 1;
	return true;
}

static void split_batch(void)
{
	unsigned int i, todo;
	unsigned long flags;

	lib_lock(&flags);
	todo = min_t(u32, SPLIT_BATCH, roundup_pow_of_two(lib.active + 1) -
		     lib.active);
	for (i = 0; i < todo; i++)
		split_bucket();
	if (is_power_of_2(lib.active))
		lib.stats[LS_DOUBLINGS]++;
	lib_unlock(flags);
}

static const char *check_chain(u32 bucket, u32 *total)
{
	u32 granule, order = 0;
	unsigned int left = CHAIN_MAX;

	lockdep_assert_held(&lib.lock);
	for (granule = *slot_of(bucket); granule; (*total)++) {
		struct bt_stack *s = chain_stack(granule, &left);

		if (!s)
			return "a chain is damaged";
		if (!is_intact(s, capacity_at(granule)))
			return "the record of a stack is damaged";
		if (bucket_of(s->hash, lib.active) != bucket)
			return "a stack is in the wrong bucket";
		if (bitrev32(s->hash) < order)
			return "a chain is not sorted";
		if (atomic_read(&s->refs) < 0)
			return "a dead stack is in a chain";
		order = bitrev32(s->hash);
		granule = s->next;
	}
	return NULL;
}

const char *btlib_validate(bool quiet)
{
	const char *wrong = NULL;
	u32 bucket, total = 0;
	unsigned long flags;

	for (bucket = 0; bucket < READ_ONCE(lib.active) && !wrong; bucket++) {
		lib_lock(&flags);
		wrong = check_chain(bucket, &total);
		lib_unlock(flags);
		cond_resched();
	}
	if (!wrong && quiet && total != btlib_stacks())
		wrong = "the chains don't hold the number of stacks counted";
	return wrong;
}
EXPORT_SYMBOL_FOR_TESTS(btlib_validate);

/* Debug kernels look at the whole table after each doubling. */
static void check_doubling(void)
{
	const char *wrong = NULL;

	if (IS_ENABLED(CONFIG_PROVE_LOCKING) && is_power_of_2(lib.active))
		wrong = btlib_validate(false);
	if (wrong)
		btlib_break(wrong);
}

static void grow_table(void)
{
	while (btlib_stacks() > lib.active && !btlib_is_broken() &&
	       add_segment()) {
		split_batch();
		check_doubling();
		cond_resched();
	}
}

/* ==== Chunks (worker) ==== */

static void fill_free_list(struct bt_chunk *chunk)
{
	u32 step = class_granules(chunk->class), i;
	u32 first = chunk->index << CHUNK_SHIFT;

	for (i = 0; i < CHUNK_GRANULES; i += step) {
		struct bt_stack *s = chunk->mem + i * GRANULE_SIZE;

		atomic_set(&s->refs, REFS_DEAD);
		s->next = i + step < CHUNK_GRANULES ? first + i + step : 0;
	}
	chunk->free = first;
	chunk->nr_free = CHUNK_GRANULES / step;
}

static struct bt_chunk *alloc_chunk(unsigned int class)
{
	struct bt_chunk *chunk = kzalloc(sizeof(*chunk), GFP_KERNEL |
					 __GFP_NOWARN);

	if (!chunk)
		return NULL;
	chunk->mem = __vmalloc(CHUNK_SIZE, GFP_KERNEL | __GFP_NOWARN |
			       __GFP_ZERO);
	if (!chunk->mem) {
		kfree(chunk);
		return NULL;
	}
	chunk->class = class;
	return chunk;
}

static u32 free_dir_index(void)
{
	u32 i;

	for (i = 1; i < lib.dir_size; i++)
		if (!lib.chunks[i])
			return i;
	return 0;
}

static bool add_chunk(unsigned int class)
{
	struct bt_chunk *chunk;
	unsigned long flags;
	u32 index;

	if (memory_used() + CHUNK_SIZE > memory_limit())
		return false;
	index = free_dir_index();
	chunk = index ? alloc_chunk(class) : NULL;
	if (!chunk)
		return false;
	chunk->index = index;
	fill_free_list(chunk);

	lib_lock(&flags);
	lib.chunks[index] = chunk;
	WRITE_ONCE(lib.dir[index], (unsigned long)chunk->mem |
		   (class_granules(class) - 1));
	list_add_tail(&chunk->list, &lib.class[class].partial);
	lib.class[class].nr_free += chunk->nr_free;
	lib.class[class].nr_chunks++;
	lib_unlock(flags);
	WRITE_ONCE(lib.nr_chunks, lib.nr_chunks + 1);
	return true;
}

static bool refill(void)
{
	unsigned int class;

	for (class = 0; class < NR_CLASSES; class++)
		while (READ_ONCE(lib.class[class].nr_free) < low_water(class))
			if (!add_chunk(class))
				return false;
	return true;
}

static bool chunk_is_spare(struct bt_chunk *chunk)
{
	u32 total = CHUNK_GRANULES / class_granules(chunk->class);

	return chunk->nr_free == total &&
	       lib.class[chunk->class].nr_free >= total + low_water(chunk->class);
}

static struct bt_chunk *unlink_spare_chunk(void)
{
	struct bt_chunk *chunk;
	unsigned long flags;
	u32 i;

	for (i = 1; i < lib.dir_size; i++) {
		chunk = lib.chunks[i];
		/* A first look without the lock. */
		if (!chunk || !data_race(chunk_is_spare(chunk)))
			continue;
		lib_lock(&flags);
		if (chunk_is_spare(chunk)) {
			list_del(&chunk->list);
			lib.class[chunk->class].nr_free -= chunk->nr_free;
			lib.class[chunk->class].nr_chunks--;
			lib.chunks[i] = NULL;
			WRITE_ONCE(lib.dir[i], 0);
			lib.stats[LS_CHUNKS_FREED]++;
			lib_unlock(flags);
			return chunk;
		}
		lib_unlock(flags);
	}
	return NULL;
}

static void free_chunk(struct bt_chunk *chunk)
{
	vfree(chunk->mem);
	kfree(chunk);
	WRITE_ONCE(lib.nr_chunks, lib.nr_chunks - 1);
}

/*
 * The records of a spare chunk have had their grace period each. A caller with
 * a stale reference is broken, but must not touch memory that is gone.
 */
static void free_spare_chunks(void)
{
	struct bt_chunk *chunk, *next;
	LIST_HEAD(spare);

	while ((chunk = unlink_spare_chunk()))
		list_add(&chunk->list, &spare);
	if (list_empty(&spare))
		return;
	synchronize_rcu();
	list_for_each_entry_safe(chunk, next, &spare, list)
		free_chunk(chunk);
}

/* ==== Reclaiming (worker) ==== */

static long sum_unreferenced(void)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(&unreferenced, cpu));
	return sum;
}

/* The link that leads to a stack; NULL if the chain is damaged. */
static u32 *link_to(const struct bt_stack *s, u32 granule)
{
	u32 *link = find_link(s->hash);
	unsigned int left = CHAIN_MAX;

	/* Equal hashes stand side by side. */
	while (*link != granule) {
		struct bt_stack *other = chain_stack(*link, &left);

		if (unlikely(!other))
			return NULL;
		link = &other->next;
	}
	return link;
}

static void unlink_stack(struct bt_stack *s, u32 granule, u32 *link)
{
	WRITE_ONCE(*link, s->next);
	lib.stacks--;
	lib.stats[LS_RECLAIMED]++;
	/* Readers may stand here: next stays, the hash is no longer needed. */
	WRITE_ONCE(s->hash, lib.limbo);
	lib.limbo = granule;
	lib.nr_limbo++;
}

static void sweep_batch(struct bt_chunk *chunk, u32 from, u32 to, u32 step)
{
	unsigned long flags;
	u32 i;

	lib_lock(&flags);
	for (i = from; i < to; i += step) {
		struct bt_stack *s = chunk->mem + i * GRANULE_SIZE;
		u32 granule = (chunk->index << CHUNK_SHIFT) + i, *link;

		if (atomic_read(&s->refs))
			continue;
		link = link_to(s, granule);
		if (!link || atomic_cmpxchg(&s->refs, 0, REFS_DEAD))
			continue;
		this_cpu_dec(unreferenced);
		unlink_stack(s, granule, link);
	}
	lib_unlock(flags);
}

static void sweep(void)
{
	u32 index, i, limbo = lib.nr_limbo;

	for (index = 1; index < lib.dir_size; index++) {
		struct bt_chunk *chunk = lib.chunks[index];
		u32 step, batch;

		if (!chunk)
			continue;
		step = class_granules(chunk->class);
		batch = SWEEP_BATCH * step;
		for (i = 0; i < CHUNK_GRANULES; i += batch)
			sweep_batch(chunk, i, i + batch, step);
		cond_resched();
	}
	/* Before their grace period begins, in advance_limbo(). */
	if (lib.nr_limbo != limbo)
		unwind_forget();
}

/* Returns the next one in limbo. */
static u32 give_back(u32 granule)
{
	struct bt_stack *s = stack_at(granule);
	struct bt_chunk *chunk;
	u32 next;

	lockdep_assert_held(&lib.lock);
	if (unlikely(!s)) {
		btlib_break("the list of dead stacks is damaged");
		return 0;
	}
	next = s->hash;
	chunk = lib.chunks[granule >> CHUNK_SHIFT];
	s->next = chunk->free;
	chunk->free = granule;
	lib.class[chunk->class].nr_free++;
	if (!chunk->nr_free++)
		list_add_tail(&chunk->list, &lib.class[chunk->class].partial);
	return next;
}

static void free_limbo(void)
{
	unsigned long flags;
	unsigned int i;

	while (lib.limbo_waiting) {
		lib_lock(&flags);
		for (i = 0; i < SWEEP_BATCH && lib.limbo_waiting; i++) {
			lib.limbo_waiting = give_back(lib.limbo_waiting);
			lib.nr_limbo--;
		}
		lib_unlock(flags);
		cond_resched();
	}
}

static void advance_limbo(void)
{
	if (lib.limbo_waiting && poll_state_synchronize_rcu(lib.limbo_cookie))
		free_limbo();
	if (!lib.limbo_waiting && lib.limbo) {
		lib.limbo_waiting = lib.limbo;
		lib.limbo = 0;
		lib.limbo_cookie = start_poll_synchronize_rcu();
	}
}

/*
 * Sweep when memory is short, when a quarter of the stacks is dead weight, or
 * when nothing new has come since the last tick.
 */
static bool should_sweep(bool short_of_memory, bool tick)
{
	long unused = sum_unreferenced();
	u64 inserted = READ_ONCE(lib.stats[LS_INSERTED]);
	bool idle = tick && lib.last_inserted == inserted;

	if (tick)
		lib.last_inserted = inserted;
	if (unused <= 0)
		return false;
	return short_of_memory || idle || library_full() ||
	       unused > max(btlib_stacks() / 4, 1024U);
}

/* ==== The worker ==== */

static void report_break(void)
{
	if (!btlib_is_broken() || lib.reported)
		return;
	lib.reported = true;
	WARN(1, "btlog: %s; the library is read-only from now on\n",
	     lib.broken);
}

/* Returns when to come again, in ms; 0: when there is something to do. */
static unsigned int maintain(bool tick)
{
	bool filled;

	advance_limbo();
	filled = refill();
	grow_table();
	if (should_sweep(!filled, tick)) {
		sweep();
		advance_limbo();
	}
	if (tick)
		free_spare_chunks();
	if (lib.nr_limbo)
		return GRACE_POLL_MS;
	return btlib_stacks() || lib.nr_chunks || atomic_read(&lib.users) ?
		TICK_MS : 0;
}

static void work_fn(struct work_struct *work)
{
	bool tick = time_after_eq(jiffies, lib.next_tick);
	unsigned int rest = 0;

	if (tick)
		lib.next_tick = jiffies + msecs_to_jiffies(TICK_MS);
	mutex_lock(&lib.worker_lock);
	/* What is damaged is left as it is. */
	if (!btlib_is_broken())
		rest = maintain(tick);
	report_break();
	mutex_unlock(&lib.worker_lock);
	if (rest)
		queue_delayed_work(system_unbound_wq, &lib.work,
				   msecs_to_jiffies(rest));
}

static void kick_fn(struct irq_work *work)
{
	mod_delayed_work(system_unbound_wq, &lib.work, 0);
}

void btlib_kick(void)
{
	irq_work_queue(&lib.kick);
}

void btlib_break(const char *what)
{
	if (!cmpxchg(&lib.broken, NULL, what))
		btlib_kick();
}
EXPORT_SYMBOL_FOR_TESTS(btlib_break);

bool btlib_is_broken(void)
{
	return unlikely(READ_ONCE(lib.broken));
}
EXPORT_SYMBOL_FOR_TESTS(btlib_is_broken);

/* Tests damage records. */
u32 *btlib_record(btref_t ref)
{
	return (u32 *)stack_at(btref_granule(ref));
}
EXPORT_SYMBOL_FOR_TESTS(btlib_record);

int btlib_prepare(void)
{
	bool filled;

	mutex_lock(&lib.worker_lock);
	filled = refill();
	mutex_unlock(&lib.worker_lock);
	return filled || library_full() ? 0 : -ENOMEM;
}
EXPORT_SYMBOL_FOR_TESTS(btlib_prepare);

static int prepare_capture(void)
{
	int err;

	mutex_lock(&lib.worker_lock);
	err = unwind_prepare();
	mutex_unlock(&lib.worker_lock);
	return err;
}

int btlib_use(void)
{
	int err;

	atomic_inc(&lib.users);
	err = btlib_prepare();
	if (!err)
		err = prepare_capture();
	if (err)
		btlib_unuse();
	else
		btlib_kick();
	return err;
}
EXPORT_SYMBOL_FOR_TESTS(btlib_use);

void btlib_unuse(void)
{
	atomic_dec(&lib.users);
	btlib_kick();
}
EXPORT_SYMBOL_FOR_TESTS(btlib_unuse);

/* ==== Reading the library ==== */

static void visit_stack(u32 granule, u32 lo, u32 hi, btlib_frame_fn fn,
			void *arg)
{
	const struct bt_stack *s = stack_at(granule);
	unsigned int i;

	/* Pairs with atomic_set_release() in insert_locked(). */
	if (!s || atomic_read_acquire(&s->refs) < 0 ||
	    s->nr > capacity_at(granule))
		return;
	for (i = 0; i < s->nr; i++)
		if (s->frames[i] >= lo && s->frames[i] < hi)
			fn(s->frames[i], arg);
}

void btlib_visit_frames(u32 lo, u32 hi, btlib_frame_fn fn, void *arg)
{
	u32 index, i;

	for (index = 1; index < lib.dir_size; index++) {
		unsigned long entry;

		rcu_read_lock();
		entry = READ_ONCE(lib.dir[index]);
		for (i = 0; entry && i < CHUNK_GRANULES;
		     i += (entry & ~PAGE_MASK) + 1)
			visit_stack((index << CHUNK_SHIFT) + i, lo, hi, fn, arg);
		rcu_read_unlock();
		cond_resched();
	}
}
EXPORT_SYMBOL_FOR_TESTS(btlib_visit_frames);

u32 btlib_stacks(void)
{
	return READ_ONCE(lib.stacks);
}
EXPORT_SYMBOL_FOR_TESTS(btlib_stacks);

static void show_refusals(struct seq_file *m)
{
	int reason;

	for (reason = 0; reason < BTR_NR; reason++)
		if (reason <= BTR_READ_ONLY)
			seq_printf(m, "refused_%s: %llu\n",
				   btlog_reason_name(reason),
				   READ_ONCE(lib.stats[LS_REFUSED + reason]));
}

void btlib_show(struct seq_file *m)
{
	static const char * const class_names[NR_CLASSES] = { "12", "28", "60" };
	const char *broken = READ_ONCE(lib.broken);
	unsigned long flags;
	long unused;
	u32 stacks;
	int class;

	/* At one moment, so that one can be subtracted from the other. */
	lib_lock(&flags);
	stacks = lib.stacks;
	unused = sum_unreferenced();
	lib_unlock(flags);
	seq_printf(m, "state: %s\n", broken ?: "ok");
	seq_printf(m, "stacks: %u\n", stacks);
	seq_printf(m, "stacks_unreferenced: %ld\n", unused);
	seq_printf(m, "stacks_in_grace_period: %u\n", READ_ONCE(lib.nr_limbo));
	seq_printf(m, "inserted: %llu\n", READ_ONCE(lib.stats[LS_INSERTED]));
	seq_printf(m, "reclaimed: %llu\n", READ_ONCE(lib.stats[LS_RECLAIMED]));
	show_refusals(m);
	seq_printf(m, "buckets: %u\n", READ_ONCE(lib.active));
	seq_printf(m, "doublings: %llu\n", READ_ONCE(lib.stats[LS_DOUBLINGS]));
	seq_printf(m, "memory_bytes: %zu\n", memory_used());
	seq_printf(m, "memory_limit_bytes: %zu\n", memory_limit());
	seq_printf(m, "table_bytes: %zu\n", lib.table_bytes);
	for (class = 0; class < NR_CLASSES; class++)
		seq_printf(m, "chunks_of_%s_frames: %u (%u records free)\n",
			   class_names[class],
			   READ_ONCE(lib.class[class].nr_chunks),
			   READ_ONCE(lib.class[class].nr_free));
	seq_printf(m, "chunks_freed: %llu\n",
		   READ_ONCE(lib.stats[LS_CHUNKS_FREED]));
	if (static_key_enabled(&lib_timing_key))
		seq_printf(m, "longest_hold_ns: %llu\n", lib.longest_hold);
}
EXPORT_SYMBOL_FOR_TESTS(btlib_show);

/* ==== Beginning and end ==== */

static u32 chunk_limit(void)
{
	unsigned long mb = lib_max_mb;

	if (!mb)
		mb = clamp(totalram_pages() >> (20 - PAGE_SHIFT) >> 6, 1UL,
			   1024UL);
	/* What the references' granule numbers can tell apart. */
	mb = clamp(mb, 1UL, 2047UL);
	lib_max_mb = mb;
	return mb * (SZ_1M / CHUNK_SIZE);
}

static void free_all_chunks(void)
{
	u32 i;

	for (i = 1; i < lib.dir_size; i++)
		if (lib.chunks[i])
			free_chunk(lib.chunks[i]);
}

static void free_segments(void)
{
	u32 i;

	for (i = 1; i < lib.nr_segments; i++)
		kvfree(lib.segment[i] + (BASE_BUCKETS << (i - 1)));
}

int btlib_init(void)
{
	int class;

	raw_spin_lock_init(&lib.lock);
	mutex_init(&lib.worker_lock);
	for (class = 0; class < NR_CLASSES; class++)
		INIT_LIST_HEAD(&lib.class[class].partial);
	INIT_DELAYED_WORK(&lib.work, work_fn);
	init_irq_work(&lib.kick, kick_fn);
	lib.active = BASE_BUCKETS;
	lib.segment[0] = base_segment;
	lib.nr_segments = 1;
	lib.table_bytes = sizeof(base_segment);
	lib.dir_size = chunk_limit() + 1;
	lib.next_tick = jiffies;

	contexts = alloc_percpu(struct bt_contexts);
	lib.dir = kvcalloc(lib.dir_size, sizeof(*lib.dir), GFP_KERNEL);
	lib.chunks = kvcalloc(lib.dir_size, sizeof(*lib.chunks), GFP_KERNEL);
	if (contexts && lib.dir && lib.chunks)
		return 0;
	kvfree(lib.chunks);
	kvfree(lib.dir);
	free_percpu(contexts);
	return -ENOMEM;
}

/* All logs and sources are gone: nobody calls into the library any more. */
void btlib_exit(void)
{
	int i;

	/* Twice, as the worker's last run may find something broken and kick. */
	for (i = 0; i < 2; i++) {
		irq_work_sync(&lib.kick);
		cancel_delayed_work_sync(&lib.work);
	}
	report_break();
	free_all_chunks();
	free_segments();
	kvfree(lib.chunks);
	kvfree(lib.dir);
	free_percpu(contexts);
}
