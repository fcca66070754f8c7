// SPDX-License-Identifier: GPL-2.0
/*
 * image.c - address <-> frame: the kernel, loads of modules, other text
 *
 * A frame is a position in a space of 32 bits, of which each image has a range
 * of its own, for ever:
 *
 *	0		no frame
 *	1		text for which no image could be had
 *	FRAME_PAGES	pages of other text: BPF, trampolines, in order of sight
 *	FRAME_KERNEL	the kernel
 *	next_base	core and init text of modules, in order of loading
 *
 * So a stack never changes its meaning: whoever used the same addresses later
 * has other frames.
 *
 * Lock order: image_lock, inside it pages.lock (raw, a leaf). The hot path
 * reads text_map under RCU and takes at most pages.lock, in NMI by trylock.
 */
#include <linux/elf.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/timekeeping.h>

#include "internal.h"

enum {
	BUILD_ID_LEN	= 20,
	NOTE_BUILD_ID	= 3,
	NOTES_LEN	= 4096,		/* of notes read for a build-id at most */
	SAVED_NAMES	= 4096,		/* of one image at most */
	SAVED_BYTES	= 16 << 20,	/* of all saved names at most */
	PAGES_BITS	= 10,
	NR_PAGES	= 1 << PAGES_BITS,
	FRAME_UNKNOWN	= 1,
	FRAME_PAGES	= 1 << PAGE_SHIFT,
	FRAME_KERNEL	= 1 << 23,
};

static_assert(FRAME_PAGES + NR_PAGES * PAGE_SIZE <= FRAME_KERNEL);

/**
 * struct saved_names - names of an unloaded image's frames
 * @nr: how many
 * @names: sorted by frame; the text is an offset from the beginning of the
 *	structure, behind which all text lies
 */
struct saved_names {
	unsigned int nr;
	struct saved_name {
		u32 frame;
		u32 text;
	} names[];
};

/**
 * struct image - a piece of text
 * @name: I: module or "kernel"
 * @init: I: a module's init text
 * @start: I: where it lies, or lay
 * @size: I: bytes
 * @base: I: frame of @start; @size + 1 frames belong to the image, for the last
 *	instruction may be a call
 * @used: A: a frame was given out
 * @live: image_lock: not unloaded yet
 * @loaded: I: seconds since boot when it was first seen
 * @unloaded: image_lock: seconds since boot
 * @build_id: published by @build_id_len
 * @build_id_len: image_lock, A
 * @names: image_lock, A: set at unloading
 */
struct image {
	char name[MODULE_NAME_LEN];
	bool init;
	unsigned long start;
	u32 size;
	u32 base;
	bool used;
	bool live;
	time64_t loaded;
	time64_t unloaded;
	u8 build_id[BUILD_ID_LEN];
	u8 build_id_len;
	struct saved_names *names;
};

/* All images that have ever given out a frame, and more; sorted by base. */
struct image_table {
	struct rcu_head rcu;
	unsigned int nr;
	unsigned int room;
	struct image *images[];
};

/*
 * What is loaded, sorted by address: all that the hot path looks at. Images
 * that are unloaded stay in it until the next one comes; @live tells.
 */
struct text_map {
	struct rcu_head rcu;
	unsigned int nr;
	struct text_range {
		unsigned long start;
		u32 size;
		u32 base;
		struct image *image;
	} ranges[];
};

/* A page of text that belongs to no known image when it is first seen. */
struct text_page {
	unsigned long nr;
	time64_t seen;
	time64_t retired;
};

/*
 * @slots: open addressing by page number, index + 1 into @pages; filled under
 * the lock, read without it. Nothing is taken out: the slot of a retired page
 * is pointed to a new one when the page is seen again.
 */
static struct {
	raw_spinlock_t lock;
	unsigned int nr;
	u16 slots[2 * NR_PAGES];
	struct text_page pages[NR_PAGES];
} pages = { .lock = __RAW_SPIN_LOCK_UNLOCKED(pages.lock) };

enum image_counter {
	IMC_UNKNOWN_TEXT,	/* frames given out as FRAME_UNKNOWN */
	IMC_NMI_BUSY,		/* of them, because an NMI met the lock */
	IMC_NO_SPACE,		/* loads that found the frame space full */
	IMC_NO_MEMORY,		/* loads or unloads that could not be noted */
	IMC_NAMES_LOST,		/* frames whose name was not saved */
	IMC_NR
};

