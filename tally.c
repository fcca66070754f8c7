// SPDX-License-Identifier: GPL-2.0
/*
 * tally.c - sums over the records of a log, by stack and operation
 *
 * An entry owns a reference to its stack until it is hidden or tally_put()
 * comes, so the stack's number can't pass to another stack meanwhile.
 *
 * Locks: none.
 */
#include <linux/glob.h>
#include <linux/hash.h>
#include <linux/math64.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "sources/source.h"
#include "tally.h"

void amount_add(struct amount *to, const struct amount *what)
{
	to->count += what->count;
	to->bytes += what->bytes;
	to->weight += what->weight;
	to->weighted_bytes += what->weighted_bytes;
}

/* ==== The table ==== */

size_t tally_size(unsigned int bits)
{
	const size_t per_detail = sizeof(struct tally_detail) + sizeof(u32);
	const size_t per_entry = sizeof(struct tally_entry) +
		sizeof(struct tally_entry *) + sizeof(u32);

	return (per_entry + (per_detail << TALLY_DETAIL_BITS)) << bits;
}

/* Divide the memory, the parts with the widest members first. */
void tally_init(struct tally *t, void *mem, unsigned int bits)
{
	t->bits = bits;
	t->nr = 0;
	t->entries = mem;
	t->ranked = (void *)(t->entries + (1UL << bits));
	t->details = (void *)(t->ranked + (1UL << bits));
	t->buckets = (void *)(t->details + (1UL << (bits + TALLY_DETAIL_BITS)));
	t->detail_buckets = t->buckets + (1UL << bits);
	memset(t->buckets, 0, sizeof(u32) << bits);
}

void tally_put(struct tally *t)
{
	u32 i;

	for (i = 0; i < t->nr; i++)
		btref_put(t->entries[i].ref);
	t->nr = 0;
}

/* ==== Entries ==== */

/* The same stack can come as a counted and as a permanent reference. */
static u32 stack_key(btref_t ref)
{
	return ref & ~BTREF_PERMANENT_BIT;
}

static u32 *entry_bucket(struct tally *t, btref_t ref)
{
	return &t->buckets[hash_32(stack_key(ref), t->bits)];
}

static struct tally_entry *find_entry(struct tally *t, btref_t ref)
{
	u32 i = *entry_bucket(t, ref);

	while (i && stack_key(t->entries[i - 1].ref) != stack_key(ref))
		i = t->entries[i - 1].next;
	return i ? &t->entries[i - 1] : NULL;
}

static void link_entry(struct tally *t, struct tally_entry *e)
{
	u32 *bucket = entry_bucket(t, e->ref);

	e->next = *bucket;
	*bucket = e - t->entries + 1;
}

static bool table_full(const struct tally *t)
{
	return t->nr == 1U << t->bits;
}

/* Takes over the caller's reference. */
static struct tally_entry *new_entry(struct tally *t, btref_t ref)
{
	struct tally_entry *e = &t->entries[t->nr++];

	*e = (struct tally_entry){ .ref = ref, .age_min = U32_MAX };
	link_entry(t, e);
	return e;
}

/*
 * Misra-Gries: a stack that finds the table full takes one from each counter,
 * its own included. Each such step undoes as many records as there are
 * entries, so its cost is a constant per record.
 */
static void decrement_all(struct tally *t)
{
	u32 i, kept = 0;

	memset(t->buckets, 0, sizeof(u32) << t->bits);
	for (i = 0; i < t->nr; i++) {
		struct tally_entry *e = &t->entries[i];

		if (!--e->sum.count) {
			btref_put(e->ref);
			continue;
		}
		t->entries[kept] = *e;
		link_entry(t, &t->entries[kept++]);
	}
	t->nr = kept;
}

/* Keep the candidates, forget what was counted so far. */
static void restart_entries(struct tally *t)
{
	u32 i;

	for (i = 0; i < t->nr; i++) {
		struct tally_entry *e = &t->entries[i];

		*e = (struct tally_entry){
			.ref = e->ref, .next = e->next, .age_min = U32_MAX };
	}
}

void tally_start(struct tally *t, enum tally_pass pass)
{
	t->pass = pass;
	if (pass == TALLY_RECOUNT)
		restart_entries(t);
	t->nr_details = 0;
	memset(t->detail_buckets, 0, sizeof(u32) << (t->bits + TALLY_DETAIL_BITS));
	t->short_of_entries = false;
	t->short_of_details = false;
	memset(&t->filtered, 0, sizeof(t->filtered));
	memset(&t->unranked, 0, sizeof(t->unranked));
	memset(t->not_kept, 0, sizeof(t->not_kept));
	memset(t->tags, 0, sizeof(t->tags));
}

/* ==== Details ==== */

