// SPDX-License-Identifier: GPL-2.0
/*
 * awkward.c - slab objects that are freed in unusual ways
 *
 * Test only, for what no system call reaches reliably: frees in bulk and after
 * a grace period, by the wrong function, in another context or on another CPU.
 * Everything is done at load time; all is freed once the module is unloaded and
 * some seconds have passed, as kfree_rcu() takes its time.
 */
#include <linux/completion.h>
#include <linux/irq_work.h>
#include <linux/mempool.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

static unsigned int rounds = 100;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "how often each way is gone");

enum {
	BULK		= 24,
	LARGE		= 20000,	/* has pages of its own */
	TYPESAFE_SIZE	= 152,
};

/* Sizes that the compiler can't see, so that it calls the general function. */
static size_t sizes[] = { 8, 40, 64, 96, 700, 2048, 8192, LARGE, 100000 };

struct delayed {
	char text[48];
	struct rcu_head rcu;
};

static struct kmem_cache *cache, *typesafe;

static void constructor(void *object)
{
}

/* ==== After a grace period ==== */

static void with_head(void)
{
	struct delayed *d = kmalloc(sizeof(*d), GFP_KERNEL);

	if (d)
		kfree_rcu(d, rcu);
}

static void without_head(void)
{
	unsigned int i;
	void *object;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		object = kmalloc(sizes[i], GFP_KERNEL);
		if (object)
			kvfree_rcu_mightsleep(object);
	}
	object = vmalloc(5000);
	if (object)
		kvfree_rcu_mightsleep(object);
}

static void free_delayed(struct rcu_head *rcu)
{
	kmem_cache_free(cache, container_of(rcu, struct delayed, rcu));
}

static void by_callback(void)
{
	struct delayed *d = kmem_cache_alloc(cache, GFP_KERNEL);

	if (d)
		call_rcu(&d->rcu, free_delayed);
}

/* Its slabs outlive their objects by a grace period. */
static void reused_under_rcu(void)
{
	void *objects[BULK];
	int i;

	if (kmem_cache_alloc_bulk(typesafe, GFP_KERNEL, BULK, objects) != BULK)
		return;
	for (i = 0; i < BULK; i++)
		kmem_cache_free(typesafe, objects[i]);
	kmem_cache_shrink(typesafe);
}

/* ==== In bulk, and by another function than expected ==== */

static void bulk_then_bulk(void)
{
	void *objects[BULK];

	if (kmem_cache_alloc_bulk(cache, GFP_KERNEL, BULK, objects) == BULK)
		kmem_cache_free_bulk(cache, BULK, objects);
}

static void bulk_then_single(void)
{
	void *objects[BULK];
	int i;

	if (kmem_cache_alloc_bulk(cache, GFP_KERNEL, BULK, objects) != BULK)
		return;
	for (i = 0; i < BULK / 2; i++)
		kmem_cache_free(cache, objects[i]);
	kfree_bulk(BULK / 2, objects + BULK / 2);
}

static void mixed_bulk(void)
{
	void *objects[ARRAY_SIZE(sizes) + 1];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		objects[i] = kmalloc(sizes[i], GFP_KERNEL);
		if (!objects[i])
			break;
	}
	if (i < ARRAY_SIZE(sizes)) {
		while (i--)
			kfree(objects[i]);
		return;
	}
	objects[i] = kmem_cache_alloc(cache, GFP_KERNEL);
	kfree_bulk(objects[i] ? i + 1 : i, objects);
}

static void cache_object_by_kfree(void)
{
	kfree(kmem_cache_alloc(cache, GFP_KERNEL));
	kfree_sensitive(kmem_cache_zalloc(cache, GFP_KERNEL | __GFP_ACCOUNT));
}

static void short_lived_cache(void)
{
	struct kmem_cache *own;
	void *objects[BULK];

	own = kmem_cache_create("awkward_short", 264, 0, 0, constructor);
	if (!own)
		return;
	if (kmem_cache_alloc_bulk(own, GFP_KERNEL, BULK, objects) == BULK)
		kmem_cache_free_bulk(own, BULK, objects);
	kmem_cache_destroy(own);
}

/* ==== Never where it was allocated ==== */

static void *resized(void *object, size_t size)
{
	void *other = krealloc(object, size, GFP_KERNEL);

	if (!other)
		kfree(object);
	return other;
}

static void resize(void)
{
	void *object = kmalloc(sizes[2], GFP_KERNEL);
	unsigned int i;

	for (i = 0; object && i < ARRAY_SIZE(sizes); i++)
		object = resized(object, sizes[i * 7 % ARRAY_SIZE(sizes)]);
	kfree(krealloc(object, 0, GFP_KERNEL));
}

