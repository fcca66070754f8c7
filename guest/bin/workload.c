// SPDX-License-Identifier: GPL-2.0
/*
 * workload.c - makes the kernel allocate and free in many of its ways
 *
 *	workload NAME ROUNDS [ARGUMENT...]
 *
 * Whatever is made is given back, so that after it the kernel holds no more
 * than its own caches. Exit status 0, or 1 if something failed that must not.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static char data[1 << 16];	/* what is sent and written */
static char sink[1 << 16];	/* where it is read to */
static char **args;		/* of the command, after ROUNDS */

/* Ends the program if a call failed, else hands its result on. */
static long need(long result, const char *what)
{
	if (result >= 0)
		return result;
	fprintf(stderr, "workload: %s: %s\n", what, strerror(errno));
	exit(1);
}

static const char *arg(int i, const char *otherwise)
{
	return args[0] && (!i || args[1]) ? args[i] : otherwise;
}

static void close_all(const int *fds, int n)
{
	while (n--)
		close(fds[n]);
}

/* ==== Processes and memory ==== */

static void *touch_stack(void *unused)
{
	char page[4096];

	memcpy(page, data, sizeof(page));
	__asm__ volatile("" : : "r" (page) : "memory");
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[4];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		if (pthread_create(&threads[i], NULL, touch_stack, NULL))
			_exit(1);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

/* Half of the children run a program, the others have threads. */
static void do_fork(int rounds)
{
	char *const argv[] = { "/bin/busybox", "true", NULL };

	while (rounds--) {
		if (!need(fork(), "fork")) {
			if (rounds % 2)
				execv(argv[0], argv);
			run_threads();
		}
		if (rounds % 8 == 0)
			while (wait(NULL) > 0)
				;
	}
}

/* Many small mappings, taken down in another order. */
static void do_map(int rounds)
{
	enum { N = 40, SIZE = 8192 };
	char *at[N];
	int i;

	while (rounds--) {
		for (i = 0; i < N; i++) {
			at[i] = mmap(NULL, SIZE, PROT_READ | (i % 2 ? PROT_WRITE : 0),
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			need(at[i] == MAP_FAILED ? -1 : 0, "mmap");
			if (i % 2)
				*at[i] = 1;
		}
		for (i = 0; i < N; i++)
			munmap(at[i * 7 % N], SIZE);
	}
}

static void hog(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY);
	size_t size = 1 << 20;
	char *at;

	if (write(fd, "1000", 4) != 4)
		_exit(1);
	for (;;) {
		at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (at == MAP_FAILED)
			_exit(1);
	}
}

/* Children that take memory until they are killed for it. */
static void do_hog(int rounds)
{
	int status;

	while (rounds--) {
		if (!need(fork(), "fork"))
			hog();
		need(wait(&status), "wait");
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
			fprintf(stderr, "workload: the hog came out with %x\n", status);
			exit(1);
		}
	}
}

/* ==== Files: in the folder that is given ==== */

enum { FOLDERS = 17 };

static void file_name(char *name, size_t len, char kind, int i)
{
	snprintf(name, len, "%s/d%d/%c%d", arg(0, "/tmp"), i % FOLDERS, kind, i);
}

static void write_file(int i)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 10 };
	char name[256], other[256];
	int fd;

	file_name(name, sizeof(name), 'f', i);
	file_name(other, sizeof(other), 'g', i);
	fd = need(open(name, O_CREAT | O_RDWR, 0644), name);
	need(write(fd, data, i * 977 % sizeof(data)), "write");
	setxattr(name, "user.workload", data, 100, 0);
	fcntl(fd, F_SETLK, &lock);
	if (i % 16 == 0)
		fsync(fd);
	close(fd);
	if (i % 3 == 0)
		need(rename(name, other), "rename");
	else if (i % 3 == 1)
		need(symlink(name, other), "symlink");
	access(other, R_OK);
}

static void remove_file(int i)
{
	char name[256];

	file_name(name, sizeof(name), 'f', i);
	unlink(name);
	file_name(name, sizeof(name), 'g', i);
	unlink(name);
}

static void all_folders(int (*call)(const char *name))
{
	char name[256];
	int i;

	for (i = 0; i < FOLDERS; i++) {
		snprintf(name, sizeof(name), "%s/d%d", arg(0, "/tmp"), i);
		need(call(name), name);
	}
}

