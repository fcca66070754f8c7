// SPDX-License-Identifier: GPL-2.0
/*
 * log.c - the logs: what happened to which address, with which stack
 *
 * HASH: records by address, in shards. A shard is an array of up to 65,535
 * records with 16-bit links: hash chains, a list from the oldest to the newest
 * record, and a list of free ones. A log of up to SHARD_SPLIT records is one
 * shard and keeps exact order; a larger one has more shards, each with some
 * room beyond its share, so that the log holds at least what it was asked for
 * although addresses spread unevenly.
 *
 * LOG: a ring of slots. A writer takes the next position from one counter and
 * owns that slot from its xchg() of BUSY to its store of the new reference;
 * nobody waits for anybody. Readers take a slot as it was only if its position
 * and reference are the same before and after.
 *
 * Locks: btlog_list_lock > log->lock > the source's; shard->lock is a leaf and
 * held for one record, or for READ_BATCH ones by readers. btlog_list_lock is
 * held while a log's files go away, so no file of a log may take it.
 */
#include <linux/cpumask.h>
#include <linux/ctype.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/seqlock.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "log.h"
#include "sources/source.h"

enum {
	SHARD_SPLIT	= 2048,		/* records up to which one shard does */
	SHARD_TARGET	= 16384,	/* records of a shard, if there are more */
	SHARD_MAX	= U16_MAX,
	READ_BATCH	= 16,		/* records copied in one hold */
	DEFAULT_RECORDS	= 65536,
	PID_BITS	= 22,		/* PID_MAX_LIMIT */
	CPU_MAX		= (1 << (32 - PID_BITS)) - 1,
	SAMPLE_DIGITS	= 10,		/* of INT_MAX */
};

/* Stands for a LOG slot that is taken; no reference has this value. */
#define BUSY U32_MAX

/**
 * struct bt_record - one record, of either type
 * @not_addr: the address, inverted
 * @ref: stack and operation; 0: unused; LOG: A, BUSY while being written
 * @size: bytes
 * @time: of now_10ms()
 * @who: process of current in the low PID_BITS, above them the CPU, up to CPU_MAX
 * @tag: the source's
 * @next: HASH: next in its chain or in the free list, + 1
 * @older: HASH: neighbour in the list by age, + 1
 * @newer: the same
 * @seq: LOG: position in the order of events
 */
struct bt_record {
	u64 not_addr;
	btref_t ref;
	u32 size;
	u32 time;
	u32 who;
	u16 tag;
	u16 next;
	union {
		struct {
			u16 older;
			u16 newer;
		};
		u32 seq;
	};
};

static_assert(sizeof(struct bt_record) == 32);

/**
 * struct bt_shard - a part of a HASH log
 * @lock: S: the lock itself
 * @free: S: first free record, + 1
 * @oldest: S: + 1
 * @newest: S: + 1
 * @removals: S: changes while a record is taken out of its chain
 * @records: S, read without it by find_unlocked()
 */
struct bt_shard {
	raw_spinlock_t lock;
	u16 free;
	u16 oldest;
	u16 newest;
	seqcount_t removals;
	struct bt_record *records;
} ____cacheline_aligned_in_smp;

/**
 * struct btlog_store - the records of an enabled log
 * @index: HASH: where the chains begin
 * @type: I
 * @bucket_bits: I: HASH: log2 of the buckets of a shard
 * @nr_shards: I: HASH
 * @per_shard: I: records in each
 * @nr: I: records in all
 * @bytes: I: memory taken
 * @records: LOG: the ring; HASH: what the shards share out
 * @cursor: A: LOG: next position
 * @shards: HASH
 */
struct btlog_store {
	struct btlog_index index;
	enum btlog_type type;
	u32 bucket_bits;
	u32 nr_shards;
	u32 per_shard;
	u32 nr;
	size_t bytes;
	struct bt_record *records;
	atomic64_t cursor ____cacheline_aligned_in_smp;
	struct bt_shard shards[];
};

static LIST_HEAD(logs);
static DEFINE_MUTEX(btlog_list_lock);

const struct btlog_source * const btlog_sources[] = {
	&slab_source,
	NULL
};

static const char * const reason_names[] = {
	[BTR_NO_MEMORY]		= "no_memory",
	[BTR_LIBRARY_FULL]	= "library_full",
	[BTR_NO_STACK]		= "no_stack",
	[BTR_READ_ONLY]		= "read_only",
	[BTR_NMI_BUSY]		= "nmi_busy",
	[BTR_RECURSION]		= "recursion",
	[BTR_DISABLED]		= "disabled",
	[BTR_SAMPLED_OUT]	= "sampled_out",
	[BTR_LOG_BUSY]		= "log_busy",
};

static_assert(ARRAY_SIZE(reason_names) == BTR_NR);

const char * const btlog_counter_names[] = {
	[BTC_SEEN]		= "seen",
	[BTC_RECORDED]		= "recorded",
	[BTC_RECORDED_BYTES]	= "recorded_bytes",
	[BTC_ERASED]		= "erased",
	[BTC_REPLACED]		= "replaced",
	[BTC_OVERWRITTEN]	= "overwritten",
	[BTC_CLEARED]		= "cleared",
	[BTC_UNTRACKED_FREE]	= "untracked_free",
	[BTC_ERASE_BUSY]	= "erase_busy",
	NULL
};
EXPORT_SYMBOL_FOR_TESTS(btlog_counter_names);

static_assert(ARRAY_SIZE(btlog_counter_names) == BTC_REFUSED + 1);

const char *btlog_reason_name(enum btlog_reason reason)
{
	return reason < BTR_NR ? reason_names[reason] : "unknown";
}
EXPORT_SYMBOL_GPL(btlog_reason_name);

/* ==== Counting ==== */

u64 btlog_count(struct btlog *log, enum btlog_counter counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(log->cpu, cpu)->counts[counter]);
	return sum;
}
EXPORT_SYMBOL_FOR_TESTS(btlog_count);

