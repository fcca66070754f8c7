/* SPDX-License-Identifier: GPL-2.0 */
/*
 * bench.h - what the bench's modules share
 *
 * bench_load.ko has what is measured with and without btlog and owns the file
 * /sys/kernel/debug/btlog_bench: a command is written to it, the result is read
 * from it as lines of "key: value". bench_api.ko adds commands that call btlog.
 *
 * Costs are differences of the time-stamp counter. A guest whose clock counts
 * instructions (QEMU's -icount shift=0) gives one tick for each.
 */
#ifndef BENCH_H
#define BENCH_H

#include <linux/types.h>

enum {
	BENCH_MAX_ARGS	= 4,
	BENCH_RADIX	= 4,	/* functions that a level of a stack chooses from */
};

/**
 * struct bench_command - what can be written to the file
 * @name: its first word
 * @nr_args: numbers that follow
 * @run: called in a thread of its own on CPU 0; 0 or -errno
 */
struct bench_command {
	const char *name;
	int nr_args;
	int (*run)(const long *args);
};

/* @commands ends with an entry without name. A module may add one array. */
void bench_add_commands(const struct bench_command *commands);
void bench_remove_commands(const struct bench_command *commands);

/* Adds a line to the result. */
__printf(1, 2) void bench_print(const char *format, ...);

/**
 * bench_cost() - ticks of one call of a function
 * @op: the function; its argument counts from 0
 * @n: how often it is called, interrupts off
 *
 * Return: the average, less that of an empty function.
 */
long bench_cost(void (*op)(unsigned int i), unsigned int n);

/**
 * bench_descend() - call a function at the end of a known stack
 * @levels: frames between the caller and @leaf
 * @path: which function each level is, in digits of BENCH_RADIX; the innermost
 *	level is the lowest digit
 * @leaf: the function
 * @arg: its argument
 */
void bench_descend(unsigned int levels, unsigned long path,
		   void (*leaf)(void *arg), void *arg);

/* Levels to ask for so that leaf itself is frame number @depth from outside. */
unsigned int bench_levels(unsigned int depth);

#endif