static int make_folder(const char *name)
{
	return mkdir(name, 0755);
}

static void do_file(int rounds)
{
	int i;

	all_folders(make_folder);
	for (i = 0; i < rounds; i++)
		write_file(i);
	for (i = 0; i < rounds; i++)
		remove_file(i);
	all_folders(rmdir);
}

/* ==== Sockets ==== */

static struct sockaddr_in address(const char *host, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, host, &a.sin_addr);
	return a;
}

/* Binds to a free port and says which in *a. */
static int bound_socket(int type, struct sockaddr_in *a)
{
	int fd = need(socket(AF_INET, type, 0), "socket");
	socklen_t len = sizeof(*a);

	*a = address("127.0.0.1", 0);
	need(bind(fd, (struct sockaddr *)a, len), "bind");
	need(getsockname(fd, (struct sockaddr *)a, &len), "getsockname");
	return fd;
}

static int connected_socket(const struct sockaddr_in *a)
{
	int fd = need(socket(AF_INET, SOCK_STREAM, 0), "socket");

	need(connect(fd, (const struct sockaddr *)a, sizeof(*a)), "connect");
	return fd;
}

static void read_all(int fd, ssize_t len)
{
	ssize_t got;

	for (; len > 0; len -= got) {
		got = need(read(fd, sink, sizeof(sink)), "read");
		if (!got)
			break;
	}
}

static void exchange(int client, int server, size_t size)
{
	read_all(server, need(send(client, data, size, MSG_DONTWAIT), "send"));
	need(write(server, data, 100), "write");
	read_all(client, 100);
}