u64 btlog_outstanding(struct btlog *log)
{
	/* What went first: an event counted in between must not go below 0. */
	u64 gone = btlog_count(log, BTC_ERASED) +
		   btlog_count(log, BTC_REPLACED) +
		   btlog_count(log, BTC_OVERWRITTEN) +
		   btlog_count(log, BTC_CLEARED);
	u64 recorded = btlog_count(log, BTC_RECORDED);

	return recorded > gone ? recorded - gone : 0;
}
EXPORT_SYMBOL_FOR_TESTS(btlog_outstanding);

void btlog_refuse(struct btlog *log, enum btlog_reason reason)
{
	btlog_count_event(log, BTC_REFUSED + reason);
}
EXPORT_SYMBOL_GPL(btlog_refuse);

void btlog_refuse_unseen(struct btlog *log, enum btlog_reason reason)
{
	btlog_count_event(log, BTC_SEEN);
	btlog_refuse(log, reason);
}
EXPORT_SYMBOL_FOR_TESTS(btlog_refuse_unseen);

/* ==== Sampling ==== */

/*
 * -ln(random) in 1/65536, random uniform in (0, 1]: the distance to the next
 * sample of a process without memory. The logarithm's 16 binary digits come
 * from squaring the mantissa.
 */
static u32 draw_exponential(u64 random)
{
	unsigned int exponent, i;
	u64 mantissa;
	u32 log2;

	random |= 1;
	exponent = fls64(random) - 1;
	mantissa = random << (63 - exponent) >> 32;	/* [1, 2) in 1/2^31 */
	for (log2 = exponent, i = 0; i < 16; i++) {
		mantissa = mantissa * mantissa >> 31;
		log2 = log2 << 1 | mantissa >> 32;
		mantissa >>= mantissa >> 32;
	}
	return (u64)((64 << 16) - log2) * 45426 >> 16;	/* ln 2 */
}

static long next_distance(struct btlog *log, struct btlog_cpu *cpu)
{
	u64 x = cpu->random;

	if (!log->set.sample_bytes)
		return log->set.sample;
	/* xorshift64; an interrupt's draw in between does no harm */
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	cpu->random = x;
	return 1 + ((u64)log->set.sample * draw_exponential(x) >> 16);
}

void btlog_next_sample(struct btlog *log)
{
	struct btlog_cpu *cpu;

	preempt_disable();
	cpu = this_cpu_ptr(log->cpu);
	/* The next distance by bytes has no memory, by events it has. */
	if (log->set.sample_bytes)
		cpu->countdown = next_distance(log, cpu);
	else
		this_cpu_add(log->cpu->countdown, next_distance(log, cpu));
	preempt_enable();
}

bool btlog_wants(struct btlog *log, size_t size)
{
	if (btlog_skips(log, size))
		return false;
	btlog_drawn(log);
	return true;
}
EXPORT_SYMBOL_GPL(btlog_wants);

static void start_sampling(struct btlog *log)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct btlog_cpu *c = per_cpu_ptr(log->cpu, cpu);

		c->random = get_random_u64() | 1;
		/* CPUs that do the same don't sample in step. */
		c->countdown = log->set.sample_bytes ? next_distance(log, c) :
			1 + get_random_u32() % log->set.sample;
	}
}

/* 1 - exp(-x) in 1/2^32, for x in 1/2^32 below 16 */
static u64 one_minus_exp(u64 x)
{
	/* 2^-f = 1 - f (c1 - f (c2 - ...)), in 1/2^32 */
	static const u64 c[] = { 2977044472U, 1031764991U, 238388332U,
				 41309550U, 5726720U };
	u64 y, f, sum = 0;
	int i;

	if (x < 1ULL << 27)		/* three terms do */
		return x - (x * x >> 33) + mul_u64_u64_shr(x * x >> 32, x, 32) / 6;
	y = mul_u64_u64_shr(x, 6196328019ULL, 32);	/* x / ln 2 */
	f = (u32)y;
	for (i = ARRAY_SIZE(c) - 1; i >= 0; i--)
		sum = c[i] - (f * sum >> 32);
	return (1ULL << 32) - (((1ULL << 32) - (f * sum >> 32)) >> (y >> 32));
}

u64 btlog_weight(struct btlog *log, u32 size)
{
	u64 x;

	/* Of 1 in 1 and by single bytes btlog_wants() leaves nothing out. */
	if (!log->set.sample_bytes || log->set.sample == 1)
		return (u64)log->set.sample << 16;
	x = div_u64((u64)size << 32, log->set.sample);
	if (x >= 16ULL << 32)
		return 1 << 16;
	/* The chance that a record of this size was drawn, turned over. */
	return div64_u64(1ULL << 48, max(one_minus_exp(x), 1ULL));
}
EXPORT_SYMBOL_FOR_TESTS(btlog_weight);

/* ==== Records ==== */

static u32 now_10ms(void)
{
	return div_u64(get_jiffies_64() * BTLOG_TIME_HZ, HZ);
}

static __always_inline void fill_record(struct bt_record *rec,
					const struct btlog_event *ev)
{
	rec->not_addr = ~ev->addr;
	rec->size = min_t(size_t, ev->size, U32_MAX);
	rec->time = now_10ms();
	rec->who = current->tgid |
		   min_t(u32, raw_smp_processor_id(), CPU_MAX) << PID_BITS;
	rec->tag = ev->tag;
}

/* In a ring this races with writers, see ring_copy(). */
static void __no_kcsan copy_record(struct btlog_record_copy *copy,
				   const struct bt_record *rec, btref_t ref)
{
	copy->addr = ~rec->not_addr;
	copy->ref = ref;
	copy->size = rec->size;
	copy->age = now_10ms() - rec->time;
	copy->pid = rec->who & GENMASK(PID_BITS - 1, 0);
	copy->cpu = rec->who >> PID_BITS;
	copy->tag = rec->tag;
	copy->seq = 0;
}