static struct tally_detail *find_detail(struct tally *t, u32 owner, u32 value,
					u32 **bucket)
{
	u32 i = hash_64((u64)owner << 32 | value, t->bits + TALLY_DETAIL_BITS);

	*bucket = &t->detail_buckets[i];
	for (i = **bucket; i; i = t->details[i - 1].next)
		if (t->details[i - 1].owner == owner &&
		    t->details[i - 1].value == value)
			return &t->details[i - 1];
	return NULL;
}

static struct tally_detail *new_detail(struct tally *t, u32 owner, u32 value,
				       u32 *bucket, u32 *first)
{
	struct tally_detail *d;

	if (t->nr_details == 1U << (t->bits + TALLY_DETAIL_BITS)) {
		t->short_of_details = true;
		return NULL;
	}
	d = &t->details[t->nr_details++];
	*d = (struct tally_detail){ .owner = owner, .value = value,
				    .next = *bucket, .sibling = *first };
	*bucket = t->nr_details;
	*first = t->nr_details;
	return d;
}

static void add_detail(struct tally *t, struct tally_entry *e,
		       enum tally_detail_kind kind, u32 value, u32 age)
{
	u32 *first = &e->first[kind];
	struct tally_detail *d = *first ? &t->details[*first - 1] : NULL;

	/* Most stacks have one process and one cache. */
	if (!d || d->value != value) {
		u32 owner = (e - t->entries) * TALLY_KINDS + kind;
		u32 *bucket;

		d = find_detail(t, owner, value, &bucket);
		if (!d)
			d = new_detail(t, owner, value, bucket, first);
		if (!d) {
			e->lost[kind]++;
			return;
		}
	}
	d->count++;
	d->age_max = max(d->age_max, age);
}

/* ==== Records ==== */

const char *tally_tag_name(const struct btlog_source *source, u16 tag,
			   char *buf)
{
	if (!source || !source->tag_name)
		return "";
	return source->tag_name(tag, buf, TALLY_NAME_LEN);
}

static bool tag_wanted(struct tally *t, u16 tag)
{
	u32 *known = &t->tags[tag % TALLY_TAGS];
	char buf[TALLY_NAME_LEN];
	bool match;

	if (*known && (*known - 1) >> 1 == tag)
		return (*known - 1) & 1;
	match = glob_match(t->filter.cache, tally_tag_name(t->source, tag, buf));
	*known = ((u32)tag << 1 | match) + 1;
	return match;
}

static bool wanted(struct tally *t, const struct btlog_record_copy *rec)
{
	const struct btlog_filter *f = &t->filter;

	if (rec->age < (u64)f->min_age * BTLOG_TIME_HZ ||
	    rec->size < f->min_size)
		return false;
	if (f->pid && rec->pid != f->pid)
		return false;
	return !f->cache[0] || tag_wanted(t, rec->tag);
}

enum btlog_reason tally_reason(btref_t ref)
{
	u32 reason = btref_granule(ref) - 1;

	return reason < BTR_NR ? reason : BTR_NO_STACK;
}

/* An entry for a stack that has none, or NULL if it isn't to be counted. */
static struct tally_entry *admit(struct tally *t, btref_t ref,
				 const struct amount *one)
{
	if (t->pass == TALLY_CANDIDATES && table_full(t)) {
		decrement_all(t);
		return NULL;
	}
	if (t->pass == TALLY_RECOUNT || table_full(t)) {
		t->short_of_entries = true;
		amount_add(&t->unranked, one);
		return NULL;
	}
	/* On failure the record has been erased: as if we had come later. */
	return btref_tryget(ref) ? new_entry(t, ref) : NULL;
}

static void add_to_stack(struct tally *t, const struct btlog_record_copy *rec,
			 const struct amount *one)
{
	struct tally_entry *e = find_entry(t, rec->ref);

	if (!e)
		e = admit(t, rec->ref, one);
	if (!e)
		return;
	amount_add(&e->sum, one);
	e->age_min = min(e->age_min, rec->age);
	e->age_max = max(e->age_max, rec->age);
	if (t->pass == TALLY_CANDIDATES)
		return;
	add_detail(t, e, TALLY_PID, rec->pid, rec->age);
	if (rec->tag)
		add_detail(t, e, TALLY_TAG, rec->tag, rec->age);
}

void tally_add(const struct btlog_record_copy *rec, void *arg)
{
	struct tally *t = arg;
	struct amount one = { .count = 1, .bytes = rec->size };

	if (t->sampled) {
		one.weight = btlog_weight(t->log, rec->size);
		one.weighted_bytes = mul_u64_u32_shr(one.weight, rec->size,
						     TALLY_WEIGHT_BITS);
	}
	if (!wanted(t, rec))
		amount_add(&t->filtered, &one);
	else if (!btref_is_stack(rec->ref))
		amount_add(&t->not_kept[tally_reason(rec->ref)], &one);
	else
		add_to_stack(t, rec, &one);
}