/* Ends a connection that has unread data by a reset. */
static void reset_later(int fd)
{
	struct linger linger = { .l_onoff = 1 };

	send(fd, data, 20000, MSG_DONTWAIT);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static void do_tcp(int rounds)
{
	enum { N = 24 };
	int clients[N], servers[N], listener, i;
	struct sockaddr_in a;

	listener = bound_socket(SOCK_STREAM, &a);
	need(listen(listener, N), "listen");
	while (rounds--) {
		for (i = 0; i < N; i++) {
			clients[i] = connected_socket(&a);
			servers[i] = need(accept(listener, NULL, NULL), "accept");
		}
		for (i = 0; i < 3 * N; i++)
			exchange(clients[i % N], servers[i % N],
				 i * 911 % sizeof(data) + 1);
		for (i = 0; i < N; i += 3)
			reset_later(clients[i]);
		close_all(clients, N);
		close_all(servers, N);
	}
	close(listener);
}

/* Each sends to the next one; some datagrams are never read. */
static void do_udp(int rounds)
{
	enum { N = 20 };
	struct sockaddr_in a[N];
	int fds[N], i;

	while (rounds--) {
		for (i = 0; i < N; i++)
			fds[i] = bound_socket(SOCK_DGRAM, &a[i]);
		for (i = 0; i < 10 * N; i++)
			sendto(fds[i % N], data, i * 1333 % 20000 + 1, 0,
			       (struct sockaddr *)&a[(i + 1) % N], sizeof(a[0]));
		for (i = 0; i < 8 * N; i++)
			recv(fds[i % N], sink, sizeof(sink), MSG_DONTWAIT);
		close_all(fds, N);
	}
}

static void send_descriptor(int through, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { .iov_base = data, .iov_len = 1000 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	sendmsg(through, &msg, MSG_DONTWAIT);
}

static void do_unix(int rounds)
{
	const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	int fds[2], i;

	while (rounds--) {
		need(socketpair(AF_UNIX, types[rounds % 3], 0, fds), "socketpair");
		for (i = 0; i < 6; i++)
			send_descriptor(fds[0], 0);
		for (i = 0; i < 4; i++)
			recv(fds[1], sink, 5000, MSG_DONTWAIT);
		close_all(fds, 2);
	}
}

/* Over the wire to a server that sends back what it gets: HOST PORT. */
static void do_echo(int rounds)
{
	struct sockaddr_in a = address(arg(0, "127.0.0.1"), atoi(arg(1, "7")));
	int fds[6], i;

	while (rounds--) {
		for (i = 0; i < 6; i++)
			fds[i] = connected_socket(&a);
		for (i = 0; i < 6; i++)
			need(write(fds[i], data, 3000 * i + 1), "write");
		for (i = 0; i < 6; i++)
			read_all(fds[i], 3000 * i + 1);
		close_all(fds, 6);
	}
}

static unsigned short checksum(const unsigned short *words, int n)
{
	unsigned int sum = 0;

	while (n--)
		sum += *words++;
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* Echo requests of all sizes that a frame can take, each answered: HOST. */
static void do_ping(int rounds)
{
	struct sockaddr_in a = address(arg(0, "127.0.0.1"), 0);
	struct timeval patience = { .tv_sec = 2 };
	struct icmphdr *icmp = (struct icmphdr *)data;
	int fd = need(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), "socket"), lost = 0;
	size_t size;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	while (rounds--) {
		size = sizeof(*icmp) + rounds * 94 % 1400;
		*icmp = (struct icmphdr){ .type = ICMP_ECHO };
		icmp->un.echo.sequence = rounds;
		icmp->checksum = checksum((void *)icmp, size / 2);
		need(sendto(fd, data, size, 0, (struct sockaddr *)&a, sizeof(a)), "sendto");
		lost += recv(fd, sink, sizeof(sink), 0) < 0;
	}
	close(fd);
	if (lost) {
		fprintf(stderr, "workload: %d echo requests without an answer\n", lost);
		exit(1);
	}
}

/* ==== Pipes, events, timers, IPC ==== */

static void do_pipe(int rounds)
{
	int p[2], q[2], fd, i;

	while (rounds--) {
		need(pipe(p), "pipe");
		need(pipe(q), "pipe");
		if (rounds % 4 == 0)
			fcntl(p[1], F_SETPIPE_SZ, 1 << 18);
		for (i = 0; i < 5; i++)
			need(write(p[1], data, 9000), "write");
		tee(p[0], q[1], 5000, 0);
		for (i = 0; i < 4; i++)
			need(read(p[0], sink, 9000), "read");
		fd = need(open("/proc/self/exe", O_RDONLY), "open");
		splice(fd, NULL, q[1], NULL, 20000, SPLICE_F_NONBLOCK);
		close(fd);
		close_all(p, 2);
		close_all(q, 2);
	}
}

static void wait_for_timer(const struct itimerspec *soon)
{
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	struct epoll_event event = { .events = EPOLLIN };
	int fds[3];
	timer_t timer;

	fds[0] = need(epoll_create1(0), "epoll");
	fds[1] = need(eventfd(0, EFD_NONBLOCK), "eventfd");
	fds[2] = need(timerfd_create(CLOCK_MONOTONIC, 0), "timerfd");
	epoll_ctl(fds[0], EPOLL_CTL_ADD, fds[1], &event);
	epoll_ctl(fds[0], EPOLL_CTL_ADD, fds[2], &event);
	timerfd_settime(fds[2], 0, soon, NULL);
	need(timer_create(CLOCK_MONOTONIC, &none, &timer), "timer_create");
	timer_settime(timer, 0, soon, NULL);
	epoll_wait(fds[0], &event, 1, 5);
	timer_delete(timer);
	close_all(fds, 3);
}

static void queue_signal(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigqueue(getpid(), SIGUSR1, (union sigval){ 0 });
	fd = need(signalfd(-1, &set, SFD_NONBLOCK), "signalfd");
	need(read(fd, sink, sizeof(sink)), "read signalfd");
	close(fd);
}

static void watch_folder(void)
{
	int watch = need(inotify_init1(0), "inotify");
	char name[] = "/tmp/workload-XXXXXX";

	inotify_add_watch(watch, "/tmp", IN_ALL_EVENTS);
	close(need(mkstemp(name), name));
	unlink(name);
	close(watch);
}

static void do_event(int rounds)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1000000 };

	while (rounds--) {
		wait_for_timer(&soon);
		queue_signal();
		watch_folder();
	}
}

static void use_messages(void)
{
	struct { long type; char text[6000]; } message = { .type = 1 };
	int id = need(msgget(IPC_PRIVATE, 0600), "msgget");

	need(msgsnd(id, &message, 100, 0), "msgsnd");
	need(msgsnd(id, &message, 5900, 0), "msgsnd");
	need(msgrcv(id, &message, 6000, 0, 0), "msgrcv");
	msgctl(id, IPC_RMID, NULL);
}

static void use_semaphores(void)
{
	struct sembuf up = { .sem_op = 1, .sem_flg = SEM_UNDO };
	int id = need(semget(IPC_PRIVATE, 4, 0600), "semget");

	need(semop(id, &up, 1), "semop");
	semctl(id, 0, IPC_RMID);
}