static __always_inline btref_t ref_with_op(btref_t ref, u8 op)
{
	return (ref & ~BTREF_OP_MASK) | (op & BTREF_OP_MASK);
}

/* ==== HASH ==== */

static __always_inline struct bt_shard *shard_of(struct btlog_store *store,
						 u32 bucket)
{
	return &store->shards[bucket >> store->bucket_bits];
}

static __always_inline struct bt_record *record_at(const struct bt_shard *shard,
						   u16 i)
{
	return shard->records + i - 1;
}

/* False: in NMI, and the lock is taken. */
static __always_inline bool shard_lock(struct bt_shard *shard,
				       unsigned long *flags)
{
	if (unlikely(in_nmi()))
		return raw_spin_trylock_irqsave(&shard->lock, *flags);
	raw_spin_lock_irqsave(&shard->lock, *flags);
	return true;
}

static __always_inline void shard_unlock(struct bt_shard *shard,
					 unsigned long flags)
{
	raw_spin_unlock_irqrestore(&shard->lock, flags);
}

/* *link: the head of the chain; becomes what leads to the record. */
static __always_inline u16 find_in_chain(struct bt_shard *shard, u64 addr,
					 u16 **link)
{
	u16 i;

	for (; (i = **link); *link = &record_at(shard, i)->next)
		if (record_at(shard, i)->not_addr == ~addr)
			break;
	return i;
}

static __always_inline void age_unlink(struct bt_shard *shard,
				       struct bt_record *rec)
{
	u16 older = rec->older, newer = rec->newer;

	if (older)
		record_at(shard, older)->newer = newer;
	else
		shard->oldest = newer;
	if (newer)
		record_at(shard, newer)->older = older;
	else
		shard->newest = older;
}

static __always_inline void age_append(struct bt_shard *shard,
				       struct bt_record *rec, u16 i)
{
	u16 newest = shard->newest;

	rec->older = newest;
	rec->newer = 0;
	if (newest)
		record_at(shard, newest)->newer = i;
	else
		shard->oldest = i;
	shard->newest = i;
}

/* Take a record out of chain and age list; its reference is the caller's. */
static __always_inline btref_t detach_record(struct bt_shard *shard, u16 i,
					     u16 *link)
{
	struct bt_record *rec = record_at(shard, i);
	btref_t ref = rec->ref;

	lockdep_assert_held(&shard->lock);
	raw_write_seqcount_begin(&shard->removals);
	WRITE_ONCE(*link, rec->next);
	raw_write_seqcount_end(&shard->removals);
	age_unlink(shard, rec);
	rec->ref = 0;
	return ref;
}

static noinline btref_t detach_oldest(struct btlog_store *store,
				      struct bt_shard *shard, u16 *i)
{
	u64 addr = ~record_at(shard, shard->oldest)->not_addr;
	u16 *link = &store->index.heads[btlog_bucket(&store->index, addr)];

	*i = find_in_chain(shard, addr, &link);
	return detach_record(shard, *i, link);
}

static __always_inline void free_record(struct bt_shard *shard, u16 i)
{
	record_at(shard, i)->next = shard->free;
	shard->free = i;
}

/*
 * Returns the reference that had to go, 0 if none, and what to count it as.
 */
static __always_inline btref_t hash_insert(struct btlog_store *store,
					   struct bt_shard *shard, u16 *head,
					   const struct btlog_event *ev,
					   btref_t ref,
					   enum btlog_counter *gone)
{
	u16 i, *link = head;
	struct bt_record *rec;
	btref_t old = 0;

	lockdep_assert_held(&shard->lock);
	i = find_in_chain(shard, ev->addr, &link);
	if (unlikely(i)) {
		old = detach_record(shard, i, link);
		*gone = BTC_REPLACED;
	} else if (likely(shard->free)) {
		i = shard->free;
		shard->free = record_at(shard, i)->next;
	} else {
		old = detach_oldest(store, shard, &i);
		*gone = BTC_OVERWRITTEN;
	}
	rec = record_at(shard, i);
	fill_record(rec, ev);
	rec->ref = ref;
	rec->next = *head;
	/* Pairs with the address dependency in find_unlocked(). */
	smp_store_release(head, i);
	age_append(shard, rec, i);
	return old;
}

static __always_inline void finish_record(struct btlog *log,
					  const struct btlog_event *ev,
					  btref_t old, enum btlog_counter gone)
{
	if (likely(gone < BTC_REFUSED)) {
		btlog_count_event(log, BTC_RECORDED);
		this_cpu_add(log->cpu->counts[BTC_RECORDED_BYTES], ev->size);
	}
	if (old) {
		btlog_count_event(log, gone);
		btref_put(old);
	}
}

static void hash_record(struct btlog *log, struct btlog_store *store,
			const struct btlog_event *ev, btref_t ref)
{
	enum btlog_counter gone = BTC_REPLACED;
	u32 bucket = btlog_bucket(&store->index, ev->addr);
	struct bt_shard *shard = shard_of(store, bucket);
	unsigned long flags;
	btref_t old;

	if (likely(shard_lock(shard, &flags))) {
		old = hash_insert(store, shard, &store->index.heads[bucket],
				  ev, ref, &gone);
		shard_unlock(shard, flags);
	} else {
		old = ref;
		gone = BTC_REFUSED + BTR_NMI_BUSY;
	}
	finish_record(log, ev, old, gone);
}

/**
 * struct bt_sight - what find_unlocked() saw
 * @link: leads to the record; NULL: there is none
 * @removals: the shard's, before
 */
struct bt_sight {
	u16 *link;
	unsigned int removals;
};

static __always_inline bool is_stale(const struct bt_shard *shard,
				     struct bt_sight seen)
{
	return read_seqcount_retry(&shard->removals, seen.removals);
}