static const char * const counter_names[] = {
	[IMC_UNKNOWN_TEXT]	= "unknown_text",
	[IMC_NMI_BUSY]		= "nmi_busy",
	[IMC_NO_SPACE]		= "no_space",
	[IMC_NO_MEMORY]		= "no_memory",
	[IMC_NAMES_LOST]	= "names_lost",
};

static_assert(ARRAY_SIZE(counter_names) == IMC_NR);

static atomic_long_t counters[IMC_NR];

static DEFINE_MUTEX(image_lock);
static struct image_table __rcu *image_table;
static struct text_map __rcu *text_map;
static struct image kernel_image = { .name = "kernel", .live = true };
static u64 next_base;
static size_t saved_bytes;
static u32 own_base, own_size;

/* ==== Symbols that are not exported ==== */

/*
 * A disabled probe is resolved, but never armed; the address stays noted even
 * if a probe is refused there.
 */
bool image_find_symbol(const char *name, struct bt_range *symbol)
{
	struct kprobe kp = {
		.symbol_name = name,
		.flags = KPROBE_FLAG_DISABLED,
	};
	char text[KSYM_SYMBOL_LEN];
	unsigned long off, size;
	char *plus;

	if (!register_kprobe(&kp))
		unregister_kprobe(&kp);
	if (!kp.addr)
		return false;

	/* The probe of a function lies behind its ENDBR. */
	sprint_symbol(text, (unsigned long)kp.addr);
	plus = strrchr(text, '+');
	if (!plus || sscanf(plus, "+%lx/%lx", &off, &size) != 2)
		return false;
	symbol->start = (unsigned long)kp.addr - off;
	symbol->size = size;
	return true;
}
EXPORT_SYMBOL_FOR_TESTS(image_find_symbol);

/* ==== Address to frame ==== */

static const struct text_range *find_range(unsigned long addr)
{
	const struct text_map *map = rcu_dereference_sched(text_map);
	unsigned int lo = 0, hi = map ? map->nr : 0;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;
		const struct text_range *r = &map->ranges[mid];

		if (addr < r->start)
			hi = mid;
		else if (addr - r->start > r->size)
			lo = mid + 1;
		else
			return READ_ONCE(r->image->live) ? r : NULL;
	}
	return NULL;
}

u32 image_known_frame(unsigned long addr)
{
	const struct text_range *r;

	if (likely(addr - kernel_image.start <= kernel_image.size))
		return FRAME_KERNEL + (addr - kernel_image.start);

	r = find_range(addr);
	if (!r)
		return 0;
	if (!READ_ONCE(r->image->used))
		WRITE_ONCE(r->image->used, true);
	return r->base + (addr - r->start);
}
EXPORT_SYMBOL_FOR_TESTS(image_known_frame);

/* The slot in which a page is noted, or is to be noted; NULL: none is free. */
static u16 *find_slot(unsigned long page)
{
	unsigned int i = hash_long(page, PAGES_BITS + 1);
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(pages.slots); n++) {
		u16 *slot = &pages.slots[(i + n) % ARRAY_SIZE(pages.slots)];
		/* Pairs with the release in note_page(). */
		unsigned int index = smp_load_acquire(slot);

		if (!index || pages.pages[index - 1].nr == page)
			return slot;
	}
	return NULL;
}

static u32 page_frame(unsigned int index, unsigned long addr)
{
	return FRAME_PAGES + index * PAGE_SIZE + offset_in_page(addr);
}

/* The frame of an address whose page was seen before, else 0. */
static u32 noted_frame(unsigned long addr, u16 **slot)
{
	unsigned int index;

	*slot = find_slot(addr >> PAGE_SHIFT);
	index = *slot ? READ_ONCE(**slot) : 0;
	if (!index || READ_ONCE(pages.pages[index - 1].retired))
		return 0;
	return page_frame(index - 1, addr);
}

