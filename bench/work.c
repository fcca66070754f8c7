// SPDX-License-Identifier: GPL-2.0
/*
 * work.c - a workload: processes, files, sockets
 *
 *	work ROUNDS [PART]	in an empty folder
 *
 * Sleeps only until its children have ended, and leaves nothing behind.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 16, FILE_SIZE = 6000, MESSAGES = 10, MESSAGE_SIZE = 4000 };

static char buffer[8192];
static const char *self;

static void check(const char *what, long result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "work: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void do_fork(void)
{
	pid_t pid = fork();

	check("fork", pid);
	if (!pid)
		_exit(0);
	check("waitpid", waitpid(pid, NULL, 0));
}

static void do_exec(void)
{
	pid_t pid = fork();

	check("fork", pid);
	if (!pid) {
		execl(self, self, "0", NULL);
		_exit(127);
	}
	check("waitpid", waitpid(pid, NULL, 0));
}

static void do_files(void)
{
	char name[16], other[16];
	struct stat st;
	int i, fd;

	check("mkdir", mkdir("d", 0700));
	for (i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "d/f%d", i);
		snprintf(other, sizeof(other), "d/g%d", i);
		fd = open(name, O_CREAT | O_RDWR, 0600);
		check("open", fd);
		check("write", write(fd, buffer, FILE_SIZE));
		check("pread", pread(fd, buffer, FILE_SIZE, 0));
		close(fd);
		check("rename", rename(name, other));
		check("stat", stat(other, &st));
	}
	for (i = 0; i < FILES; i++) {
		snprintf(other, sizeof(other), "d/g%d", i);
		check("unlink", unlink(other));
	}
	check("rmdir", rmdir("d"));
}

static void do_memory(void)
{
	int i, pages = 128;
	char *p = mmap(NULL, pages * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	check("mmap", p == MAP_FAILED ? -1 : 0);
	for (i = 0; i < pages; i += 4) {
		check("mprotect", mprotect(p + i * 4096, 4096,
					   PROT_READ | PROT_WRITE));
		p[i * 4096] = 1;
	}
	check("munmap", munmap(p, pages * 4096));
}

static void do_pipes(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int ends[2], ep = epoll_create1(0), i;

	check("epoll_create1", ep);
	check("pipe", pipe(ends));
	check("epoll_ctl", epoll_ctl(ep, EPOLL_CTL_ADD, ends[0], &event));
	for (i = 0; i < MESSAGES; i++) {
		check("write", write(ends[1], buffer, MESSAGE_SIZE));
		check("epoll_wait", epoll_wait(ep, &event, 1, 0));
		check("read", read(ends[0], buffer, MESSAGE_SIZE));
	}
	close(ends[0]);
	close(ends[1]);
	close(ep);
}

static void exchange(int a, int b)
{
	int i;

	for (i = 0; i < MESSAGES; i++) {
		check("send", send(a, buffer, MESSAGE_SIZE, 0));
		check("recv", recv(b, buffer, MESSAGE_SIZE, MSG_WAITALL));
		check("send", send(b, buffer, 100, 0));
		check("recv", recv(a, buffer, 100, MSG_WAITALL));
	}
}

static void do_unix(void)
{
	int ends[2];

	check("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	exchange(ends[0], ends[1]);
	close(ends[0]);
	close(ends[1]);
}

static int bound_socket(int type, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, type, 0);

	*addr = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	check("socket", fd);
	check("bind", bind(fd, (struct sockaddr *)addr, len));
	check("getsockname", getsockname(fd, (struct sockaddr *)addr, &len));
	return fd;
}

static void do_tcp(void)
{
	/* No TIME_WAIT, whose timers would outlive the round. */
	struct linger linger = { .l_onoff = 1 };
	struct sockaddr_in addr;
	int listener = bound_socket(SOCK_STREAM, &addr), client, server;

	check("listen", listen(listener, 4));
	client = socket(AF_INET, SOCK_STREAM, 0);
	check("socket", client);
	check("connect", connect(client, (struct sockaddr *)&addr,
				 sizeof(addr)));
	server = accept(listener, NULL, NULL);
	check("accept", server);
	exchange(client, server);
	setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(client);
	close(server);
	close(listener);
}

static void do_udp(void)
{
	struct sockaddr_in addr;
	int fd = bound_socket(SOCK_DGRAM, &addr), i;

	for (i = 0; i < 2 * MESSAGES; i++) {
		check("sendto", sendto(fd, buffer, 500, 0,
				       (struct sockaddr *)&addr,
				       sizeof(addr)));
		check("recv", recv(fd, buffer, 500, 0));
	}
	close(fd);
}

struct part {
	const char *name;
	void (*run)(void);
};

static const struct part parts[] = {
	{ "fork", do_fork },
	{ "exec", do_exec },
	{ "files", do_files },
	{ "memory", do_memory },
	{ "pipes", do_pipes },
	{ "unix", do_unix },
	{ "tcp", do_tcp },
	{ "udp", do_udp },
	{ }
};

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 0, i;
	const char *only = argc > 2 ? argv[2] : NULL;
	const struct part *part;

	self = argv[0];
	for (i = 0; i < rounds; i++)
		for (part = parts; part->name; part++)
			if (!only || !strcmp(only, part->name))
				part->run();
	return 0;
}