static void reserve(void)
{
	mempool_t *pool = mempool_create_slab_pool(8, cache);
	void *objects[12];
	int i;

	if (!pool)
		return;
	for (i = 0; i < 12; i++)
		objects[i] = mempool_alloc(pool, GFP_KERNEL);
	for (i = 0; i < 12; i++)
		if (objects[i])
			mempool_free(objects[i], pool);
	mempool_resize(pool, 3);
	mempool_destroy(pool);
}

static void helpers(void)
{
	kfree(kstrdup("a string", GFP_KERNEL));
	kfree(kmemdup(sizes, sizeof(sizes), GFP_KERNEL | __GFP_RECLAIMABLE));
	kfree(kasprintf(GFP_KERNEL, "%0200d", 1));
	kfree_const(kstrdup_const("a constant string", GFP_KERNEL));
	kvfree(kvmalloc(1 << 20, GFP_KERNEL));
	kvfree(kvmalloc(sizes[3], GFP_KERNEL_ACCOUNT));
	kfree(kmalloc(sizes[4], GFP_KERNEL | GFP_DMA));
}

static void nothing(void)
{
	kfree(NULL);
	kfree(kmalloc(0, GFP_KERNEL));
	kfree(kmalloc(KMALLOC_MAX_SIZE, GFP_NOWAIT | __GFP_NOWARN));
	kfree(kmalloc(SIZE_MAX / 2, GFP_KERNEL | __GFP_NOWARN));
}

/* ==== Elsewhere: the object is handed to another context that frees it ==== */

static struct {
	void *object;
	struct completion done;
} handed;

static void free_handed(void)
{
	kfree(handed.object);
	handed.object = kmalloc(sizes[3], GFP_ATOMIC);
	complete(&handed.done);
}

static void take_back(void)
{
	wait_for_completion(&handed.done);
	kfree(handed.object);
}

static void free_in_irq_work(struct irq_work *work)
{
	free_handed();
}

static void free_in_timer(struct timer_list *timer)
{
	free_handed();
}

static void free_in_work(struct work_struct *work)
{
	free_handed();
}

static DEFINE_IRQ_WORK(irq_worker, free_in_irq_work);
static DEFINE_TIMER(timer, free_in_timer);
static DECLARE_WORK(worker, free_in_work);

/* Hard interrupt, but for RT, where freeing there is not allowed. */
static void in_irq_work(void)
{
	handed.object = kmalloc(sizes[1], GFP_KERNEL);
	irq_work_queue(&irq_worker);
	take_back();
	irq_work_sync(&irq_worker);
}

/* Soft interrupt. */
static void in_timer(void)
{
	handed.object = kmem_cache_alloc(cache, GFP_KERNEL);
	mod_timer(&timer, jiffies);
	take_back();
}

static void on_every_cpu(void)
{
	int cpu;

	for_each_online_cpu(cpu) {
		handed.object = kmalloc(sizes[2], GFP_KERNEL);
		schedule_work_on(cpu, &worker);
		take_back();
		flush_work(&worker);
	}
}

static void (*const ways[])(void) = {
	with_head, without_head, by_callback, reused_under_rcu,
	bulk_then_bulk, bulk_then_single, mixed_bulk, cache_object_by_kfree,
	short_lived_cache, resize, reserve, helpers, nothing,
	in_irq_work, in_timer, on_every_cpu,
};

static int __init awkward_init(void)
{
	unsigned int round, i;

	init_completion(&handed.done);
	cache = kmem_cache_create("awkward", 200, 0, 0, constructor);
	typesafe = kmem_cache_create("awkward_typesafe", TYPESAFE_SIZE, 0,
				     SLAB_TYPESAFE_BY_RCU, NULL);
	if (!cache || !typesafe) {
		kmem_cache_destroy(typesafe);
		kmem_cache_destroy(cache);
		return -ENOMEM;
	}
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < ARRAY_SIZE(ways); i++)
			ways[i]();
		cond_resched();
	}
	return 0;
}

static void __exit awkward_exit(void)
{
	del_timer_sync(&timer);
	rcu_barrier();
	kmem_cache_destroy(typesafe);
	kmem_cache_destroy(cache);
}

module_init(awkward_init);
module_exit(awkward_exit);
MODULE_DESCRIPTION("btlog: slab objects freed in unusual ways");
MODULE_LICENSE("GPL");