static u32 note_page(unsigned long addr)
{
	unsigned int index = pages.nr;
	struct text_page *page;
	u16 *slot;
	u32 frame;

	lockdep_assert_held(&pages.lock);

	frame = noted_frame(addr, &slot);
	if (frame || !slot || index == NR_PAGES)
		return frame;
	page = &pages.pages[index];
	page->nr = addr >> PAGE_SHIFT;
	page->seen = div_u64(ktime_get_boot_fast_ns(), NSEC_PER_SEC);
	/* Pairs with page_used(): who sees the number sees the page. */
	smp_store_release(&pages.nr, index + 1);
	/* Pairs with the acquire in find_slot(). */
	smp_store_release(slot, index + 1);
	return page_frame(index, addr);
}

static u32 new_page_frame(unsigned long addr)
{
	unsigned long flags;
	u32 frame;

	if (!in_nmi()) {
		raw_spin_lock_irqsave(&pages.lock, flags);
	} else if (!raw_spin_trylock_irqsave(&pages.lock, flags)) {
		atomic_long_inc(&counters[IMC_NMI_BUSY]);
		return 0;
	}
	frame = note_page(addr);
	raw_spin_unlock_irqrestore(&pages.lock, flags);
	return frame;
}

u32 image_frame(unsigned long addr)
{
	u32 frame = image_known_frame(addr);
	u16 *slot;

	if (likely(frame))
		return frame;
	frame = noted_frame(addr, &slot) ?: new_page_frame(addr);
	if (likely(frame))
		return frame;
	atomic_long_inc(&counters[IMC_UNKNOWN_TEXT]);
	return FRAME_UNKNOWN;
}
EXPORT_SYMBOL_FOR_TESTS(image_frame);

bool image_is_own(u32 frame)
{
	return frame - own_base < own_size;
}
EXPORT_SYMBOL_FOR_TESTS(image_is_own);

/* ==== Frame to image; under RCU ==== */

static struct image *find_image(u32 frame)
{
	const struct image_table *table = rcu_dereference(image_table);
	unsigned int lo = 0, hi;

	if (!table)
		return NULL;
	/* Pairs with the release in append_image(). */
	hi = smp_load_acquire(&table->nr);
	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;
		struct image *image = table->images[mid];

		if (frame < image->base)
			hi = mid;
		else if (frame - image->base > image->size)
			lo = mid + 1;
		else
			return image;
	}
	return NULL;
}

/* The page of a frame, if it is a frame of other text that was given out. */
static const struct text_page *page_of_frame(u32 frame)
{
	unsigned int index = (frame - FRAME_PAGES) >> PAGE_SHIFT;

	/* Pairs with the release in note_page(). */
	if (frame < FRAME_PAGES || index >= smp_load_acquire(&pages.nr))
		return NULL;
	return &pages.pages[index];
}

static unsigned long page_address_of(const struct text_page *page, u32 frame)
{
	return page->nr << PAGE_SHIFT | offset_in_page((unsigned long)frame);
}

static unsigned long address_of(u32 frame)
{
	const struct text_page *page = page_of_frame(frame);
	const struct image *image;

	if (page)
		return READ_ONCE(page->retired) ? 0 : page_address_of(page, frame);
	image = find_image(frame);
	if (!image || !READ_ONCE(image->live))
		return 0;
	return image->start + (frame - image->base);
}

unsigned long image_address(u32 frame)
{
	unsigned long addr;

	rcu_read_lock();
	addr = address_of(frame);
	rcu_read_unlock();
	return addr;
}
EXPORT_SYMBOL_FOR_TESTS(image_address);

bool image_in_module(u32 frame, const char *module)
{
	const struct image *image;
	bool in;

	rcu_read_lock();
	image = find_image(frame);
	in = image && !strcmp(image->name, module);
	rcu_read_unlock();
	return in;
}
EXPORT_SYMBOL_FOR_TESTS(image_in_module);

/* ==== Frame to text ==== */

/* Print the build-id, led by a space, if there is one. */
static int print_build_id(char *buf, size_t len, const struct image *image)
{
	/* Pairs with the release in read_build_id(). */
	u8 n = smp_load_acquire(&image->build_id_len);

	return n ? scnprintf(buf, len, " %*phN", n, image->build_id) : 0;
}

static const char *image_part(const struct image *image)
{
	return image->init ? ":init" : "";
}

