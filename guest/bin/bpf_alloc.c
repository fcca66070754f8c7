// SPDX-License-Identifier: GPL-2.0
/*
 * bpf_alloc.c - a BPF program below which the kernel allocates
 *
 *	bpf_alloc ROUNDS
 *
 * The program makes room in front of a packet, for which its data is copied. It
 * is loaded anew for every round, so its text keeps changing place. Exit status
 * 77 if the kernel has no BPF, or no compiler for it.
 */
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { HEAD_ROOM = 200, REPEAT = 100 };

static int load(void)
{
	static const struct bpf_insn program[] = {
		/* r1 is the packet */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = HEAD_ROOM },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_skb_change_head },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SCHED_CLS,
		.insns = (unsigned long)program,
		.insn_cnt = ARRAY_SIZE(program),
		.license = (unsigned long)"GPL",
	};

	return syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int run(int program)
{
	static const char packet[64];
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = program;
	attr.test.data_in = (unsigned long)packet;
	attr.test.data_size_in = sizeof(packet);
	attr.test.repeat = REPEAT;
	return syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr));
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;

	while (rounds--) {
		int program = load();

		if (program < 0 || run(program)) {
			perror("bpf_alloc");
			return 77;
		}
		close(program);
	}
	return 0;
}
