/* SPDX-License-Identifier: GPL-2.0 */
/*
 * slab.h - names of slab caches as small numbers, for the slab source
 *
 * A tag is the number of a cache's *name*: caches that come and go under the
 * same name share it, and it never stands for another name. Tags are looked up
 * by the address of struct kmem_cache. A cache of that address may be destroyed
 * and another one made there, so the address is forgotten when its structure is
 * freed (slab_cache_retire()).
 */
#ifndef BTLOG_SLAB_H
#define BTLOG_SLAB_H

#include <linux/hash.h>
#include <linux/mm.h>

#include "../internal.h"

enum {
	SLAB_NAME_LEN	= 46,		/* longer names are cut */
	SLAB_TAGS	= 2048,
	SLAB_SLOT_BITS	= 12,
	SLAB_SLOTS	= 1 << SLAB_SLOT_BITS,
};

/* Tags of what is no cache with a name of its own. */
enum slab_tag {
	SLAB_TAG_NONE,
	SLAB_TAG_LARGE,		/* kmalloc() of whole pages */
	SLAB_TAG_OTHER,		/* caches beyond the size of the tables */
	SLAB_TAG_FIRST,
};

/**
 * struct slab_slot - the tag of the cache at an address
 * @cache: slab_cache_lock: the address; stays until all are forgotten
 * @tag: slab_cache_lock: 0: the cache was freed, and whatever is made there
 *	next is to be named anew
 */
struct slab_slot {
	const struct kmem_cache *cache;
	u16 tag;
};

/**
 * struct slab_filter - the tags that a log wants
 * @list: slab_cache_lock: entry in the list of filters
 * @all: I: no patterns: every tag is wanted
 * @wanted: A: by tag
 * @patterns: I: shell patterns, comma-separated
 */
struct slab_filter {
	struct list_head list;
	bool all;
	unsigned long wanted[BITS_TO_LONGS(SLAB_TAGS)];
	char patterns[BTLOG_SOURCE_LEN];
};

extern struct slab_slot slab_slots[SLAB_SLOTS];
extern const struct kmem_cache *slab_cache_cache;
extern unsigned int slab_cache_offset;
extern unsigned int slab_size_offset;

/**
 * slab_cache_learn() - find out what the kernel's headers don't tell
 *
 * Nothing else here may be used before it succeeded.
 *
 * Context: Process, may sleep.
 * Return: 0, or -errno with a line that says why.
 */
int slab_cache_learn(void);

/* Forget all addresses. Context: process; no event may be in flight. */
void slab_cache_forget(void);

/* The slow half of slab_tag(). */
u16 slab_cache_find(const struct kmem_cache *cache);

/* Forget one address: the structure there is being freed. Context: any. */
void slab_cache_retire(const void *cache);

/* Is @patterns a list of patterns? */
bool slab_filter_check(const char *patterns);

/* @filter becomes up to date and stays so. Context: process. */
void slab_filter_add(struct slab_filter *filter, const char *patterns);
void slab_filter_remove(struct slab_filter *filter);

const char *slab_tag_name(u16 tag, char *buf, size_t len);
void slab_cache_show(struct seq_file *m);

/**
 * slab_tag() - the tag of a cache
 * @cache: the cache, or NULL for page-backed objects
 *
 * Context: Any, NMI included, while the cache can't be destroyed.
 * Return: its tag.
 */
static __always_inline u16 slab_tag(const struct kmem_cache *cache)
{
	const struct slab_slot *slot;
	u16 tag;

	if (unlikely(!cache))
		return SLAB_TAG_LARGE;
	slot = &slab_slots[hash_ptr(cache, SLAB_SLOT_BITS)];
	/* Pairs with the release in insert(). */
	if (likely(smp_load_acquire(&slot->cache) == cache)) {
		tag = READ_ONCE(slot->tag);
		if (likely(tag))
			return tag;
	}
	return slab_cache_find(cache);
}

/**
 * slab_cache_of() - the cache of an object
 * @object: an object that is in use
 *
 * Context: Any, NMI included.
 * Return: the cache; NULL for page-backed objects.
 */
static __always_inline const struct kmem_cache *
slab_cache_of(const void *object)
{
	struct folio *folio = virt_to_folio(object);

	if (unlikely(!folio_test_slab(folio)))
		return NULL;
	return *(const struct kmem_cache **)((void *)folio + slab_cache_offset);
}

/* kmem_cache_size() without a call. */
static __always_inline size_t slab_cache_size(const struct kmem_cache *cache)
{
	return *(const u32 *)((const void *)cache + slab_size_offset);
}

static __always_inline bool slab_filter_wants(const struct slab_filter *filter,
					      u16 tag)
{
	return test_bit(tag, filter->wanted);
}

#endif