static void use_shared_memory(void)
{
	int id = need(shmget(IPC_PRIVATE, 20000, 0600), "shmget");
	char *at = shmat(id, NULL, 0);

	*at = 1;
	shmdt(at);
	shmctl(id, IPC_RMID, NULL);
	id = need(memfd_create("workload", 0), "memfd");
	need(write(id, data, 20000), "write memfd");
	close(id);
}

static void do_ipc(int rounds)
{
	while (rounds--) {
		use_messages();
		use_semaphores();
		use_shared_memory();
		syscall(SYS_add_key, "user", "workload", data, 100,
			KEY_SPEC_PROCESS_KEYRING);
	}
}

/* Files of /proc that allocate while they are read. */
static void do_proc(int rounds)
{
	const char * const names[] = {
		"/proc/self/maps", "/proc/self/stat", "/proc/self/mountinfo",
		"/proc/slabinfo", "/proc/interrupts", "/proc/net/tcp",
	};
	int fd;

	while (rounds--) {
		fd = open(names[rounds % ARRAY_SIZE(names)], O_RDONLY);
		while (fd >= 0 && read(fd, sink, sizeof(sink)) > 0)
			;
		close(fd);
	}
}

/* ==== io_uring ==== */

struct ring {
	int fd;
	struct io_uring_params p;
	char *sq;
	struct io_uring_sqe *sqes;
};

static size_t sq_size(const struct ring *r)
{
	return r->p.sq_off.array + r->p.sq_entries * sizeof(unsigned int);
}

static size_t sqes_size(const struct ring *r)
{
	return r->p.sq_entries * sizeof(struct io_uring_sqe);
}

static void *ring_map(const struct ring *r, size_t size, off_t offset)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_POPULATE, r->fd, offset);

	need(at == MAP_FAILED ? -1 : 0, "mmap of the ring");
	return at;
}

static void ring_open(struct ring *r)
{
	memset(r, 0, sizeof(*r));
	r->fd = need(syscall(SYS_io_uring_setup, 64, &r->p), "io_uring_setup");
	r->sq = ring_map(r, sq_size(r), IORING_OFF_SQ_RING);
	r->sqes = ring_map(r, sqes_size(r), IORING_OFF_SQES);
}

static void ring_close(struct ring *r)
{
	munmap(r->sqes, sqes_size(r));
	munmap(r->sq, sq_size(r));
	close(r->fd);
}

static void ring_add(struct ring *r, const struct io_uring_sqe *sqe)
{
	unsigned int *tail = (unsigned int *)(r->sq + r->p.sq_off.tail);
	unsigned int *slots = (unsigned int *)(r->sq + r->p.sq_off.array);
	unsigned int i = *tail % r->p.sq_entries;

	r->sqes[i] = *sqe;
	slots[i] = i;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
}

/* Reads, no-operations, and polls that nothing but the end of the ring ends. */
static void ring_submit(struct ring *r, int file, int idle)
{
	const struct io_uring_sqe kinds[] = {
		{ .opcode = IORING_OP_READ, .fd = file,
		  .addr = (unsigned long)sink, .len = 512 },
		{ .opcode = IORING_OP_NOP },
		{ .opcode = IORING_OP_POLL_ADD, .fd = idle, .poll32_events = 1 },
	};
	int i;

	for (i = 0; i < 30; i++)
		ring_add(r, &kinds[i % 3]);
	need(syscall(SYS_io_uring_enter, r->fd, 30, 10, IORING_ENTER_GETEVENTS,
		     NULL, 0), "io_uring_enter");
}

/* SECONDS to keep each ring, with what it holds. */
static void do_uring(int rounds)
{
	struct ring ring;
	int file, fds[2], i;

	while (rounds--) {
		ring_open(&ring);
		file = need(open("/proc/self/exe", O_RDONLY), "open");
		need(pipe(fds), "pipe");
		for (i = 0; i < 4; i++)
			ring_submit(&ring, file, fds[0]);
		sleep(atoi(arg(0, "0")));
		ring_close(&ring);
		close(file);
		close_all(fds, 2);
	}
}

/* ==== BPF ==== */

static int bpf(int command, union bpf_attr attr)
{
	return syscall(SYS_bpf, command, &attr, sizeof(attr));
}