/*
 * Look for an address without the lock. What was seen is only true if no record
 * was removed meanwhile: who stood on it may have gone astray. New records are
 * put at the head and lead nobody astray.
 */
static __always_inline struct bt_sight
find_unlocked(struct bt_shard *shard, u16 *head, u64 addr)
{
	struct bt_sight seen = {
		.link = head,
		.removals = raw_seqcount_begin(&shard->removals),
	};
	u16 i;

	while ((i = READ_ONCE(*seen.link))) {
		struct bt_record *rec = record_at(shard, i);

		if (READ_ONCE(rec->not_addr) == ~addr)
			return seen;
		seen.link = &rec->next;
	}
	seen.link = NULL;
	return seen;
}

static __always_inline bool leads_to(const struct bt_shard *shard,
				     const u16 *link, u64 addr)
{
	return link && *link && record_at(shard, *link)->not_addr == ~addr;
}

static __always_inline btref_t erase_locked(struct bt_shard *shard, u16 *head,
					    struct bt_sight seen, u64 addr)
{
	u16 i, *link = seen.link;
	btref_t ref;

	lockdep_assert_held(&shard->lock);
	if (likely(!is_stale(shard, seen) && leads_to(shard, link, addr))) {
		i = *link;
	} else {
		link = head;
		i = find_in_chain(shard, addr, &link);
	}
	if (unlikely(!i))
		return 0;
	ref = detach_record(shard, i, link);
	free_record(shard, i);
	return ref;
}

static noinline void erase_seen(struct btlog *log, struct bt_shard *shard,
				u16 *head, struct bt_sight seen, u64 addr)
{
	unsigned long flags;
	btref_t ref;

	if (unlikely(!shard_lock(shard, &flags))) {
		btlog_count_event(log, BTC_ERASE_BUSY);
		return;
	}
	ref = erase_locked(shard, head, seen, addr);
	shard_unlock(shard, flags);
	btlog_count_event(log, likely(ref) ? BTC_ERASED : BTC_UNTRACKED_FREE);
	btref_put(ref);
}

/*
 * Who frees an address owns it, and got it from whoever recorded it: nobody is
 * about to record it. So most frees of what isn't in the log need no lock.
 */
static __always_inline void hash_erase(struct btlog *log,
				       struct btlog_store *store, u64 addr)
{
	u32 bucket = btlog_bucket(&store->index, addr);
	struct bt_shard *shard = shard_of(store, bucket);
	u16 *head = &store->index.heads[bucket];
	struct bt_sight seen = find_unlocked(shard, head, addr);

	if (unlikely(seen.link || is_stale(shard, seen)))
		erase_seen(log, shard, head, seen, addr);
	else
		btlog_count_event(log, BTC_UNTRACKED_FREE);
}

/* ==== LOG ==== */

static void ring_record(struct btlog *log, struct btlog_store *store,
			const struct btlog_event *ev, btref_t ref)
{
	u64 seq = atomic64_inc_return(&store->cursor) - 1;
	struct bt_record *rec = &store->records[seq % store->nr];
	btref_t old = xchg(&rec->ref, BUSY);

	if (unlikely(old == BUSY)) {
		finish_record(log, ev, ref, BTC_REFUSED + BTR_LOG_BUSY);
		return;
	}
	/* Stalled until the others had come round: what is there is newer. */
	if (unlikely(old && (s32)(rec->seq - (u32)seq) > 0)) {
		/* Pairs with the acquire in ring_copy(). */
		smp_store_release(&rec->ref, old);
		finish_record(log, ev, ref, BTC_REFUSED + BTR_LOG_BUSY);
		return;
	}
	/* ring_copy() looks at seq first and last. */
	WRITE_ONCE(rec->seq, (u32)seq);
	fill_record(rec, ev);
	/* Pairs with the acquire in ring_copy(). */
	smp_store_release(&rec->ref, ref);

	finish_record(log, ev, old, BTC_OVERWRITTEN);
}

/*
 * A slot that is written meanwhile is left out. Whoever overwrites one goes
 * through BUSY and a new seq, so a reader that saw the old seq first, then a
 * reference, and both again at the end has seen one record.
 */
static bool ring_copy(const struct bt_record *rec,
		      struct btlog_record_copy *copy)
{
	u32 seq = READ_ONCE(rec->seq);
	btref_t ref;

	smp_rmb();	/* pairs with xchg() in ring_record() */
	/* Pairs with the release in ring_record(). */
	ref = smp_load_acquire(&rec->ref);
	if (!ref || ref == BUSY)
		return false;
	copy_record(copy, rec, ref);
	copy->seq = seq;
	smp_rmb();	/* pairs with the release in ring_record() */
	return READ_ONCE(rec->ref) == ref && READ_ONCE(rec->seq) == seq;
}

/* ==== The hot entries ==== */

void btlog_record(struct btlog *log, const struct btlog_event *ev, btref_t ref)
{
	struct btlog_store *store;

	preempt_disable();
	store = rcu_dereference_sched(log->store);
	if (unlikely(!store)) {
		btref_put(ref);
		btlog_refuse(log, BTR_DISABLED);
	} else if (store->type == BTLOG_HASH) {
		hash_record(log, store, ev, ref_with_op(ref, ev->op));
	} else {
		ring_record(log, store, ev, ref_with_op(ref, ev->op));
	}
	preempt_enable();
}
EXPORT_SYMBOL_GPL(btlog_record);

void btlog_erase(struct btlog *log, u64 addr)
{
	struct btlog_index *index;

	preempt_disable();
	index = rcu_dereference_sched(log->index);
	if (likely(index))
		hash_erase(log, container_of(index, struct btlog_store, index),
			   addr);
	preempt_enable();
}
EXPORT_SYMBOL_GPL(btlog_erase);

/* ==== Stores ==== */

/* Room beyond the even share: five standard deviations. */
static u32 with_slack(u32 share)
{
	return share + 5 * int_sqrt(share) + 1;
}

