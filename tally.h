/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tally.h - sums over the records of a log, by stack and operation
 *
 * A tally works in a table of a fixed size:
 *
 *	buckets        entries                 details
 *	[ ] -------->  stack, operation, --->  a process or a cache, its share
 *	[ ]            sums, ages         \->  a process or a cache, its share
 *	[ ] -------->  stack, operation, ...
 *
 * It takes no lock, allocates nothing and doesn't sleep, so that it can run
 * wherever records can be visited, in memory that was set aside before.
 *
 * With a table of k entries, TALLY_CANDIDATES and then TALLY_RECOUNT find every
 * stack that has more than 1/(k + 1) of the records (Misra-Gries), and count it
 * exactly.
 */
#ifndef BTLOG_TALLY_H
#define BTLOG_TALLY_H

#include "internal.h"

enum {
	TALLY_DETAIL_BITS	= 2,	/* details per entry, log2 */
	TALLY_NAME_LEN		= 64,	/* of a cache */
	TALLY_WEIGHT_BITS	= 16,	/* of btlog_weight(), after the point */
	TALLY_TAGS		= 64,	/* verdicts on tags that are kept */
};

enum tally_detail_kind { TALLY_PID, TALLY_TAG, TALLY_KINDS };

/* What to do with a stack that has no entry. */
enum tally_pass {
	TALLY_EXACT,		/* make one */
	TALLY_CANDIDATES,	/* make one; counts are lower bounds */
	TALLY_RECOUNT,		/* leave it out, keep those there are */
};

/**
 * struct amount - a sum over records
 * @count: how many
 * @bytes: their sizes
 * @weight: with sampling: events they stand for, in 1/65536
 * @weighted_bytes: with sampling: bytes they stand for
 */
struct amount {
	u64 count;
	u64 bytes;
	u64 weight;
	u64 weighted_bytes;
};

/**
 * struct tally_entry - what is known of one stack and operation
 * @ref: owned by the entry; 0: given back, as the entry isn't shown
 * @next: the next entry of its bucket, + 1
 * @age_min: of the newest record, in 1/BTLOG_TIME_HZ seconds
 * @age_max: of the oldest one
 * @first: by kind: the first of its details, + 1
 * @lost: by kind: records that found no room in the details
 * @sum: over all records
 */
struct tally_entry {
	btref_t ref;
	u32 next;
	u32 age_min;
	u32 age_max;
	u32 first[TALLY_KINDS];
	u32 lost[TALLY_KINDS];
	struct amount sum;
};

/**
 * struct tally_detail - the share of one process or cache in an entry
 * @owner: number of the entry and kind
 * @value: pid or tag
 * @count: records
 * @age_max: of the oldest one
 * @sibling: the next detail of the entry and kind, + 1
 * @next: the next detail of its bucket, + 1
 */
struct tally_detail {
	u32 owner;
	u32 value;
	u32 count;
	u32 age_max;
	u32 sibling;
	u32 next;
};

/**
 * struct tally - sums and what they are made of
 * @log: weighs the records
 * @source: names the tags; may be NULL
 * @filter: what to leave out, and the order
 * @sampled: sums have weights
 * @pass: what is being done
 * @bits: entries, log2
 * @nr: entries in use
 * @nr_details: details in use
 * @short_of_entries: a stack found no room
 * @short_of_details: a process or cache found none
 * @entries: the memory
 * @ranked: entries in their order; after tally_rank()
 * @buckets: first entry, + 1; as many as entries
 * @details: four for each entry
 * @detail_buckets: first detail, + 1
 * @tags: verdicts of the cache filter: (tag << 1 | wanted) + 1
 * @nr_ranked: how many of @ranked are to be shown
 * @shown: sum over them
 * @below_top: beyond the first top_n
 * @filtered: hidden by the filters
 * @own: stacks of btlog itself
 * @unranked: stacks without an entry
 * @not_kept: records without a stack, by reason
 */
struct tally {
	struct btlog *log;
	const struct btlog_source *source;
	struct btlog_filter filter;
	bool sampled;

	enum tally_pass pass;
	unsigned int bits;
	u32 nr;
	u32 nr_details;
	bool short_of_entries;
	bool short_of_details;
	struct tally_entry *entries;
	struct tally_entry **ranked;
	u32 *buckets;
	struct tally_detail *details;
	u32 *detail_buckets;
	u32 tags[TALLY_TAGS];

	u32 nr_ranked;
	struct amount shown;
	struct amount below_top;
	struct amount filtered;
	struct amount own;
	struct amount unranked;
	struct amount not_kept[BTR_NR];
};

void amount_add(struct amount *to, const struct amount *what);

/* Memory for a table of 1 << @bits entries, in bytes. */
size_t tally_size(unsigned int bits);

/* Use memory of tally_size(); log, source, filter and sampled are set. */
void tally_init(struct tally *t, void *mem, unsigned int bits);

/**
 * tally_start() - begin a pass over the records
 * @t: the tally
 * @pass: TALLY_RECOUNT keeps the entries and forgets their sums; the others
 *	want a tally after tally_init()
 */
void tally_start(struct tally *t, enum tally_pass pass);

/**
 * tally_add() - count a record
 * @rec: the record
 * @arg: the tally; in the form that btlog_visit_records() wants
 *
 * Context: Any; the RCU read side under which the record was read.
 */
void tally_add(const struct btlog_record_copy *rec, void *arg);

/* Bring the entries that are to be shown into their order, hide the others. */
void tally_rank(struct tally *t);

/* Give all references back. The memory is the caller's. */
void tally_put(struct tally *t);

/* The most frequent details of an entry, sorted; returns how many there are. */
u32 tally_top_details(const struct tally *t, u32 first,
		      const struct tally_detail **best, u32 n);

/* Name of a tag: "" if it has none. @buf has TALLY_NAME_LEN bytes. */
const char *tally_tag_name(const struct btlog_source *source, u16 tag,
			   char *buf);

/* The reason that stands in for a stack; anything odd counts as no stack. */
enum btlog_reason tally_reason(btref_t ref);

#endif
