// SPDX-License-Identifier: GPL-2.0
/*
 * slab_cache.c - which cache an object is from, and what it is called
 *
 * struct kmem_cache and the page's pointer to it are private to mm/, but both
 * can be found by looking for something known: a cache of our own with a unique
 * name, and an object of it. See slab_cache_learn().
 *
 *	struct kmem_cache *            tag          name
 *	+---------------+  slab_slots  +---+  names +--------------+
 *	| 0xffff8880... | -----------> | 7 | -----> | "kmalloc-64" |
 *	+---------------+              +---+        +--------------+
 *
 * Slots come and go with the caches; names are kept while the module is loaded,
 * since records may carry their tags. Caches that the kernel merged are one
 * cache to it, under the name of the first of them.
 *
 * Lock: slab_cache_lock, raw, a leaf. Look-ups take none.
 */
#include <linux/glob.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "slab.h"

enum {
	MAX_PROBES	= 64,		/* slots looked at for one address */
	NAME_BUCKETS	= 256,
};

/**
 * struct slab_name - a name
 * @name: I: NUL-terminated
 * @next: I: tag of the next name in the bucket, 0 at the end
 */
struct slab_name {
	char name[SLAB_NAME_LEN];
	u16 next;
};

static DEFINE_RAW_SPINLOCK(slab_cache_lock);
static LIST_HEAD(filters);			/* slab_cache_lock */
static struct slab_name names[SLAB_TAGS] = {
	[SLAB_TAG_LARGE].name = "kmalloc-large",
	[SLAB_TAG_OTHER].name = "(other)",
};

static u16 name_heads[NAME_BUCKETS];		/* slab_cache_lock */
static unsigned int names_used = SLAB_TAG_FIRST; /* slab_cache_lock; released */
static atomic_t unnamed;			/* caches tagged SLAB_TAG_OTHER */

struct slab_slot slab_slots[SLAB_SLOTS];

/* The cache of which every struct kmem_cache is an object. */
const struct kmem_cache *slab_cache_cache;

/* Where a slab's struct page has the pointer to its cache. */
unsigned int slab_cache_offset;

/* Where struct kmem_cache has the size of its objects. */
unsigned int slab_size_offset;

/* Where it has the pointer to its name. */
static unsigned int name_offset;

/* ==== Filters ==== */

/* The next of the comma-separated patterns in *list; false after the last. */
static bool next_pattern(const char **list, char *pattern, size_t len)
{
	size_t n;

	if (!*list)
		return false;
	n = strchrnul(*list, ',') - *list;
	strscpy(pattern, *list, min(n + 1, len));
	*list = (*list)[n] ? *list + n + 1 : NULL;
	return true;
}

bool slab_filter_check(const char *patterns)
{
	char pattern[SLAB_NAME_LEN];

	while (next_pattern(&patterns, pattern, sizeof(pattern)))
		if (!*pattern)
			return false;
	return true;
}

static bool filter_matches(const struct slab_filter *filter, const char *name)
{
	const char *patterns = filter->patterns;
	char pattern[SLAB_NAME_LEN];

	if (filter->all)
		return true;
	while (next_pattern(&patterns, pattern, sizeof(pattern)))
		if (glob_match(pattern, name))
			return true;
	return false;
}

static void filter_name(struct slab_filter *filter, u16 tag, const char *name)
{
	if (filter_matches(filter, name))
		set_bit(tag, filter->wanted);
}

/*
 * Names that come while this goes on are matched by add_name(), which sees the
 * filter in the list; all the earlier ones here, without holding the lock for
 * as long as that takes.
 */
void slab_filter_add(struct slab_filter *filter, const char *patterns)
{
	unsigned long flags;
	unsigned int used;
	u16 tag;

	filter->all = !*patterns;
	strscpy(filter->patterns, patterns, sizeof(filter->patterns));

	raw_spin_lock_irqsave(&slab_cache_lock, flags);
	list_add(&filter->list, &filters);
	used = names_used;
	raw_spin_unlock_irqrestore(&slab_cache_lock, flags);

	for (tag = SLAB_TAG_LARGE; tag < used; tag++)
		filter_name(filter, tag, names[tag].name);
}

