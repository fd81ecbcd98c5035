/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What to enable: the words of -p and of the filters of what is recorded, and the profiles, settled against the
 * providers of the loaded module. It must not know sessions beyond enabling.
 *
 *	PROVIDER[:LEVEL[:WHAT[:ALL]]]
 *	  LEVEL	a name or number, empty or "all" = every level
 *	  WHAT	words joined by '+'. Each is a number or a keyword of the provider: then together they are the any mask;
 *		or an event of the provider (its whole name, its CTF name, a pattern, or the end of its name after a '_'
 *		if it is the end of only one). A word that is both is a keyword. With an event among them only the events
 *		named, and those that have one of the keywords, are enabled. Empty = everything.
 *	  ALL	keywords or numbers joined by '+': events must have them all
 */
#ifndef ETWCTL_SPEC_H
#define ETWCTL_SPEC_H

#include <etw/etw.h>

#include "etwctl.h"
#include "where.h"

struct spec {
	char *text;		/* as written */
	char *provider;
	char *what;		/* NULL = everything */
	char *all_words;	/* NULL = none */
	__u32 level;
	/* settled: */
	char name[ETW_NAME_SIZE];	/* the provider's, or as written if it is not there */
	__u64 any, all;
	__u32 event_mode;
	char **events;
	unsigned int nr_events;
	__u32 id_mode;
	__u16 *ids;
	unsigned int nr_ids;
	struct etw_predicate predicates[ETW_MAX_PREDICATES];
	unsigned int nr_predicates;
	bool skip;		/* no event of the --event or --id list is its, or none can meet the --where */
	const char *missing;	/* the field of --where that none of its events has */
};

struct specs {
	struct spec *list;
	unsigned int nr;
	__s32 *pids;
	unsigned int nr_pids;
	char **events;		/* of --event */
	bool events_out;
	char **ids;		/* of --id */
	bool ids_out;
	char **processes;	/* of --process, as the kernel calls them */
	struct where *where;
	unsigned int nr_where;
	bool where_any;
	bool by_uid;
	__u32 uid;
	bool no_etw;
};

extern const struct opt opts_enable[];	/* --event --pid */
extern const struct opt opts_live[];	/* --process --where --where-any --id --uid */
extern const struct opt opts_providers[];	/* -p --profile --no-etw */
enum { OPT_PROFILE = OPT_PRIVATE + 100, OPT_NO_ETW, OPT_PROCESS, OPT_WHERE, OPT_WHERE_ANY, OPT_ID, OPT_UID };
#define OPT_LIVE	OPT_PROCESS: case OPT_WHERE: case OPT_WHERE_ANY: case OPT_ID: case OPT_UID
#define OPT_SPECS	'p': case OPT_PROFILE: case OPT_NO_ETW: case OPT_EVENT: case OPT_PID: case OPT_LIVE

/* One of opts_live was there. */
bool specs_filtered(const struct specs *s);

/* Takes one of OPT_SPECS; 0, or STATUS_USAGE or STATUS_FAILED after saying what is wrong. */
int specs_option(struct specs *s, int key, const char *arg);
/* Adds one provider by its text. */
int specs_add(struct specs *s, const char *text);
/* Adds the providers of a profile: a path with a '/', or a name looked for as etwctl(1) says. */
int specs_profile(struct specs *s, const char *name);
/* Calls @show for each profile there is, those that are found first before others of the same name. */
void profiles_each(void (*show)(const char *name, const char *from, const char *description));

/* Settles everything against the module's providers, and adds the provider etw unless it is there or not wanted. */
int specs_settle(struct specs *s, struct etw_control *control);

/* Enables them in order; @between (may be NULL) is called after each. */
int specs_enable(struct specs *s, struct etw_session *session, void (*between)(void *arg), void *arg);
void specs_free(struct specs *s);

#endif