static int print_offset(char *buf, const struct image *image, u32 frame)
{
	int len;

	len = scnprintf(buf, IMAGE_SYMBOL_LEN, "[%s%s", image->name,
			image_part(image));
	len += print_build_id(buf + len, IMAGE_SYMBOL_LEN - len, image);
	len += scnprintf(buf + len, IMAGE_SYMBOL_LEN - len, " +0x%x]",
			 frame - image->base);
	return len;
}

/* Print what the kernel calls the call before @addr; 0 if it has no name. */
static int print_live(char *buf, unsigned long addr)
{
	int len = scnprintf(buf, IMAGE_SYMBOL_LEN, "%pB", (void *)addr);

	return str_has_prefix(buf, "0x") ? 0 : len;
}

static int print_page(char *buf, const struct text_page *page, u32 frame)
{
	unsigned long addr = page_address_of(page, frame);
	int len = 0;

	if (!READ_ONCE(page->retired))
		len = print_live(buf, addr);
	return len ?: scnprintf(buf, IMAGE_SYMBOL_LEN, "[text +0x%lx]", addr);
}

static const char *saved_name(const struct image *image, u32 frame)
{
	/* Pairs with the release in save_names(). */
	const struct saved_names *saved = smp_load_acquire(&image->names);
	unsigned int lo = 0, hi = saved ? saved->nr : 0;

	while (lo < hi) {
		unsigned int mid = (lo + hi) / 2;

		if (frame < saved->names[mid].frame)
			hi = mid;
		else if (frame > saved->names[mid].frame)
			lo = mid + 1;
		else
			return (const char *)saved + saved->names[mid].text;
	}
	return NULL;
}

static int print_unloaded(char *buf, const struct image *image, u32 frame)
{
	const char *name = saved_name(image, frame);

	if (!name)
		return 0;
	return scnprintf(buf, IMAGE_SYMBOL_LEN, "%s [%s (unloaded)]", name,
			 image->name);
}

/*
 * A live module can't be replaced under our hands: its memory is freed after
 * an RCU grace period that begins after it was marked unloaded.
 */
static int print_image(char *buf, const struct image *image, u32 frame)
{
	u32 off = frame - image->base;
	int len;

	if (READ_ONCE(image->live))
		len = print_live(buf, image->start + off);
	else
		len = print_unloaded(buf, image, frame);
	return len ?: print_offset(buf, image, frame);
}

int image_symbol(char *buf, u32 frame)
{
	const struct text_page *page = page_of_frame(frame);
	const struct image *image;
	int len;

	if (page)
		return print_page(buf, page, frame);
	if (frame == FRAME_UNKNOWN)
		return scnprintf(buf, IMAGE_SYMBOL_LEN, "[unknown text]");

	rcu_read_lock();
	image = find_image(frame);
	if (image)
		len = print_image(buf, image, frame);
	else
		len = scnprintf(buf, IMAGE_SYMBOL_LEN, "[frame 0x%x]", frame);
	rcu_read_unlock();
	return len;
}
EXPORT_SYMBOL_FOR_TESTS(image_symbol);

/* ==== The file of images ==== */

static void show_image(struct seq_file *m, const struct image *image)
{
	char id[2 * BUILD_ID_LEN + 2];
	bool live = READ_ONCE(image->live);

	if (!print_build_id(id, sizeof(id), image))
		strscpy(id, " -", sizeof(id));
	seq_printf(m, "0x%08x %u %s 0x%lx%s %lld ", image->base, image->size,
		   live ? "live" : "unloaded", image->start, id,
		   image->loaded);
	if (live)
		seq_puts(m, "-");
	else
		seq_printf(m, "%lld", image->unloaded);
	seq_printf(m, " %s%s\n", image->name, image_part(image));
}

static void show_page(struct seq_file *m, unsigned int index)
{
	const struct text_page *page = &pages.pages[index];
	time64_t retired = READ_ONCE(page->retired);

	seq_printf(m, "0x%08x %lu %s 0x%lx - %lld ", page_frame(index, 0),
		   PAGE_SIZE, retired ? "unloaded" : "dynamic",
		   page->nr << PAGE_SHIFT, page->seen);
	if (retired)
		seq_printf(m, "%lld", retired);
	else
		seq_puts(m, "-");
	seq_puts(m, " [text]\n");
}