void slab_filter_remove(struct slab_filter *filter)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&slab_cache_lock, flags);
	list_del(&filter->list);
	raw_spin_unlock_irqrestore(&slab_cache_lock, flags);
}

/* ==== Names ==== */

static u8 name_bucket(const char *name)
{
	u32 hash = 0;

	while (*name)
		hash = hash * 31 + *name++;
	return hash_32(hash, ilog2(NAME_BUCKETS));
}

static u16 find_name(const char *name)
{
	u16 tag;

	for (tag = name_heads[name_bucket(name)]; tag; tag = names[tag].next)
		if (!strcmp(names[tag].name, name))
			break;
	return tag;
}

static u16 add_name(const char *name)
{
	u16 *head = &name_heads[name_bucket(name)];
	struct slab_filter *filter;
	u16 tag = names_used;

	lockdep_assert_held(&slab_cache_lock);

	if (tag == SLAB_TAGS)
		return SLAB_TAG_OTHER;
	strscpy(names[tag].name, name, sizeof(names[tag].name));
	names[tag].next = *head;
	*head = tag;
	list_for_each_entry(filter, &filters, list)
		filter_name(filter, tag, name);
	/* Pairs with the acquire in slab_tag_name(). */
	smp_store_release(&names_used, tag + 1);
	return tag;
}

/* The cache is in use, so its name is there. */
static u16 name_cache(const struct kmem_cache *cache)
{
	const char *full = *(const char **)((void *)cache + name_offset);
	char name[SLAB_NAME_LEN];
	u16 tag;

	strscpy(name, full, sizeof(name));
	tag = find_name(name);
	if (!tag)
		tag = add_name(name);
	if (tag == SLAB_TAG_OTHER)
		atomic_inc(&unnamed);
	return tag;
}

const char *slab_tag_name(u16 tag, char *buf, size_t len)
{
	/* Pairs with the release in add_name(). */
	bool known = tag && tag < smp_load_acquire(&names_used);

	strscpy(buf, known ? names[tag].name : "", len);
	return buf;
}

/* ==== Slots ==== */

/* The slot of a cache or the free one where it belongs; NULL: none is near. */
static struct slab_slot *find_slot(const struct kmem_cache *cache)
{
	unsigned int i = hash_ptr(cache, SLAB_SLOT_BITS);
	const struct kmem_cache *found;
	unsigned int probes;

	for (probes = 0; probes < MAX_PROBES; probes++, i++) {
		/* Pairs with the release in insert(). */
		found = smp_load_acquire(&slab_slots[i % SLAB_SLOTS].cache);
		if (!found || found == cache)
			return &slab_slots[i % SLAB_SLOTS];
	}
	return NULL;
}

/* Another CPU, or an interrupt on this one, may have been faster. */
static u16 insert(const struct kmem_cache *cache)
{
	struct slab_slot *slot = find_slot(cache);

	lockdep_assert_held(&slab_cache_lock);

	if (!slot)
		return SLAB_TAG_OTHER;
	if (slot->cache && slot->tag)
		return slot->tag;
	WRITE_ONCE(slot->tag, name_cache(cache));
	/* Pairs with the acquire in slab_tag() and find_slot(). */
	smp_store_release(&slot->cache, cache);
	return slot->tag;
}

u16 slab_cache_find(const struct kmem_cache *cache)
{
	const struct slab_slot *slot = find_slot(cache);
	unsigned long flags;
	u16 tag;

	if (!slot)
		return SLAB_TAG_OTHER;
	tag = READ_ONCE(slot->tag);
	if (READ_ONCE(slot->cache) == cache && tag)
		return tag;
	/* The slab allocator isn't for NMIs: whoever does so gets no name. */
	if (in_nmi())
		return SLAB_TAG_OTHER;
	raw_spin_lock_irqsave(&slab_cache_lock, flags);
	tag = insert(cache);
	raw_spin_unlock_irqrestore(&slab_cache_lock, flags);
	return tag;
}