static void plan_shards(struct btlog_store *plan, u32 records)
{
	u32 nr = 1;

	if (records > SHARD_SPLIT) {
		nr = max(DIV_ROUND_UP(records, SHARD_TARGET),
			 4 * num_possible_cpus());
		nr = roundup_pow_of_two(min(nr, records / (SHARD_SPLIT / 2)));
	}
	plan->nr_shards = nr;
	plan->per_shard = nr == 1 ? records :
		with_slack(DIV_ROUND_UP(records, nr));
	plan->nr = nr * plan->per_shard;
}

static void init_shard(struct btlog_store *store, u32 nr)
{
	struct bt_shard *shard = &store->shards[nr];
	u32 i;

	raw_spin_lock_init(&shard->lock);
	seqcount_init(&shard->removals);
	shard->records = store->records + (size_t)nr * store->per_shard;
	for (i = store->per_shard; i; i--)
		free_record(shard, i);
}

static bool init_hash(struct btlog_store *store)
{
	struct btlog_index *index = &store->index;
	size_t buckets;
	u32 i;

	/* One alone would be a shift by all bits. */
	store->bucket_bits = max(ilog2(store->per_shard), 1);
	buckets = (size_t)store->nr_shards << store->bucket_bits;
	index->shift = 64 - ilog2(buckets);
	index->heads = kvcalloc(buckets, sizeof(*index->heads),
				GFP_KERNEL | __GFP_NOWARN);
	if (!index->heads)
		return false;
	store->bytes += buckets * sizeof(*index->heads);
	for (i = 0; i < store->nr_shards; i++)
		init_shard(store, i);
	return true;
}

static void free_store(struct btlog_store *store)
{
	kvfree(store->index.heads);
	kvfree(store->records);
	kvfree(store);
}

static struct btlog_store *alloc_store(const struct btlog_settings *set)
{
	struct btlog_store plan = { .type = set->type, .nr = set->records };
	struct btlog_store *store;
	size_t bytes;

	if (set->type == BTLOG_HASH)
		plan_shards(&plan, set->records);
	bytes = struct_size(store, shards, plan.nr_shards);
	store = kvzalloc(bytes, GFP_KERNEL | __GFP_NOWARN);
	if (!store)
		return NULL;
	memcpy(store, &plan, sizeof(plan));
	store->records = kvcalloc(plan.nr, sizeof(*store->records),
				  GFP_KERNEL | __GFP_NOWARN);
	store->bytes = bytes + (size_t)plan.nr * sizeof(*store->records);
	if (store->records && (plan.type != BTLOG_HASH || init_hash(store)))
		return store;
	free_store(store);
	return NULL;
}

/* Nobody uses the store any more: give its references back. */
static void drain_store(struct btlog *log, struct btlog_store *store)
{
	u32 i;

	for (i = 0; i < store->nr; i++) {
		if (store->records[i].ref) {
			btlog_count_event(log, BTC_CLEARED);
			btref_put(store->records[i].ref);
		}
		if (i % 1024 == 0)
			cond_resched();
	}
	free_store(store);
}

/* ==== Clearing ==== */

static unsigned int pop_oldest(struct btlog *log, struct btlog_store *store,
			       struct bt_shard *shard, unsigned int n)
{
	btref_t refs[READ_BATCH];
	unsigned long flags;
	unsigned int i, got;
	u16 rec;

	n = min_t(unsigned int, n, READ_BATCH);
	raw_spin_lock_irqsave(&shard->lock, flags);
	for (got = 0; got < n && shard->oldest; got++) {
		refs[got] = detach_oldest(store, shard, &rec);
		free_record(shard, rec);
	}
	raw_spin_unlock_irqrestore(&shard->lock, flags);
	for (i = 0; i < got; i++) {
		btlog_count_event(log, BTC_CLEARED);
		btref_put(refs[i]);
	}
	return got;
}

static void clear_hash(struct btlog *log, struct btlog_store *store)
{
	u32 i;

	for (i = 0; i < store->nr_shards; i++) {
		unsigned int left = store->per_shard, got;

		/* No more than there can be, else new ones keep us here. */
		while (left && (got = pop_oldest(log, store, &store->shards[i],
						 left))) {
			left -= got;
			cond_resched();
		}
	}
}

static void clear_ring(struct btlog *log, struct btlog_store *store)
{
	u32 i;

	for (i = 0; i < store->nr; i++) {
		btref_t *slot = &store->records[i].ref;
		btref_t ref = READ_ONCE(*slot);

		if (ref && ref != BUSY && cmpxchg(slot, ref, 0) == ref) {
			btlog_count_event(log, BTC_CLEARED);
			btref_put(ref);
		}
		if (i % 1024 == 0)
			cond_resched();
	}
}

void btlog_clear(struct btlog *log)
{
	struct btlog_store *store;

	mutex_lock(&log->lock);
	store = rcu_dereference_protected(log->store,
					  lockdep_is_held(&log->lock));
	if (store && store->type == BTLOG_HASH)
		clear_hash(log, store);
	else if (store)
		clear_ring(log, store);
	mutex_unlock(&log->lock);
}
EXPORT_SYMBOL_GPL(btlog_clear);

/* ==== Reading ==== */

/**
 * struct visit - one pass over the records of a store
 * @fn: called for each record copied
 * @arg: passed on
 * @copies: of one batch
 * @n: how many
 * @total: visited so far
 */
struct visit {
	btlog_record_fn fn;
	void *arg;
	struct btlog_record_copy copies[READ_BATCH];
	unsigned int n;
	u64 total;
};

/*
 * The copies of HASH records are made under the shard's lock. Their stacks stay
 * readable under RCU after it, whoever puts them.
 */
static void copy_hash_batch(struct bt_shard *shard, u32 from, u32 to,
			    struct visit *v)
{
	unsigned long flags;
	u32 i;