void image_show(struct seq_file *m)
{
	const struct image_table *table;
	unsigned int i;

	seq_puts(m, "# frame_base size state address build_id loaded_s unloaded_s name\n");
	/* Pairs with the release in note_page(). */
	for (i = 0; i < smp_load_acquire(&pages.nr); i++)
		show_page(m, i);
	rcu_read_lock();
	table = rcu_dereference(image_table);
	/* Pairs with the release in append_image(). */
	for (i = 0; i < smp_load_acquire(&table->nr); i++)
		show_image(m, table->images[i]);
	rcu_read_unlock();
	for (i = 0; i < IMC_NR; i++)
		seq_printf(m, "# %s: %ld\n", counter_names[i],
			   atomic_long_read(&counters[i]));
}

/* ==== Images that come ==== */

static struct image_table *locked_table(void)
{
	return rcu_dereference_protected(image_table,
					 lockdep_is_held(&image_lock));
}

static int compare_ranges(const void *a, const void *b)
{
	const struct text_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Build anew what the hot path looks at; if that fails it keeps the old one. */
static int publish_map(void)
{
	struct image_table *table = locked_table();
	struct text_map *old, *new;
	unsigned int i;

	new = kvzalloc(struct_size(new, ranges, table->nr), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	for (i = 0; i < table->nr; i++) {
		struct image *image = table->images[i];

		if (image->live && image != &kernel_image)
			new->ranges[new->nr++] = (struct text_range){
				.start = image->start, .size = image->size,
				.base = image->base, .image = image };
	}
	sort(new->ranges, new->nr, sizeof(new->ranges[0]), compare_ranges, NULL);
	old = rcu_replace_pointer(text_map, new, lockdep_is_held(&image_lock));
	if (old)
		kvfree_rcu(old, rcu);
	return 0;
}

static bool is_forgettable(const struct image *image)
{
	return !image->live && !image->used;
}

static struct image_table *copy_table(const struct image_table *old)
{
	unsigned int room = old ? 2 * old->nr : 64;
	struct image_table *new;
	unsigned int i;

	new = kvzalloc(struct_size(new, images, room), GFP_KERNEL);
	if (!new)
		return NULL;
	new->room = room;
	for (i = 0; old && i < old->nr; i++)
		if (!is_forgettable(old->images[i]))
			new->images[new->nr++] = old->images[i];
	return new;
}

/*
 * Make room for one more image. Images that are gone without ever having
 * given out a frame are forgotten on the way, so that reloading a module for
 * ever needs no memory for ever.
 */
static int grow_table(void)
{
	struct image_table *old = locked_table();
	struct image_table *new;
	unsigned int i;

	lockdep_assert_held(&image_lock);

	if (old && old->nr < old->room)
		return 0;
	/* Who still has an older map may be about to use an unloaded image. */
	if (old && publish_map())
		return -ENOMEM;
	synchronize_rcu();
	new = copy_table(old);
	if (!new)
		return -ENOMEM;
	rcu_assign_pointer(image_table, new);
	if (!old)
		return 0;
	synchronize_rcu();
	for (i = 0; i < old->nr; i++)
		if (is_forgettable(old->images[i]))
			kfree(old->images[i]);
	kvfree(old);
	return 0;
}

static void append_image(struct image *image)
{
	struct image_table *table = locked_table();

	table->images[table->nr] = image;
	/* Pairs with find_image() and image_show(). */
	smp_store_release(&table->nr, table->nr + 1);
}

/* Pages that were other text until now have become an image's. */
static void retire_pages(const struct image *image)
{
	unsigned long first = image->start >> PAGE_SHIFT;
	unsigned long last = (image->start + image->size) >> PAGE_SHIFT;
	unsigned int i;

	/* Pairs with the release in note_page(). */
	for (i = 0; i < smp_load_acquire(&pages.nr); i++) {
		struct text_page *page = &pages.pages[i];

		if (page->nr >= first && page->nr <= last && !page->retired)
			WRITE_ONCE(page->retired, ktime_get_boottime_seconds());
	}
}

static struct image *live_image(const char *name, bool init)
{
	struct image_table *table = locked_table();
	unsigned int i;

	for (i = table->nr; i--; ) {
		struct image *image = table->images[i];

		if (image->live && image->init == init &&
		    !strcmp(image->name, name))
			return image;
	}
	return NULL;
}

static int add_image(const char *name, bool init, struct bt_text text)
{
	struct image *image;
	int err;

	lockdep_assert_held(&image_lock);

	if (!text.size || live_image(name, init))
		return 0;
	if (next_base + text.size >= U32_MAX) {
		atomic_long_inc(&counters[IMC_NO_SPACE]);
		return 0;
	}
	err = grow_table();
	if (err)
		return err;
	image = kzalloc(sizeof(*image), GFP_KERNEL);
	if (!image)
		return -ENOMEM;
	strscpy(image->name, name, sizeof(image->name));
	image->init = init;
	image->start = text.start;
	image->size = text.size;
	image->base = next_base;
	image->live = true;
	image->loaded = ktime_get_boottime_seconds();
	next_base += text.size + 1;
	append_image(image);
	retire_pages(image);
	return 0;
}

static int add_module(const struct module *mod)
{
	int err;

	err = add_image(mod->name, false, module_core_text(mod));
	if (!err)
		err = add_image(mod->name, true, module_init_text(mod));
	if (!err)
		err = publish_map();
	if (err)
		atomic_long_inc(&counters[IMC_NO_MEMORY]);
	unwind_invalidate();
	return err;
}

/* ==== Build-ids ==== */

static void note_build_id(struct image *image, const void *id, size_t len)
{
	len = min_t(size_t, len, BUILD_ID_LEN);
	memcpy(image->build_id, id, len);
	/* Pairs with print_build_id(). */
	smp_store_release(&image->build_id_len, len);
}

static void find_build_id(struct image *image, const void *notes, size_t len)
{
	const struct elf64_note *note = notes;

	while (len >= sizeof(*note)) {
		size_t name = ALIGN(note->n_namesz, 4);
		size_t all = sizeof(*note) + name + ALIGN(note->n_descsz, 4);
		const char *text = (const char *)(note + 1);

		if (all > len)
			return;
		if (note->n_type == NOTE_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(text, "GNU", 4))
			return note_build_id(image, text + name, note->n_descsz);
		note = (const void *)note + all;
		len -= all;
	}
}

/* kernel_read_file() would ask the security modules what it is read for. */
static ssize_t read_notes(const char *path, void *notes)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	loff_t pos = 0;
	ssize_t len;

	if (IS_ERR(file))
		return PTR_ERR(file);
	len = kernel_read(file, notes, NOTES_LEN, &pos);
	fput(file);
	return len;
}

/* Nothing exported gives a build-id; sysfs does. Images go without, if need be. */
static void read_build_id(struct image *image)
{
	char path[sizeof("/sys/module//notes/.note.gnu.build-id") + MODULE_NAME_LEN];
	void *notes;
	ssize_t len;

	lockdep_assert_held(&image_lock);

	if (image->build_id_len)
		return;
	if (image == &kernel_image)
		strscpy(path, "/sys/kernel/notes", sizeof(path));
	else
		snprintf(path, sizeof(path),
			 "/sys/module/%s/notes/.note.gnu.build-id", image->name);
	notes = kmalloc(NOTES_LEN, GFP_KERNEL);
	if (!notes)
		return;
	len = read_notes(path, notes);
	if (len > 0)
		find_build_id(image, notes, len);
	kfree(notes);
}

/* ==== Images that go ==== */

struct frame_set {
	u32 base;
	unsigned long *bits;
};

static void add_to_set(u32 frame, void *arg)
{
	struct frame_set *set = arg;

	__set_bit(frame - set->base, set->bits);
}

/* "name+0x1/0x2": what follows would be the module. */
static int print_bare(char *buf, unsigned long addr)
{
	int len = print_live(buf, addr);
	char *module = len ? strstr(buf, " [") : NULL;

	if (!module)
		return len;
	*module = '\0';
	return module - buf;
}

/* Copy an index of @nr names and the @len bytes of their text into one piece. */
static struct saved_names *pack_names(const struct saved_name *index,
				      unsigned int nr, const char *text,
				      size_t len)
{
	struct saved_names *saved;
	size_t head = struct_size(saved, names, nr);
	unsigned int i;

	if (!nr || saved_bytes + head + len > SAVED_BYTES)
		return NULL;
	saved = kvmalloc(head + len, GFP_KERNEL);
	if (!saved)
		return NULL;
	saved->nr = nr;
	for (i = 0; i < nr; i++)
		saved->names[i] = (struct saved_name){
			.frame = index[i].frame, .text = head + index[i].text };
	memcpy((char *)saved + head, text, len);
	saved_bytes += head + len;
	return saved;
}

static struct saved_names *name_set(const struct image *image,
				    const struct frame_set *set)
{
	unsigned int bit, nr = 0, room, all;
	struct saved_names *saved = NULL;
	struct saved_name *index;
	size_t len = 0;
	char *text;

	all = bitmap_weight(set->bits, image->size + 1);
	room = min_t(unsigned int, all, SAVED_NAMES);
	index = kvmalloc_array(room, sizeof(*index), GFP_KERNEL);
	text = kvmalloc_array(room, IMAGE_SYMBOL_LEN, GFP_KERNEL);
	for_each_set_bit(bit, set->bits, image->size + 1) {
		int n;

		if (!index || !text || nr == room)
			break;
		n = print_bare(text + len, image->start + bit);
		if (!n)
			continue;
		index[nr++] = (struct saved_name){
			.frame = image->base + bit, .text = len };
		len += n + 1;
	}
	if (index && text)
		saved = pack_names(index, nr, text, len);
	atomic_long_add(all - (saved ? nr : 0), &counters[IMC_NAMES_LOST]);
	kvfree(text);
	kvfree(index);
	return saved;
}

/* Save the names of those frames that stacks in the library still use. */
static void save_names(struct image *image)
{
	struct frame_set set = { .base = image->base };

	if (!READ_ONCE(image->used))
		return;
	set.bits = kvcalloc(BITS_TO_LONGS(image->size + 1), sizeof(long),
			    GFP_KERNEL);
	if (!set.bits) {
		atomic_long_inc(&counters[IMC_NO_MEMORY]);
		return;
	}
	btlib_visit_frames(image->base, image->base + image->size + 1,
			   add_to_set, &set);
	/* Pairs with the acquire in saved_name(). */
	smp_store_release(&image->names, name_set(image, &set));
	kvfree(set.bits);
}

static void unload_image(struct image *image)
{
	lockdep_assert_held(&image_lock);

	if (!image)
		return;
	read_build_id(image);
	save_names(image);
	image->unloaded = ktime_get_boottime_seconds();
	WRITE_ONCE(image->live, false);
}

static void unload_module(const struct module *mod, bool core)
{
	mutex_lock(&image_lock);
	unload_image(live_image(mod->name, true));
	if (core)
		unload_image(live_image(mod->name, false));
	mutex_unlock(&image_lock);
	unwind_invalidate();
}

static void leave_init(const struct module *mod)
{
	struct image *image;

	unload_module(mod, false);
	mutex_lock(&image_lock);
	image = live_image(mod->name, false);
	if (image)
		read_build_id(image);
	mutex_unlock(&image_lock);
}

/* ==== Modules ==== */

static int module_comes(struct notifier_block *nb, unsigned long event,
			void *data)
{
	const struct module *mod = data;

	switch (event) {
	case MODULE_STATE_COMING:
		mutex_lock(&image_lock);
		add_module(mod);
		mutex_unlock(&image_lock);
		break;
	case MODULE_STATE_LIVE:
		leave_init(mod);
		break;
	case MODULE_STATE_GOING:
		/* Somebody else's veto: those behind him are told nothing. */
		if (mod->state == MODULE_STATE_COMING)
			unload_module(mod, true);
		break;
	}
	return NOTIFY_OK;
}

static int module_goes(struct notifier_block *nb, unsigned long event,
		       void *data)
{
	if (event == MODULE_STATE_GOING)
		unload_module(data, true);
	return NOTIFY_OK;
}

/*
 * Notifiers of others may run a module's code while it comes or goes: be the
 * first to see it come and the last to see it go.
 */
static struct notifier_block coming = {
	.notifier_call = module_comes,
	.priority = INT_MAX,
};

static struct notifier_block going = {
	.notifier_call = module_goes,
	.priority = INT_MIN,
};

/* A module that was there before us, copied to be handled out of RCU. */
struct early_module {
	char name[MODULE_NAME_LEN];
	struct bt_text core;
	struct bt_text init;
};

/*
 * The list of modules has no exported head, but this module is in it. The
 * head itself lies in the kernel's data, below all modules.
 */
static unsigned int copy_modules(struct early_module *copy, unsigned int room)
{
	struct list_head *self = &THIS_MODULE->list;
	struct list_head *pos = self;
	unsigned int n = 0;

	rcu_read_lock();
	while ((pos = rcu_dereference(list_next_rcu(pos))) != self) {
		struct module *mod = list_entry(pos, struct module, list);
		int state;

		if ((unsigned long)pos < MODULES_VADDR)
			continue;
		state = READ_ONCE(mod->state);
		if (state != MODULE_STATE_LIVE && state != MODULE_STATE_COMING)
			continue;
		if (n < room) {
			strscpy(copy[n].name, mod->name, sizeof(copy[n].name));
			copy[n].core = module_core_text(mod);
			/* Of a live one it may be about to be freed. */
			copy[n].init.size = 0;
			if (state == MODULE_STATE_COMING)
				copy[n].init = module_init_text(mod);
		}
		n++;
	}
	rcu_read_unlock();
	return n;
}

static int add_early(const struct early_module *early, unsigned int n)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		err = add_image(early[i].name, false, early[i].core);
		if (!err)
			err = add_image(early[i].name, true, early[i].init);
	}
	return err ?: publish_map();
}

