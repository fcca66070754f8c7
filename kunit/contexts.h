/* SPDX-License-Identifier: GPL-2.0 */
/*
 * contexts.h - something done again and again in hardirq, softirq, irq_work and
 * NMI, for the KUnit suites and the guests' test modules
 */
#ifndef BTLOG_KUNIT_CONTEXTS_H
#define BTLOG_KUNIT_CONTEXTS_H

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/nmi.h>
#include <linux/smp.h>
#include <linux/timer.h>
#include <asm/apic.h>
#include <asm/nmi.h>

enum test_context { IN_HARDIRQ, IN_SOFTIRQ, IN_IRQ_WORK, IN_NMI, TEST_CONTEXTS };

/**
 * struct interrupts - of a test
 * @hard: a timer in hardirq, also on PREEMPT_RT; raises @work and NMIs
 * @soft: a timer in softirq
 * @work: irq_work
 * @nmi_due: CPUs that have been sent an NMI
 * @fn: what is done
 * @arg: for it
 * @runs: how often, by context
 * @stop: they come no more
 */
struct interrupts {
	struct hrtimer hard;
	struct timer_list soft;
	struct irq_work work;
	struct cpumask nmi_due;
	void (*fn)(void *arg);
	void *arg;
	atomic_t runs[TEST_CONTEXTS];
	bool stop;
};

/* NMI handlers have no argument; one test at a time. */
static struct interrupts *nmi_test;

static inline void interrupts_run(struct interrupts *irqs, enum test_context in)
{
	irqs->fn(irqs->arg);
	atomic_inc(&irqs->runs[in]);
}

static inline int interrupts_nmi(unsigned int type, struct pt_regs *regs)
{
	struct interrupts *irqs = READ_ONCE(nmi_test);

	if (!irqs || !cpumask_test_and_clear_cpu(raw_smp_processor_id(),
						 &irqs->nmi_due))
		return NMI_DONE;
	interrupts_run(irqs, IN_NMI);
	return NMI_HANDLED;
}

/* At whatever another CPU does right now, if there is another one. */
static inline void interrupts_send_nmi(struct interrupts *irqs)
{
	unsigned int cpu = cpumask_any_but(cpu_online_mask, smp_processor_id());

	if (cpu >= nr_cpu_ids)
		cpu = smp_processor_id();
	cpumask_set_cpu(cpu, &irqs->nmi_due);
	apic->send_IPI_mask(cpumask_of(cpu), NMI_VECTOR);
}

static inline enum hrtimer_restart interrupts_hard(struct hrtimer *timer)
{
	struct interrupts *irqs = container_of(timer, struct interrupts, hard);

	if (READ_ONCE(irqs->stop))
		return HRTIMER_NORESTART;
	interrupts_send_nmi(irqs);
	interrupts_run(irqs, IN_HARDIRQ);
	irq_work_queue(&irqs->work);
	hrtimer_forward_now(timer, 500 * NSEC_PER_USEC);
	return HRTIMER_RESTART;
}

static inline void interrupts_soft(struct timer_list *timer)
{
	struct interrupts *irqs = from_timer(irqs, timer, soft);

	interrupts_run(irqs, IN_SOFTIRQ);
	if (!READ_ONCE(irqs->stop))
		mod_timer(timer, jiffies + 1);
}

static inline void interrupts_work(struct irq_work *work)
{
	interrupts_run(container_of(work, struct interrupts, work), IN_IRQ_WORK);
}

/* Returns false if there are no NMIs to be had. */
static inline bool start_interrupts(struct interrupts *irqs,
				    void (*fn)(void *arg), void *arg)
{
	*irqs = (struct interrupts){ .fn = fn, .arg = arg };
	WRITE_ONCE(nmi_test, irqs);
	if (register_nmi_handler(NMI_LOCAL, interrupts_nmi, 0, "btlog_test"))
		return false;
	init_irq_work(&irqs->work, interrupts_work);
	timer_setup(&irqs->soft, interrupts_soft, 0);
	hrtimer_init(&irqs->hard, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	irqs->hard.function = interrupts_hard;
	mod_timer(&irqs->soft, jiffies + 1);
	hrtimer_start(&irqs->hard, NSEC_PER_MSEC, HRTIMER_MODE_REL_HARD);
	return true;
}

static inline void stop_interrupts(struct interrupts *irqs)
{
	WRITE_ONCE(irqs->stop, true);
	hrtimer_cancel(&irqs->hard);
	del_timer_sync(&irqs->soft);
	irq_work_sync(&irqs->work);
	/* Nobody else would know what to do with an NMI that is on its way. */
	msleep(20);
	unregister_nmi_handler(NMI_LOCAL, "btlog_test");
	WRITE_ONCE(nmi_test, NULL);
}

static inline unsigned int interrupts_in_all(const struct interrupts *irqs)
{
	unsigned int sum = 0, i;

	for (i = 0; i < TEST_CONTEXTS; i++)
		sum += atomic_read(&irqs->runs[i]);
	return sum;
}

#endif