	raw_spin_lock_irqsave(&shard->lock, flags);
	for (i = from; i < to; i++) {
		struct bt_record *rec = &shard->records[i];

		if (rec->ref)
			copy_record(&v->copies[v->n++], rec, rec->ref);
	}
	raw_spin_unlock_irqrestore(&shard->lock, flags);
}

static void copy_ring_batch(struct btlog_store *store, u32 from, u32 to,
			    struct visit *v)
{
	u32 i;

	for (i = from; i < to; i++)
		if (ring_copy(&store->records[i], &v->copies[v->n]))
			v->n++;
}

static void visit_batch(struct btlog_store *store, u32 part, u32 from, u32 to,
			struct visit *v)
{
	unsigned int i;

	v->n = 0;
	rcu_read_lock();
	if (store->type == BTLOG_HASH)
		copy_hash_batch(&store->shards[part], from, to, v);
	else
		copy_ring_batch(store, from, to, v);
	for (i = 0; i < v->n; i++)
		v->fn(&v->copies[i], v->arg);
	rcu_read_unlock();
	v->total += v->n;
	cond_resched();
}

u64 btlog_visit_records(struct btlog *log, btlog_record_fn fn, void *arg)
{
	struct visit v = { .fn = fn, .arg = arg };
	struct btlog_store *store;
	u32 part, parts, size, i;

	mutex_lock(&log->lock);
	store = rcu_dereference_protected(log->store,
					  lockdep_is_held(&log->lock));
	if (store) {
		bool hash = store->type == BTLOG_HASH;

		parts = hash ? store->nr_shards : 1;
		size = hash ? store->per_shard : store->nr;
		for (part = 0; part < parts; part++)
			for (i = 0; i < size; i += READ_BATCH)
				visit_batch(store, part, i,
					    min(i + READ_BATCH, size), &v);
	}
	mutex_unlock(&log->lock);
	return v.total;
}
EXPORT_SYMBOL_FOR_TESTS(btlog_visit_records);

/**
 * struct finder - what btlog_find_address() collects
 * @addr: wanted
 * @recs: the newest ones so far, newest first
 * @n: how many
 * @max: how many at most
 */
struct finder {
	u64 addr;
	struct btlog_record_copy *recs;
	unsigned int n;
	unsigned int max;
};

static void find_one(const struct btlog_record_copy *rec, void *arg)
{
	struct finder *f = arg;
	unsigned int i;

	if (rec->addr != f->addr || !btref_tryget(rec->ref))
		return;
	for (i = 0; i < f->n; i++)
		if ((s32)(rec->seq - f->recs[i].seq) > 0)
			break;
	if (i == f->max) {
		btref_put(rec->ref);
		return;
	}
	if (f->n == f->max)
		btref_put(f->recs[--f->n].ref);
	memmove(&f->recs[i + 1], &f->recs[i], (f->n - i) * sizeof(*rec));
	f->recs[i] = *rec;
	f->n++;
}

unsigned int btlog_find_address(struct btlog *log, u64 addr,
				struct btlog_record_copy *recs, unsigned int n)
{
	struct finder f = { .addr = addr, .recs = recs, .max = n };

	btlog_visit_records(log, find_one, &f);
	return f.n;
}
EXPORT_SYMBOL_FOR_TESTS(btlog_find_address);

size_t btlog_memory(struct btlog *log)
{
	struct btlog_store *store;
	size_t bytes;

	rcu_read_lock();
	store = rcu_dereference(log->store);
	bytes = store ? store->bytes : 0;
	rcu_read_unlock();
	return bytes;
}
EXPORT_SYMBOL_FOR_TESTS(btlog_memory);

/* ==== Settings ==== */

static int reject(struct btlog *log, const char *key, const char *value,
		  const char *why, int err)
{
	pr_warn_ratelimited("log %s: %s: \"%*pE\": %s\n", log->name, key,
			    (int)min_t(size_t, strlen(value), 64), value, why);
	return err;
}

static int set_type(struct btlog *log, const char *key, const char *value)
{
	static const char * const names[] = { "hash", "log" };
	int type = match_string(names, ARRAY_SIZE(names), value);

	if (type < 0)
		return reject(log, key, value, "want hash or log", -EINVAL);
	log->set.type = type;
	return 0;
}

static int set_number(struct btlog *log, const char *key, const char *value,
		      u32 min, u32 max, u32 *to)
{
	u32 number;
	int err = kstrtou32(value, 0, &number);

	if (err)
		return reject(log, key, value, "want a number", err);
	if (number < min || number > max)
		return reject(log, key, value, "out of range", -ERANGE);
	*to = number;
	return 0;
}

static int set_records(struct btlog *log, const char *key, const char *value)
{
	return set_number(log, key, value, BTLOG_MIN_RECORDS,
			  BTLOG_MAX_RECORDS, &log->set.records);
}

static int set_depth(struct btlog *log, const char *key, const char *value)
{
	return set_number(log, key, value, 1, BTREF_MAX_FRAMES,
			  &log->set.depth);
}

static int set_sample(struct btlog *log, const char *key, const char *value)
{
	static const char prefix[] = "bytes:";
	u64 bytes;
	char *end;
	int err;

	if (strncmp(value, prefix, strlen(prefix))) {
		err = set_number(log, key, value, 1, INT_MAX, &log->set.sample);
		if (!err)
			log->set.sample_bytes = false;
		return err;
	}
	value += strlen(prefix);
	bytes = memparse(value, &end);
	if (!isdigit(*value) || *end)
		return reject(log, key, value, "want a number of bytes",
			      -EINVAL);
	/* memparse() wraps around beyond 64 bits; all that fits is shorter. */
	if (bytes < 1 || bytes > INT_MAX || end - value > SAMPLE_DIGITS)
		return reject(log, key, value, "out of range", -ERANGE);
	log->set.sample = bytes;
	log->set.sample_bytes = true;
	return 0;
}