/* Note the modules that came before the notifier was there. */
static int add_early_modules(void)
{
	struct early_module *early = NULL;
	unsigned int n = 0, room;
	int err;

	lockdep_assert_held(&image_lock);

	do {
		room = n + 8;
		kvfree(early);
		early = kvmalloc_array(room, sizeof(*early), GFP_KERNEL);
		if (!early)
			return -ENOMEM;
		n = copy_modules(early, room);
	} while (n > room);
	err = add_early(early, n);
	kvfree(early);
	return err;
}

/* ==== Start and end ==== */

static void find_kernel(void)
{
	struct bt_range start, end;

	kernel_image.start = __START_KERNEL_map;
	if (image_find_symbol("_stext", &start))
		kernel_image.start = start.start;
	kernel_image.size = MODULES_VADDR - kernel_image.start - 1;
	/* The last symbol that is still inside the kernel: init text as well. */
	if (image_find_symbol("__bss_stop", &end))
		kernel_image.size = end.start - kernel_image.start;
	kernel_image.base = FRAME_KERNEL;
	kernel_image.used = true;
	next_base = (u64)FRAME_KERNEL + kernel_image.size + 1;
}

static void read_build_ids(void)
{
	struct image_table *table = locked_table();
	unsigned int i;

	for (i = 0; i < table->nr; i++)
		if (!table->images[i]->init)
			read_build_id(table->images[i]);
}

static int add_first_images(void)
{
	int err;

	err = grow_table();
	if (err)
		return err;
	append_image(&kernel_image);
	own_base = next_base;
	err = add_module(THIS_MODULE);
	if (err)
		return err;
	own_size = next_base - own_base;
	err = add_early_modules();
	if (err)
		return err;
	read_build_ids();
	return 0;
}

int image_init(void)
{
	int err;

	find_kernel();
	register_module_notifier(&coming);
	register_module_notifier(&going);
	mutex_lock(&image_lock);
	err = add_first_images();
	mutex_unlock(&image_lock);
	if (err)
		image_exit();
	return err;
}

static void free_image(struct image *image)
{
	if (image == &kernel_image)
		return;
	kvfree(image->names);
	kfree(image);
}

void image_exit(void)
{
	struct image_table *table;
	unsigned int i;

	unregister_module_notifier(&going);
	unregister_module_notifier(&coming);
	mutex_lock(&image_lock);
	table = locked_table();
	for (i = 0; table && i < table->nr; i++)
		free_image(table->images[i]);
	kvfree(table);
	kvfree(rcu_dereference_protected(text_map, true));
	mutex_unlock(&image_lock);
}
