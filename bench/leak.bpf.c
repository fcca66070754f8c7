// SPDX-License-Identifier: GPL-2.0
/*
 * leak.bpf.c - a leak tracer made of BPF, to compare with
 *
 * What such tools have in common, and no more: a stack id and a record in a
 * hash map for each object allocated, removed when it is freed.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

struct record {
	__u64 size;
	__u64 time;
	__s64 stack;
};

/* One in so many allocations. */
__u32 sample = 1;

/* Stacks whose slot another stack has, records for which there was no room. */
__u64 stacks_lost;
__u64 records_lost;

/* The loader sets the sizes. */
struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 16 * sizeof(__u64));
	__uint(max_entries, 16384);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u64);
	__type(value, struct record);
	__uint(max_entries, 65536);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} countdown SEC(".maps");

/* The layout of kernel structures is taken from the running kernel. */
struct kmem_cache {
	unsigned int object_size;
} __attribute__((preserve_access_index));

static __always_inline int sampled_out(void)
{
	__u32 zero = 0, *left;

	if (sample == 1)
		return 0;
	left = bpf_map_lookup_elem(&countdown, &zero);
	if (!left)
		return 1;
	if (*left) {
		*left -= 1;
		return 1;
	}
	*left = sample - 1;
	return 0;
}

static __always_inline int allocated(void *ctx, __u64 object, __u64 size)
{
	struct record record = { .size = size };

	if (!object)
		return 0;
	record.time = bpf_ktime_get_ns();
	record.stack = bpf_get_stackid(ctx, &stacks, 0);
	if (record.stack < 0)
		__sync_fetch_and_add(&stacks_lost, 1);
	if (bpf_map_update_elem(&records, &object, &record, BPF_ANY))
		__sync_fetch_and_add(&records_lost, 1);
	return 0;
}

static __always_inline int freed(__u64 object)
{
	if (object)
		bpf_map_delete_elem(&records, &object);
	return 0;
}

SEC("raw_tp/kmalloc")
int on_kmalloc(struct bpf_raw_tracepoint_args *ctx)
{
	if (sampled_out())
		return 0;
	return allocated(ctx, ctx->args[1], ctx->args[2]);
}

SEC("raw_tp/kmem_cache_alloc")
int on_kmem_cache_alloc(struct bpf_raw_tracepoint_args *ctx)
{
	struct kmem_cache *cache = (void *)ctx->args[2];

	if (sampled_out())
		return 0;
	return allocated(ctx, ctx->args[1],
			 BPF_CORE_READ(cache, object_size));
}

SEC("raw_tp/kfree")
int on_kfree(struct bpf_raw_tracepoint_args *ctx)
{
	return freed(ctx->args[1]);
}

SEC("raw_tp/kmem_cache_free")
int on_kmem_cache_free(struct bpf_raw_tracepoint_args *ctx)
{
	return freed(ctx->args[1]);
}

char LICENSE[] SEC("license") = "GPL";
