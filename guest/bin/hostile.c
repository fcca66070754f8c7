// SPDX-License-Identifier: GPL-2.0
/*
 * hostile.c - writes what must be refused to btlog's files
 *
 *	hostile DIR LOG ROUNDS SEED [busy]
 *
 * DIR is btlog's directory and LOG the name of a log in it. Each control file
 * gets ROUNDS writes, chosen by chance from those that are bad for every file
 * and those that are bad for this one. Each must fail with its error. With
 * "busy" the log is enabled, and its settings must say so. Exit status 0, 1 if
 * a write came out otherwise, 2 if the files could not be used at all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HUGE (64 * 1024)
#define LONG "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* Of a file; who has none of EMPTY_OK refuses the empty value. */
enum { SETTING = 1, EMPTY_OK = 2, ANY_OFFSET = 4, NUMBER = 8 };

struct bad {
	const char *value;
	int error;
};

struct file {
	const char *name;
	int flags;
	struct bad bad[8];
};

/* What is no number, or none that fits into 32 bits. */
static const struct bad bad_numbers[] = {
	{ "-1", EINVAL },
	{ "abc", EINVAL },
	{ "1x", EINVAL },
	{ "1 2", EINVAL },
	{ "1.5", EINVAL },
	{ "+-3", EINVAL },
	{ "4294967296", ERANGE },
	{ "99999999999999999999999999", ERANGE },
};

static const struct file top_files[] = {
	{ "new", 0, { { ".", EINVAL }, { "..", EINVAL }, { "a/b", EINVAL },
		      { "a b", EINVAL }, { LONG, EINVAL }, { "top", EEXIST },
		      { "README", EEXIST } } },
	{ "remove", 0, { { "nosuch", ENOENT }, { "top", ENOENT },
			 { "../btlog", ENOENT }, { LONG, ENOENT } } },
	{ }
};

static const struct file log_files[] = {
	{ "enable", 0, { { "2", EINVAL }, { "-1", EINVAL }, { "on", EINVAL },
			 { "01", EINVAL }, { "0x1", EINVAL } } },
	{ "type", SETTING, { { "HASH", EINVAL }, { "hash log", EINVAL } } },
	{ "records", SETTING | NUMBER, { { "0", ERANGE }, { "15", ERANGE },
					 { "16777217", ERANGE } } },
	{ "depth", SETTING | NUMBER, { { "0", ERANGE }, { "61", ERANGE } } },
	{ "sample", SETTING | NUMBER, { { "0", ERANGE },
					{ "bytes:", EINVAL },
					{ "bytes:x", EINVAL },
					{ "bytes:0", ERANGE } } },
	{ "cut", SETTING, { { "task", EINVAL }, { "irq none", EINVAL } } },
	{ "source", SETTING | EMPTY_OK, { { "nosuch", EINVAL },
					  { ":", EINVAL },
					  { "slabs", EINVAL },
					  { LONG LONG LONG LONG LONG,
					    EINVAL } } },
	{ "clear", EMPTY_OK, { } },
	{ "sort", 0, { { "size", EINVAL }, { "bytes count", EINVAL } } },
	{ "top_n", NUMBER, { { "16777217", ERANGE } } },
	{ "min_age", NUMBER, { { "4294967295", ERANGE } } },
	{ "min_size", NUMBER, { } },
	{ "pid", NUMBER, { { "4194305", ERANGE } } },
	{ "cache", EMPTY_OK, { { LONG, E2BIG } } },
	{ "module", EMPTY_OK, { { LONG, E2BIG }, { "a-b", EINVAL },
				{ "a b", EINVAL }, { "*", EINVAL } } },
	{ "find", ANY_OFFSET, { { "xyz", EINVAL }, { "-1", EINVAL },
				{ "0x1ffffffffffffffff", ERANGE } } },
	{ }
};

static char data[HUGE];
static int surprises;

/* Text without white space and NUL, with a byte in it that no file takes. */
static size_t random_text(void)
{
	size_t i, len = 1 + rand() % 300;

	for (i = 0; i < len; i++)
		data[i] = '!' + rand() % 94;
	data[rand() % len] = rand() % 2 ? 1 + rand() % 8 : 128 + rand() % 128;
	return len;
}

static void attempt(const char *name, int fd, const void *value, size_t len,
		    off_t offset, int error)
{
	ssize_t n;

	lseek(fd, offset, SEEK_SET);
	n = write(fd, value, len);
	if (n < 0 && errno == error)
		return;
	surprises++;
	printf("%s: \"%.40s\", %zu bytes at %ld: %s, want %s\n", name,
	       error == EFAULT ? "" : (const char *)value, len, (long)offset,
	       n < 0 ? strerrorname_np(errno) : "written",
	       strerrorname_np(error));
}

/* What no file takes. */
static void attempt_common(const struct file *f, int fd)
{
	switch (rand() % 7) {
	case 0:
		memset(data, 'A', HUGE);
		attempt(f->name, fd, data, HUGE, 0, E2BIG);
		break;
	case 1:
		memset(data, '1', HUGE);
		attempt(f->name, fd, data, sysconf(_SC_PAGESIZE), 0, E2BIG);
		break;
	case 2:
		attempt(f->name, fd, "1\0x", 3, 0, EINVAL);
		break;
	case 3:
		if (!(f->flags & ANY_OFFSET))
			attempt(f->name, fd, "1", 1, 1 + rand() % 9999, EINVAL);
		break;
	case 4:
		attempt(f->name, fd, (void *)8, 16, 0, EFAULT);
		break;
	case 5:
		if (!(f->flags & EMPTY_OK))
			attempt(f->name, fd, " \t\n", rand() % 4, 0, EINVAL);
		break;
	default:
		attempt(f->name, fd, data, random_text(), 0, EINVAL);
	}
}

static void attempt_bad(const struct file *f, int fd, const struct bad *b,
			int busy)
{
	attempt(f->name, fd, b->value, strlen(b->value), 0,
		busy && f->flags & SETTING ? EBUSY : b->error);
}

static void attempt_own(const struct file *f, int fd, int busy)
{
	int n = 0;

	while (n < 8 && f->bad[n].value)
		n++;
	if (n)
		attempt_bad(f, fd, &f->bad[rand() % n], busy);
}

static void attempt_file(const char *dir, const struct file *f, int rounds,
			 int busy)
{
	char path[256];
	int fd, i;

	snprintf(path, sizeof(path), "%s/%s", dir, f->name);
	fd = open(path, O_RDWR);
	if (fd < 0) {
		perror(path);
		exit(2);
	}
	for (i = 0; i < rounds; i++) {
		if (rand() % 2)
			attempt_common(f, fd);
		else if (f->flags & NUMBER && rand() % 2)
			attempt_bad(f, fd, &bad_numbers[rand() % 8], busy);
		else
			attempt_own(f, fd, busy);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	const struct file *f;
	char dir[128];
	int rounds, busy;

	if (argc < 5)
		return 2;
	rounds = atoi(argv[3]);
	srand(atoi(argv[4]));
	busy = argc > 5;
	for (f = top_files; f->name; f++)
		attempt_file(argv[1], f, rounds, busy);
	snprintf(dir, sizeof(dir), "%s/%s", argv[1], argv[2]);
	for (f = log_files; f->name; f++)
		attempt_file(dir, f, rounds, busy);
	return !!surprises;
}