/* ==== Order ==== */

static u64 rank_of(const struct tally *t, const struct tally_entry *e)
{
	switch (t->filter.sort) {
	case BTLOG_SORT_COUNT:
		return t->sampled ? e->sum.weight : e->sum.count;
	case BTLOG_SORT_AGE:
		return e->age_max;
	case BTLOG_SORT_BYTES:
		break;
	}
	return t->sampled ? e->sum.weighted_bytes : e->sum.bytes;
}

/* Below 0 if @a comes before @b; never 0, so that the order is always one. */
static int compare(const struct tally *t, const struct tally_entry *a,
		   const struct tally_entry *b)
{
	u64 ra = rank_of(t, a), rb = rank_of(t, b);

	if (ra != rb)
		return ra > rb ? -1 : 1;
	if (a->sum.count != b->sum.count)
		return a->sum.count > b->sum.count ? -1 : 1;
	return stack_key(a->ref) < stack_key(b->ref) ? -1 : 1;
}

static int compare_ranked(const void *a, const void *b, const void *t)
{
	return compare(t, *(struct tally_entry * const *)a,
		       *(struct tally_entry * const *)b);
}

/* Heap with the last one of the order on top: put @e where it belongs. */
static void sift_down(const struct tally *t, struct tally_entry **heap, u32 n,
		      u32 i, struct tally_entry *e)
{
	u32 child;

	while ((child = 2 * i + 1) < n) {
		if (child + 1 < n &&
		    compare(t, heap[child], heap[child + 1]) < 0)
			child++;
		if (compare(t, e, heap[child]) > 0)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = e;
}

/*
 * Bring the first @top of @n to the front: for a short list out of very many
 * stacks this is hardly more than looking at each of them once.
 */
static void select_top(const struct tally *t, struct tally_entry **ranked,
		       u32 n, u32 top)
{
	u32 i;

	for (i = top / 2; i-- > 0;)
		sift_down(t, ranked, top, i, ranked[i]);
	for (i = top; i < n; i++) {
		struct tally_entry *last = ranked[0];

		if (compare(t, ranked[i], last) > 0)
			continue;
		sift_down(t, ranked, top, 0, ranked[i]);
		ranked[i] = last;
	}
}

static bool in_module(btref_t ref, const char *module)
{
	u32 frames[BTREF_MAX_FRAMES];
	unsigned int i, n = btref_decode(ref, frames, NULL);

	for (i = 0; i < n; i++)
		if (image_in_module(frames[i], module))
			return true;
	return false;
}

/* Where a stack is hidden that is not for the reader's eyes, or NULL. */
static struct amount *hidden_in(struct tally *t, const struct tally_entry *e)
{
	if (btref_is_own(e->ref))
		return &t->own;
	if (t->filter.module[0] && !in_module(e->ref, t->filter.module))
		return &t->filtered;
	return NULL;
}

static void hide(struct tally_entry *e, struct amount *where)
{
	amount_add(where, &e->sum);
	btref_put(e->ref);
	e->ref = 0;
}

static u32 rank_visible(struct tally *t)
{
	u32 i, n = 0;

	for (i = 0; i < t->nr; i++) {
		struct tally_entry *e = &t->entries[i];
		struct amount *where = hidden_in(t, e);

		if (where)
			hide(e, where);
		else if (e->sum.count)
			t->ranked[n++] = e;
	}
	return n;
}

void tally_rank(struct tally *t)
{
	struct tally_entry **ranked = t->ranked;
	u32 i, n = rank_visible(t);

	t->nr_ranked = n;
	if (t->filter.top_n && t->filter.top_n < n) {
		t->nr_ranked = t->filter.top_n;
		select_top(t, ranked, n, t->nr_ranked);
	}
	sort_r(ranked, t->nr_ranked, sizeof(*ranked), compare_ranked, NULL, t);
	for (i = 0; i < t->nr_ranked; i++)
		amount_add(&t->shown, &ranked[i]->sum);
	for (; i < n; i++)
		hide(ranked[i], &t->below_top);
}

u32 tally_top_details(const struct tally *t, u32 first,
		      const struct tally_detail **best, u32 n)
{
	u32 all = 0, i;

	for (; first; first = t->details[first - 1].sibling) {
		const struct tally_detail *d = &t->details[first - 1];

		for (i = min(all, n); i && best[i - 1]->count < d->count; i--)
			if (i < n)
				best[i] = best[i - 1];
		if (i < n)
			best[i] = d;
		all++;
	}
	return all;
}