static int bpf_map(int type, int value_size, int flags)
{
	return need(bpf(BPF_MAP_CREATE, (union bpf_attr){
		.map_type = type, .key_size = 8, .value_size = value_size,
		.max_entries = 500, .map_flags = flags }), "BPF map");
}

static void bpf_fill(int map, int n, int deleted)
{
	struct { unsigned int prefix, number; } key = { .prefix = 32 };
	union bpf_attr attr = {
		.map_fd = map, .key = (unsigned long)&key,
	};
	int i;

	attr.value = (unsigned long)data;
	for (i = 0; i < n; i++) {
		key.number = htonl(i * 7919);
		need(bpf(BPF_MAP_UPDATE_ELEM, attr), "BPF update");
	}
	attr.value = 0;
	for (i = 0; i < deleted; i++) {
		key.number = htonl(i * 7919);
		need(bpf(BPF_MAP_DELETE_ELEM, attr), "BPF delete");
	}
	close(map);
}

static int bpf_program(int type, int returns)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = returns },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return need(bpf(BPF_PROG_LOAD, (union bpf_attr){
		.prog_type = type, .insns = (unsigned long)insns,
		.insn_cnt = ARRAY_SIZE(insns),
		.license = (unsigned long)"GPL" }), "BPF program");
}

/* The kernel makes the frames' socket buffers in bulk. */
static void bpf_live_frames(void)
{
	int fd = bpf_program(BPF_PROG_TYPE_XDP, XDP_PASS);

	need(bpf(BPF_PROG_TEST_RUN, (union bpf_attr){
		.test = { .prog_fd = fd, .data_in = (unsigned long)data,
			  .data_size_in = 200, .repeat = 256, .batch_size = 32,
			  .flags = BPF_F_TEST_XDP_LIVE_FRAMES } }), "BPF test run");
	close(fd);
}

static void do_bpf(int rounds)
{
	while (rounds--) {
		bpf_fill(bpf_map(BPF_MAP_TYPE_HASH, 64, 0), 300, 200);
		bpf_fill(bpf_map(BPF_MAP_TYPE_HASH, 64, BPF_F_NO_PREALLOC), 300, 200);
		bpf_fill(bpf_map(BPF_MAP_TYPE_LPM_TRIE, 8, BPF_F_NO_PREALLOC), 50, 0);
		close(bpf_program(BPF_PROG_TYPE_SOCKET_FILTER, 0));
		bpf_live_frames();
	}
}

/* ==== Namespaces ==== */

/* Loopback comes up and talks to itself in a network of its own. */
static void live_in_namespace(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	need(unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
		     CLONE_NEWCGROUP), "unshare");
	need(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), "mount /");
	need(mount("none", "/mnt", "tmpfs", 0, NULL), "mount tmpfs");
	fd = need(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	need(ioctl(fd, SIOCSIFFLAGS, &ifr), "loopback");
	close(fd);
	do_udp(1);
	do_tcp(1);
	do_ipc(1);
	_exit(0);
}

static void do_namespace(int rounds)
{
	int status;

	while (rounds--) {
		if (!need(fork(), "fork"))
			live_in_namespace();
		need(wait(&status), "wait");
		if (status)
			exit(1);
	}
}

static const struct {
	const char *name;
	void (*run)(int rounds);
} commands[] = {
	{ "bpf", do_bpf },
	{ "echo", do_echo },
	{ "event", do_event },
	{ "file", do_file },
	{ "fork", do_fork },
	{ "hog", do_hog },
	{ "ipc", do_ipc },
	{ "map", do_map },
	{ "namespace", do_namespace },
	{ "ping", do_ping },
	{ "pipe", do_pipe },
	{ "proc", do_proc },
	{ "tcp", do_tcp },
	{ "udp", do_udp },
	{ "unix", do_unix },
	{ "uring", do_uring },
};

int main(int argc, char **argv)
{
	unsigned int i;

	signal(SIGPIPE, SIG_IGN);
	args = argv + 3;
	for (i = 0; argc > 2 && i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[1], commands[i].name)) {
			commands[i].run(atoi(argv[2]));
			return 0;
		}
	fprintf(stderr, "usage: workload NAME ROUNDS [ARGUMENT...]\nNAME:");
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(stderr, " %s", commands[i].name);
	fprintf(stderr, "\n");
	return 2;
}