static int set_cut(struct btlog *log, const char *key, const char *value)
{
	if (strcmp(value, "irq") && strcmp(value, "none"))
		return reject(log, key, value, "want irq or none", -EINVAL);
	log->set.cut_irq = !strcmp(value, "irq");
	return 0;
}

/* The source that a setting names; *arg is what follows the colon. */
static const struct btlog_source *parse_source(const char *value,
					       const char **arg)
{
	const struct btlog_source * const *source;
	size_t len = strcspn(value, ":");

	*arg = value[len] ? value + len + 1 : value + len;
	for (source = btlog_sources; *source; source++)
		if (strlen((*source)->name) == len &&
		    !strncmp((*source)->name, value, len))
			return *source;
	return NULL;
}

static int set_source(struct btlog *log, const char *key, const char *value)
{
	const struct btlog_source *source;
	const char *arg;
	int err;

	if (strlen(value) >= BTLOG_SOURCE_LEN)
		return reject(log, key, value, "too long", -EINVAL);
	if (*value) {
		source = parse_source(value, &arg);
		if (!source)
			return reject(log, key, value, "no such source",
				      -EINVAL);
		err = source->check(arg);
		if (err)
			return err;
	}
	strscpy(log->set.source, value, sizeof(log->set.source));
	return 0;
}

static const struct {
	const char *name;
	int (*set)(struct btlog *log, const char *key, const char *value);
} settings[] = {
	{ "type",	set_type },
	{ "records",	set_records },
	{ "depth",	set_depth },
	{ "sample",	set_sample },
	{ "cut",	set_cut },
	{ "source",	set_source },
};

const char * const btlog_setting_names[] = {
	"type", "records", "depth", "sample", "cut", "source", NULL
};

static_assert(ARRAY_SIZE(btlog_setting_names) == ARRAY_SIZE(settings) + 1);

int btlog_set(struct btlog *log, const char *key, const char *value)
{
	int i, err;

	for (i = 0; i < ARRAY_SIZE(settings); i++)
		if (!strcmp(settings[i].name, key))
			break;
	if (i == ARRAY_SIZE(settings))
		return reject(log, key, value, "no such setting", -ENOENT);

	mutex_lock(&log->lock);
	if (rcu_access_pointer(log->store))
		err = reject(log, key, value, "the log is enabled", -EBUSY);
	else
		err = settings[i].set(log, key, value);
	mutex_unlock(&log->lock);
	return err;
}
EXPORT_SYMBOL_GPL(btlog_set);

int btlog_get_setting(struct btlog *log, const char *key, char *buf)
{
	const struct btlog_settings *set = &log->set;
	const size_t len = BTLOG_SOURCE_LEN;

	if (!strcmp(key, "type"))
		return scnprintf(buf, len, "%s",
				 set->type == BTLOG_HASH ? "hash" : "log");
	if (!strcmp(key, "records"))
		return scnprintf(buf, len, "%u", set->records);
	if (!strcmp(key, "depth"))
		return scnprintf(buf, len, "%u", set->depth);
	if (!strcmp(key, "sample"))
		return scnprintf(buf, len, "%s%u",
				 set->sample_bytes ? "bytes:" : "",
				 set->sample);
	if (!strcmp(key, "cut"))
		return scnprintf(buf, len, "%s", set->cut_irq ? "irq" : "none");
	if (!strcmp(key, "source"))
		return scnprintf(buf, len, "%s", set->source);
	return -ENOENT;
}
EXPORT_SYMBOL_FOR_TESTS(btlog_get_setting);

/* ==== On and off ==== */

static int attach_source(struct btlog *log)
{
	const char *arg;

	if (!log->set.source[0])
		return 0;
	log->source = parse_source(log->set.source, &arg);
	return log->source->attach(log, arg);
}

static void take_store_down(struct btlog *log)
{
	struct btlog_store *store;

	RCU_INIT_POINTER(log->index, NULL);
	store = rcu_replace_pointer(log->store, NULL,
				    lockdep_is_held(&log->lock));
	synchronize_rcu();
	drain_store(log, store);
	log->source = NULL;
	btlib_unuse();
}

static int enable_locked(struct btlog *log)
{
	struct btlog_store *store;
	int err;

	if (log->removed)
		return -ENODEV;
	if (rcu_access_pointer(log->store))
		return 0;
	err = btlib_use();
	if (err)
		return err;
	store = alloc_store(&log->set);
	if (!store) {
		pr_warn_ratelimited("log %s: no memory for %u records\n",
				    log->name, log->set.records);
		btlib_unuse();
		return -ENOMEM;
	}
	start_sampling(log);
	log->enabled_at = ktime_get_boottime_seconds();
	rcu_assign_pointer(log->store, store);
	if (store->type == BTLOG_HASH)
		rcu_assign_pointer(log->index, &store->index);
	err = attach_source(log);
	if (err)
		take_store_down(log);
	return err;
}

int btlog_enable(struct btlog *log)
{
	int err;

	mutex_lock(&log->lock);
	err = enable_locked(log);
	mutex_unlock(&log->lock);
	return err;
}
EXPORT_SYMBOL_GPL(btlog_enable);

static void disable_locked(struct btlog *log)
{
	if (!rcu_access_pointer(log->store))
		return;
	if (log->source)
		log->source->detach(log);
	take_store_down(log);
}

void btlog_disable(struct btlog *log)
{
	mutex_lock(&log->lock);
	disable_locked(log);
	mutex_unlock(&log->lock);
}
EXPORT_SYMBOL_GPL(btlog_disable);

/* ==== The list of logs ==== */

static int check_name(const char *name)
{
	/* What else lies in the directory of the logs' directories. */
	static const char * const taken[] = {
		"README", "new", "remove", "library", "images", "top",
	};
	size_t i, len = strlen(name);

	if (!len || len >= BTLOG_NAME_LEN || name[0] == '.')
		return -EINVAL;
	for (i = 0; i < len; i++)
		if (!isascii(name[i]) ||
		    (!isalnum(name[i]) && !strchr("-_.", name[i])))
			return -EINVAL;
	return match_string(taken, ARRAY_SIZE(taken), name) < 0 ? 0 : -EEXIST;
}