/* Nobody else can be at this slot's tag: the cache has no objects any more. */
void slab_cache_retire(const void *cache)
{
	struct slab_slot *slot = find_slot(cache);

	if (slot && slot->cache)
		WRITE_ONCE(slot->tag, SLAB_TAG_NONE);
}

void slab_cache_forget(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&slab_cache_lock, flags);
	memset(slab_slots, 0, sizeof(slab_slots));
	raw_spin_unlock_irqrestore(&slab_cache_lock, flags);
}

void slab_cache_show(struct seq_file *m)
{
	seq_printf(m, "slab_caches: %u\n",
		   READ_ONCE(names_used) - SLAB_TAG_FIRST);
	seq_printf(m, "slab_caches_unnamed: %d\n", atomic_read(&unnamed));
}

/* ==== Learning ==== */

/* Of the objects of our cache; nothing else in it has this value. */
enum { ODD_SIZE = 1237 };

/*
 * A cache with a constructor is never merged with another one, so its name
 * stays its own.
 */
static void construct(void *object)
{
}

/* Where the head of an object's slab has a pointer to the cache; 0: nowhere. */
static unsigned int find_cache(const void *object, const void *cache)
{
	const void **folio = (const void **)virt_to_folio(object);
	unsigned int i;

	for (i = 1; i < sizeof(struct page) / sizeof(*folio); i++)
		if (folio[i] == cache)
			return i * sizeof(*folio);
	return 0;
}

/* Most words of the structure are no pointers; they may be tried all the same. */
static bool is_string(const void *p, const char *string)
{
	char copy[32] = "";

	return !copy_from_kernel_nofault(copy, p, strlen(string) + 1) &&
	       !strcmp(copy, string);
}

/*
 * Where a cache has its own copy of its name; 0: nowhere. Its sysfs object has
 * another copy, further on.
 */
static unsigned int find_own_name(const struct kmem_cache *cache,
				  const char *name)
{
	unsigned int words = kmem_cache_size((void *)slab_cache_cache) / sizeof(void *);
	const void **word = (const void **)cache;
	unsigned int i;

	for (i = 1; i < words; i++)
		if (word[i] != name && is_string(word[i], name))
			return i * sizeof(*word);
	return 0;
}

/*
 * Where a cache has the size of its objects; 0: nowhere, or in two places. Other
 * sizes that it has are rounded up.
 */
static unsigned int find_size(struct kmem_cache *cache)
{
	unsigned int words = kmem_cache_size((void *)slab_cache_cache) / sizeof(u32);
	const u32 *word = (const u32 *)cache;
	unsigned int i, found = 0;

	for (i = 0; i < words; i++) {
		if (word[i] != kmem_cache_size(cache))
			continue;
		if (found)
			return 0;
		found = i * sizeof(*word);
	}
	return found;
}

static int learn_from(struct kmem_cache *cache, const char *name)
{
	void *object = kmem_cache_alloc(cache, GFP_KERNEL);

	if (!object)
		return -ENOMEM;
	slab_cache_offset = find_cache(object, cache);
	kmem_cache_free(cache, object);
	if (!slab_cache_offset)
		return -EOPNOTSUPP;
	slab_cache_cache = slab_cache_of(cache);
	if (!slab_cache_cache)
		return -EOPNOTSUPP;
	slab_size_offset = find_size(cache);
	name_offset = find_own_name(cache, name);
	return slab_size_offset && name_offset ? 0 : -EOPNOTSUPP;
}

int slab_cache_learn(void)
{
	struct kmem_cache *cache;
	char name[32];
	int ret;

	snprintf(name, sizeof(name), "btlog-%016llx", get_random_u64());
	cache = kmem_cache_create(name, ODD_SIZE, 0, 0, construct);
	if (!cache)
		return -ENOMEM;
	ret = learn_from(cache, name);
	kmem_cache_destroy(cache);
	if (ret)
		pr_warn("slab: this kernel's caches can't be told apart\n");
	return ret;
}
