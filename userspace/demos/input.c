// SPDX-License-Identifier: GPL-2.0-only
/* Events from a trace on disk or from a session of one's own (input.h). It must not know what is made of them. */
#include "input.h"

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

static void must(int ret)
{
	if (ret < 0)
		errx(ret == -ENODEV || ret == -EPROTO ? 3 : ret == -EPERM || ret == -EACCES ? 4 : 1, "%s", etw_last_error());
}

void input_open(struct input *in, const char *name, const char *where, const struct etw_enable_options *providers, unsigned int nr)
{
	char *end;
	double seconds = strtod(where, &end);

	memset(in, 0, sizeof(*in));
	must(etw_consumer_new(NULL, &in->consumer));
	if (*end || seconds <= 0) {
		must(etw_consumer_add_trace(in->consumer, where, 0));
		in->start = etw_consumer_trace(in->consumer, 0)->first;
		return;
	}
	must(etw_control_open(&in->control));
	must(etw_session_create(in->control, name, NULL, &in->session));
	/* The reader comes first: so nothing is lost when the events begin. */
	must(etw_consumer_add_session(in->consumer, in->session));
	for (unsigned int i = 0; i < nr; i++)
		must(etw_session_enable(in->session, &providers[i]));
	in->start = etw_consumer_trace(in->consumer, 0)->start;
	in->end = now() + seconds * 1e9;
	signal(SIGINT, interrupt);
	signal(SIGTERM, interrupt);
	warnx("recording for %g seconds, or until Ctrl-C", seconds);
}

const struct etw_event *input_next(struct input *in)
{
	const struct etw_event *ev;
	int ret;

	for (;;) {
		ret = etw_consumer_next(in->consumer, &ev, 100);
		if (ret > 0)
			return ev;
		if (!ret)
			return NULL;
		if (ret != -EAGAIN && ret != -EINTR)
			must(ret);
		/* What was recorded until the stop still comes. */
		if (in->session && in->end && (interrupted || now() >= in->end)) {
			in->end = 0;
			must(etw_session_stop(in->session));
		}
	}
}

int input_close(struct input *in)
{
	unsigned long long lost = 0;

	for (unsigned int i = 0; i < etw_consumer_nr_losses(in->consumer); i++)
		lost += etw_consumer_loss(in->consumer, i)->events;
	if (lost)
		warnx("%llu events were lost: the above is incomplete", lost);
	etw_consumer_free(in->consumer);
	etw_session_close(in->session);
	etw_control_close(in->control);
	return lost ? 5 : 0;
}

void field_comm(const struct etw_event *ev, const char *name, char comm[COMM])
{
	size_t len;
	const char *s = etw_event_string(ev, etw_class_field(ev->cls, name), &len);

	if (len >= COMM)
		len = COMM - 1;
	memset(comm, 0, COMM);
	for (size_t i = 0; i < len; i++)
		comm[i] = s[i] >= ' ' && s[i] <= '~' ? s[i] : '?';
}