static struct btlog *find_locked(const char *name)
{
	struct btlog *log;

	lockdep_assert_held(&btlog_list_lock);
	list_for_each_entry(log, &logs, list)
		if (!strcmp(log->name, name))
			return log;
	return NULL;
}

static struct btlog *alloc_log(const char *name)
{
	struct btlog *log = kzalloc(sizeof(*log), GFP_KERNEL);

	if (!log)
		return NULL;
	log->cpu = alloc_percpu(struct btlog_cpu);
	if (!log->cpu) {
		kfree(log);
		return NULL;
	}
	strscpy(log->name, name, sizeof(log->name));
	kref_init(&log->kref);
	mutex_init(&log->lock);
	log->set = (struct btlog_settings) {
		.type		= BTLOG_HASH,
		.records	= DEFAULT_RECORDS,
		.depth		= BTLOG_DEPTH,
		.sample		= 1,
		.cut_irq	= true,
	};
	log->filter.top_n = 20;
	return log;
}

static void free_log(struct kref *kref)
{
	struct btlog *log = container_of(kref, struct btlog, kref);

	free_percpu(log->cpu);
	kfree(log);
}

void btlog_release(struct btlog *log)
{
	kref_put(&log->kref, free_log);
}
EXPORT_SYMBOL_GPL(btlog_release);

static struct btlog *refuse_name(const char *name, const char *why, int err)
{
	pr_warn_ratelimited("new log \"%*pE\": %s\n",
			    (int)min_t(size_t, strlen(name), 64), name, why);
	return ERR_PTR(err);
}

struct btlog *btlog_create(const char *name)
{
	struct btlog *log;
	int err = check_name(name);

	if (err)
		return refuse_name(name, err == -EEXIST ?
				   "the name of a file of btlog's" :
				   "want 1 to 31 of A-Z a-z 0-9 - _ .", err);
	log = alloc_log(name);
	if (!log)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&btlog_list_lock);
	if (find_locked(name)) {
		mutex_unlock(&btlog_list_lock);
		btlog_release(log);
		return refuse_name(name, "there is one already", -EEXIST);
	}
	list_add_tail(&log->list, &logs);
	kref_get(&log->kref);
	debugfs_add_log(log);
	mutex_unlock(&btlog_list_lock);
	return log;
}
EXPORT_SYMBOL_GPL(btlog_create);

static bool mark_removed(struct btlog *log)
{
	bool first;

	mutex_lock(&log->lock);
	first = !log->removed;
	log->removed = true;
	mutex_unlock(&log->lock);
	return first;
}

void btlog_remove(struct btlog *log)
{
	if (!mark_removed(log))
		return;
	btlog_disable(log);
	mutex_lock(&btlog_list_lock);
	list_del(&log->list);
	debugfs_remove_log(log);
	mutex_unlock(&btlog_list_lock);
	btlog_release(log);
}
EXPORT_SYMBOL_GPL(btlog_remove);

struct btlog *btlog_find(const char *name)
{
	struct btlog *log;

	mutex_lock(&btlog_list_lock);
	log = find_locked(name);
	if (log)
		kref_get(&log->kref);
	mutex_unlock(&btlog_list_lock);
	return log;
}
EXPORT_SYMBOL_GPL(btlog_find);

struct btlog *btlog_next(struct btlog *prev)
{
	struct btlog *log = NULL;
	struct list_head *next;

	mutex_lock(&btlog_list_lock);
	next = prev ? prev->list.next : logs.next;
	if (next != &logs && next != LIST_POISON1) {
		log = list_entry(next, struct btlog, list);
		kref_get(&log->kref);
	}
	mutex_unlock(&btlog_list_lock);
	if (prev)
		btlog_release(prev);
	return log;
}
EXPORT_SYMBOL_FOR_TESTS(btlog_next);

/* ==== The module parameter ==== */

/* Next "key=value"; a piece without '=' belongs to the value before it. */
static char *next_pair(char **rest)
{
	char *pair = *rest, *end = pair;

	if (!pair || !*pair)
		return NULL;
	while ((end = strchr(end, ','))) {
		size_t piece = strcspn(end + 1, ",");

		if (memchr(end + 1, '=', piece))
			break;
		end++;
	}
	if (end)
		*end++ = '\0';
	*rest = end;
	return pair;
}

static int apply_pairs(struct btlog *log, char *rest)
{
	char *pair, *value;
	int err;

	while ((pair = next_pair(&rest))) {
		value = strchr(pair, '=');
		if (!value)
			return reject(log, "logs=", pair, "want key=value",
				      -EINVAL);
		*value++ = '\0';
		err = btlog_set(log, pair, value);
		if (err)
			return err == -ENOENT ? -EINVAL : err;
	}
	return btlog_enable(log);
}

static int apply_one(char *spec)
{
	char *rest = strchr(spec, ':');
	struct btlog *log;
	int err;

	if (rest)
		*rest++ = '\0';
	log = btlog_create(spec);
	if (IS_ERR(log))
		return PTR_ERR(log);
	err = apply_pairs(log, rest);
	if (err)
		btlog_remove(log);
	btlog_release(log);
	return err;
}

int btlog_apply(const char *logs)
{
	char *copy, *rest, *spec;
	int err = 0;

	copy = kstrdup(logs, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	rest = copy;
	while (!err && (spec = strsep(&rest, ";")))
		if (*spec)
			err = apply_one(spec);
	kfree(copy);
	return err;
}
EXPORT_SYMBOL_FOR_TESTS(btlog_apply);

void btlog_exit(void)
{
	struct btlog *log;

	while ((log = btlog_next(NULL))) {
		btlog_remove(log);
		btlog_release(log);
	}
}
