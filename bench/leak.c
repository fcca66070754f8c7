// SPDX-License-Identifier: GPL-2.0
/*
 * leak.c - loads leak.bpf.c
 *
 *	leak [-s SAMPLE] [-d DEPTH] [-r RECORDS] [-n STACKS]
 *
 * Prints what the maps take, goes to the background, leaves its pid in
 * leak.pid. SIGTERM ends it; what was kept and lost is then in leak.out.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "leak.skel.h"

static void die(const char *what, int err)
{
	fprintf(stderr, "leak: %s: %s\n", what, strerror(err));
	exit(1);
}

/* The kernel's own reckoning. */
static long map_memory(struct bpf_map *map)
{
	char path[64], line[128];
	long bytes = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(map));
	f = fopen(path, "r");
	if (!f)
		die(path, errno);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "memlock: %ld", &bytes) == 1)
			break;
	fclose(f);
	return bytes;
}

static long map_entries(struct bpf_map *map)
{
	char key[8], *prev = NULL;
	long n;

	for (n = 0; !bpf_map_get_next_key(bpf_map__fd(map), prev, key); n++)
		prev = key;
	return n;
}

static void set_up(struct leak *leak, int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "s:d:r:n:")) != -1) {
		long n = atol(optarg ? optarg : "0");

		switch (option) {
		case 's':
			leak->data->sample = n;
			break;
		case 'd':
			bpf_map__set_value_size(leak->maps.stacks,
						n * sizeof(__u64));
			break;
		case 'r':
			bpf_map__set_max_entries(leak->maps.records, n);
			break;
		case 'n':
			bpf_map__set_max_entries(leak->maps.stacks, n);
			break;
		default:
			exit(2);
		}
	}
}

static void report(const struct leak *leak)
{
	FILE *f = fopen("leak.out", "w");

	if (!f)
		die("leak.out", errno);
	fprintf(f, "stacks: %ld\n", map_entries(leak->maps.stacks));
	fprintf(f, "records: %ld\n", map_entries(leak->maps.records));
	fprintf(f, "stacks_lost: %llu\n", leak->bss->stacks_lost);
	fprintf(f, "records_lost: %llu\n", leak->bss->records_lost);
	fclose(f);
}

static void go_to_background(void)
{
	pid_t pid = fork();
	FILE *f;

	if (pid < 0)
		die("fork", errno);
	if (!pid)
		return;
	f = fopen("leak.pid", "w");
	if (!f)
		die("leak.pid", errno);
	fprintf(f, "%d\n", pid);
	fclose(f);
	/* The maps and programs are the child's. */
	_exit(0);
}

static void wait_for_end(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigwait(&set, &sig);
}

int main(int argc, char **argv)
{
	struct leak *leak = leak__open();
	int err;

	if (!leak)
		die("open", errno);
	set_up(leak, argc, argv);
	err = leak__load(leak);
	if (!err)
		err = leak__attach(leak);
	if (err)
		die("load", -err);
	printf("stacks_bytes: %ld\n", map_memory(leak->maps.stacks));
	printf("records_bytes: %ld\n", map_memory(leak->maps.records));
	fflush(stdout);
	go_to_background();
	wait_for_end();
	leak__detach(leak);
	report(leak);
	leak__destroy(leak);
	return 0;
}
