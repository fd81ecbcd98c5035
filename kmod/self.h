/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The provider "etw": what the tracer says of itself. Knows sessions; nothing below it knows it but through these
 * calls.
 */
#ifndef ETW_SELF_H
#define ETW_SELF_H

#include "session.h"

extern struct etw_provider etw_provider_self;

/* To every session that has the provider enabled. Process context, no lock of ours needed. */
void etw_self_session_start(struct etw_session *about);
void etw_self_session_stop(struct etw_session *about, u32 reason);
struct etw_enabling;
void etw_self_provider_enable(struct etw_session *about, const struct etw_enabling *enabling, bool enable);

/* To @session only, direct lock held. */
void etw_self_stopped(struct etw_session *session, u32 reason);
void etw_self_clock(struct etw_session *session);
void etw_self_losses(struct etw_session *session);

#endif
