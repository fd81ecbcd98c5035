// SPDX-License-Identifier: GPL-2.0-only
/* What to enable (spec.h): -p and the filters of what is recorded. It must not know sessions beyond enabling. */
#include "spec.h"

#include "dev.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ETW_PROVIDER "etw"

/* Whether a word means the session's own provider: by short or full name. */
static bool is_etw(const char *name)
{
	return !strcasecmp(name, ETW_PROVIDER) || !strcasecmp(name, "Linux-Kernel-Etw");
}

const struct opt opts_providers[] = {
	{ "provider", 'p', "SPEC", "enable PROVIDER[:LEVEL[:KEYWORDS or EVENTS[:ALL KEYWORDS]]], names joined by +",
	  "@provider" },
	{ "profile", OPT_PROFILE, "NAME", "enable the providers of a profile (etwctl list profiles)", "@profile" },
	{ "no-etw", OPT_NO_ETW, NULL, "without the provider etw: clocks, losses, session start and stop", NULL },
	{}
};

const struct opt opts_enable[] = {
	{ "event", OPT_EVENT, "LIST|!LIST", "record only these events, or all but these", "@event" },
	{ "pid", OPT_PID, "LIST", "record only events of these threads or processes, or about them", NULL },
	{}
};

const struct opt opts_live[] = {
	{ "process", OPT_PROCESS, "LIST", "record only events of processes that run these programs", NULL },
	{ "where", OPT_WHERE, "CONDITION",
	  "record only events whose field is so, as 'nr_sector >= 64'; several times: all must hold", NULL },
	{ "where-any", OPT_WHERE_ANY, NULL, "one --where is enough", NULL },
	{ "id", OPT_ID, "LIST|!LIST", "record only events with these ids, as 1,4-6, or all but these", NULL },
	{ "uid", OPT_UID, "USER", "only providers that this user registered", NULL },
	{}
};

static void spec_free(struct spec *spec)
{
	for (unsigned int n = 0; n < spec->nr_events; n++)
		free(spec->events[n]);
	free(spec->events);
	free(spec->ids);
	free(spec->provider);
	free(spec->text);
}

/* Takes @spec->text apart. */
static int spec_parse(const struct specs *s, struct spec *spec)
{
	char *rest = xstrdup(spec->text), *level;
	int n;

	spec->provider = text_part(&rest, ':');
	level = text_part(&rest, ':');
	spec->what = text_part(&rest, ':');
	spec->all_words = text_part(&rest, ':');
	if (rest)
		return usage(
			"-p '%s' has more than four parts; write PROVIDER[:LEVEL[:KEYWORDS or EVENTS[:ALL KEYWORDS]]]",
			spec->text);
	if (!*spec->provider)
		return usage("-p '%s' names no provider; etwctl list providers shows them", spec->text);
	if (level && *level && strcmp(level, "all")) {
		n = etw_level_parse(level);
		if (n < 0)
			return usage(
				"-p '%s': '%s' is not a level; write critical, error, warning, info, verbose, all or a number from 0 to 255",
				spec->text, level);
		spec->level = n;
	}
	if (spec->what && !*spec->what)
		spec->what = NULL;
	if (spec->all_words && !*spec->all_words)
		spec->all_words = NULL;
	for (unsigned int i = 0; i < s->nr; i++)
		if (!strcasecmp(s->list[i].provider, spec->provider))
			return usage("-p '%s': %s is there already; each provider once, with its words joined by +",
				     spec->text, spec->provider);
	return 0;
}

int specs_add(struct specs *s, const char *text)
{
	struct spec *list, spec = { .text = xstrdup(text) };
	int status = spec_parse(s, &spec);

	if (status) {
		spec_free(&spec);
		return status;
	}
	list = realloc(s->list, (s->nr + 1) * sizeof(*list));
	if (!list)
		abort();
	s->list = list;
	s->list[s->nr++] = spec;
	return 0;
}

static int parse_pids(struct specs *s, const char *arg)
{
	char **list = list_split("--pid", arg);
	uint64_t value;

	if (!list)
		return STATUS_USAGE;
	free(s->pids);
	s->nr_pids = list_len(list);
	s->pids = xmalloc(s->nr_pids * sizeof(*s->pids));
	for (unsigned int i = 0; i < s->nr_pids; i++) {
		if (parse_u64("--pid", list[i], 1, INT32_MAX, &value)) {
			list_free(list);
			return STATUS_USAGE;
		}
		s->pids[i] = value;
	}
	list_free(list);
	if (s->nr_pids > ETW_MAX_PIDS)
		return usage("--pid: %u numbers are more than the %u of one filter", s->nr_pids, ETW_MAX_PIDS);
	return 0;
}

/* Programs may be named by their path; the kernel keeps the beginning of the last part. */
static int parse_processes(struct specs *s, const char *arg)
{
	list_free(s->processes);
	s->processes = list_split("--process", arg);
	if (!s->processes)
		return STATUS_USAGE;
	for (char **p = s->processes; *p; p++) {
		char *base = strrchr(*p, '/');

		/* A kernel thread's name has slashes too, behind a blank or a colon or not; a path begins with one or a dot. */
		if (base && (**p == '/' || **p == '.'))
			memmove(*p, base + 1, strlen(base + 1) + 1);
		if (!**p)
			return usage("--process: '%s' ends in a slash and names no program", arg);
		if (strlen(*p) > 15)
			(*p)[15] = 0;
	}
	if (list_len(s->processes) > ETW_MAX_PROCESS_NAMES)
		return usage("--process: %zu names are more than the %u of one filter", list_len(s->processes),
			     ETW_MAX_PROCESS_NAMES);
	return 0;
}

static int add_where(struct specs *s, const char *arg)
{
	struct where w, *list;
	int status;

	if (s->nr_where == ETW_MAX_PREDICATES)
		return usage("--where '%s': more than the %u conditions of one filter", arg, ETW_MAX_PREDICATES);
	status = where_parse(arg, &w);
	if (status)
		return status;
	list = realloc(s->where, (s->nr_where + 1) * sizeof(w));
	if (!list)
		abort();
	s->where = list;
	s->where[s->nr_where++] = w;
	return 0;
}

static int parse_user(struct specs *s, const char *arg)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *user = NULL;
	uint64_t uid;

	s->by_uid = true;
	while (f && (user = fgetpwent(f)) && strcmp(user->pw_name, arg))
		;
	if (user)
		s->uid = user->pw_uid;
	if (f)
		fclose(f);
	if (user)
		return 0;
	if (!isdigit((unsigned char)*arg))
		return usage("--uid: there is no user '%s'", arg);
	if (parse_u64("--uid", arg, 0, UINT32_MAX - 1, &uid))
		return STATUS_USAGE;
	s->uid = uid;
	return 0;
}

bool specs_filtered(const struct specs *s)
{
	return s->ids || s->processes || s->nr_where || s->where_any || s->by_uid;
}

int specs_option(struct specs *s, int key, const char *arg)
{
	switch (key) {
	case OPT_PROCESS:
		return parse_processes(s, arg);
	case OPT_WHERE:
		return add_where(s, arg);
	case OPT_WHERE_ANY:
		s->where_any = true;
		return 0;
	case OPT_ID:
		list_free(s->ids);
		s->ids_out = *arg == '!';
		s->ids = list_split("--id", arg + s->ids_out);
		return s->ids ? 0 : STATUS_USAGE;
	case OPT_UID:
		return parse_user(s, arg);
	case 'p':
		return specs_add(s, arg);
	case OPT_PROFILE:
		return specs_profile(s, arg);
	case OPT_NO_ETW:
		s->no_etw = true;
		return 0;
	case OPT_PID:
		return parse_pids(s, arg);
	case OPT_EVENT:
		list_free(s->events);
		s->events_out = *arg == '!';
		s->events = list_split("--event", arg + s->events_out);
		return s->events ? 0 : STATUS_USAGE;
	}
	return 0;
}

/* What the module knows about one provider. */
struct known {
	struct etw_provider_list info;
	struct etw_keyword *keywords;
	struct known_event {
		char name[ETW_NAME_SIZE];
		char *ctf_name;
		__u64 keyword;
		bool rundown;
		struct etw_class *cls;
	} *events;
	unsigned int nr_events;
	bool found;
};

static void known_free(struct known *k)
{
	for (unsigned int i = 0; i < k->nr_events; i++) {
		free(k->events[i].ctf_name);
		etw_class_free(k->events[i].cls);
	}
	free(k->events);
	free(k->keywords);
}

/* Looks up a provider with its keywords and events; an unknown one is left with @found false. */
static int known_get(struct etw_control *control, const char *provider, struct known *k)
{
	const struct etw_keyword *keywords;
	struct etw_event_list ev = {};
	const struct etw_class *cls;
	int err;

	memset(k, 0, sizeof(*k));
	err = etw_control_find_provider(control, provider, &k->info, &keywords);
	if (err == -ENOENT) {
		if (!etw_name_valid(provider)) {
			__u8 guid[16];

			if (etw_guid_parse(provider, guid))
				return fail(
					STATUS_USAGE,
					"'%s' is not a provider's name or GUID; etwctl list providers shows those that exist",
					provider);
		}
		return 0;
	}
	if (err)
		return fail_etw(err, provider);
	k->found = true;
	k->keywords = xmalloc(k->info.nr_keywords * sizeof(*keywords));
	if (k->info.nr_keywords)
		memcpy(k->keywords, keywords, k->info.nr_keywords * sizeof(*keywords));
	k->events = xmalloc(k->info.nr_events * sizeof(*k->events));
	while (k->nr_events < k->info.nr_events && (err = etw_control_next_event(control, &ev, &cls)) == 1) {
		struct known_event *e = &k->events[k->nr_events];

		if (ev.provider_id != k->info.id)
			continue;
		snprintf(e->name, sizeof(e->name), "%s", cls->name);
		e->ctf_name = xstrdup(cls->ctf_name);
		e->keyword = cls->keyword;
		e->rundown = ev.flags & ETW_EVENT_RUNDOWN;
		k->nr_events++;
		err = etw_class_parse(cls->schema, cls->schema->size, NULL, &e->cls);
		if (err)
			break;
	}
	return err < 0 ? fail_etw(err, provider) : 0;
}

static bool keyword_value(const struct known *k, const char *word, __u64 *mask)
{
	char *end;

	if (isdigit((unsigned char)*word)) {
		errno = 0;
		*mask |= strtoull(word, &end, 0);
		return !*end && !errno;
	}
	for (unsigned int i = 0; i < k->info.nr_keywords; i++)
		if (!strncasecmp((const char *)k->keywords[i].name, word, sizeof(k->keywords[i].name))) {
			*mask |= k->keywords[i].mask;
			return true;
		}
	return false;
}

static void add_event(struct spec *spec, const char *name)
{
	char **events;

	for (unsigned int i = 0; i < spec->nr_events; i++)
		if (!strcmp(spec->events[i], name))
			return;
	events = realloc(spec->events, (spec->nr_events + 1) * sizeof(*events));
	if (!events)
		abort();
	spec->events = events;
	spec->events[spec->nr_events++] = xstrdup(name);
}

/* Adds the events that @word names; how many that are. */
static int events_of_word(const struct known *k, const char *word, struct spec *spec)
{
	int ends = 0, n = 0;

	for (unsigned int i = 0; i < k->nr_events; i++)
		if (!fnmatch(word, k->events[i].name, 0) || !fnmatch(word, k->events[i].ctf_name, 0)) {
			add_event(spec, k->events[i].name);
			n++;
		}
	if (n)
		return n;
	/* The end of a name after a '_', if it is the end of only one: "switch" for sched_switch. */
	for (int pass = 0; pass < 2; pass++) {
		for (unsigned int i = 0; i < k->nr_events; i++) {
			const char *name = k->events[i].name;
			size_t len = strlen(name), tail = strlen(word);

			if (len <= tail + 1 || name[len - tail - 1] != '_' || strcmp(name + len - tail, word))
				continue;
			if (pass)
				add_event(spec, name);
			else
				ends++;
		}
		if (ends != 1)
			break;
	}
	return ends;
}

static char *words_of(const struct known *k)
{
	char *text = xstrdup(""), *more;

	for (unsigned int i = 0; i < k->info.nr_keywords; i++) {
		more = xasprintf("%s%s%.*s", text, *text ? ", " : "", (int)sizeof(k->keywords[i].name),
				 (const char *)k->keywords[i].name);
		free(text);
		text = more;
	}
	return text;
}

/* The third and the fourth part of a -p. */
static int settle_words(struct spec *spec, const struct known *k)
{
	char *copy, *rest, *word, *words;
	bool mixed = false;
	int n, status = 0;
	__u64 any = 0;

	if (!k->found && spec->what)
		for (const char *p = spec->what; *p; p++)
			if (isalpha((unsigned char)*p) && !(*p == 'x' && p > spec->what && p[-1] == '0') &&
			    !isxdigit((unsigned char)*p))
				return fail(STATUS_FAILED,
					    "-p '%s': %s is not registered, so only numbers can be keywords",
					    spec->text, spec->provider);
	rest = copy = spec->what ? xstrdup(spec->what) : NULL;
	while (!status && (word = text_part(&rest, '+'))) {
		__u64 mask = 0;

		if (keyword_value(k, word, &mask)) {
			any |= mask;
			continue;
		}
		mixed = true;
		n = events_of_word(k, word, spec);
		if (n > 1 && !strpbrk(word, "*?[")) {
			bool exact = false;

			for (unsigned int i = 0; i < k->nr_events; i++)
				exact |= !strcmp(k->events[i].name, word) || !strcmp(k->events[i].ctf_name, word);
			if (!exact)
				status = fail(
					STATUS_FAILED,
					"-p '%s': '%s' is the end of several events' names; write the whole name (etwctl list events %s)",
					spec->text, word, spec->provider);
		}
		if (!n) {
			words = words_of(k);
			status = fail(
				STATUS_FAILED,
				"-p '%s': '%s' is no keyword and no event of %s; its keywords are %s, its events: etwctl list events %s",
				spec->text, word, spec->provider, *words ? words : "none", spec->provider);
			free(words);
		}
	}
	free(copy);
	/* Words of both kinds: a mask would only narrow the list of events, so it becomes events too. */
	for (unsigned int i = 0; mixed && i < k->nr_events; i++)
		if (k->events[i].keyword & any)
			add_event(spec, k->events[i].name);
	if (!mixed)
		spec->any = any;
	if (spec->nr_events)
		spec->event_mode = ETW_EVENTS_IN;
	rest = copy = !status && spec->all_words ? xstrdup(spec->all_words) : NULL;
	while (!status && (word = text_part(&rest, '+')))
		if (!keyword_value(k, word, &spec->all)) {
			words = words_of(k);
			status = fail(STATUS_FAILED, "-p '%s': '%s' is no keyword of %s; they are %s", spec->text, word,
				      spec->provider, *words ? words : "none");
			free(words);
		}
	free(copy);
	if (!status && spec->all && !spec->any)
		/* With any = 0 the module does not look at all; "every one of these" was meant. */
		spec->any = spec->all;
	return status;
}

static bool is_called(const struct spec *spec, const struct known *k, const char *pattern)
{
	return !fnmatch(pattern, spec->name, FNM_CASEFOLD) ||
	       (k->found && *k->info.alias && !fnmatch(pattern, (const char *)k->info.alias, FNM_CASEFOLD));
}

/* The part of a "provider:event" or "provider/event" that is for this provider; NULL: it is for another. */
static const char *event_part(const struct spec *spec, const struct known *k, const char *text)
{
	size_t n = strcspn(text, "/:");
	char provider[ETW_NAME_SIZE];

	if (!text[n] || n >= sizeof(provider) || strchr(text, ';'))
		return text;
	snprintf(provider, sizeof(provider), "%.*s", (int)n, text);
	return is_called(spec, k, provider) ? text + n + 1 : NULL;
}

/* --event: narrows the events of one provider. */
static void settle_events(struct specs *s, struct spec *spec, const struct known *k, bool *used)
{
	struct spec hit = {};

	for (int i = 0; s->events[i]; i++) {
		const char *part = event_part(spec, k, s->events[i]);

		if (part && events_of_word(k, *part ? part : "*", &hit))
			used[i] = true;
	}
	if (spec->event_mode == ETW_EVENTS_ALL) {
		spec->events = hit.events;
		spec->nr_events = hit.nr_events;
		spec->event_mode = !hit.nr_events ? ETW_EVENTS_ALL : s->events_out ? ETW_EVENTS_OUT : ETW_EVENTS_IN;
		spec->skip = !hit.nr_events && !s->events_out;
		return;
	}
	/* The third part of -p named events already: keep those that --event lets through. */
	for (unsigned int i = 0; i < spec->nr_events;) {
		bool named = false;

		for (unsigned int n = 0; n < hit.nr_events; n++)
			named |= !strcmp(hit.events[n], spec->events[i]);
		if (named != s->events_out) {
			i++;
			continue;
		}
		free(spec->events[i]);
		spec->events[i] = spec->events[--spec->nr_events];
	}
	spec->skip = !spec->nr_events;
	for (unsigned int n = 0; n < hit.nr_events; n++)
		free(hit.events[n]);
	free(hit.events);
}

/* "4" or "4-6". */
static int parse_ids(const char *text, uint64_t *first, uint64_t *last)
{
	char *copy = xstrdup(text), *dash = strchr(copy, '-');
	int status;

	if (dash)
		*dash++ = 0;
	status = parse_u64("--id", copy, 0, UINT16_MAX, first);
	*last = *first;
	if (!status && dash)
		status = parse_u64("--id", dash, *first, UINT16_MAX, last);
	free(copy);
	return status;
}

static bool has_id(const struct known *k, uint64_t first, uint64_t last)
{
	for (unsigned int i = 0; i < k->nr_events; i++)
		if (k->events[i].cls->event_id >= first && k->events[i].cls->event_id <= last)
			return true;
	return !k->found;
}

/* --id: of a provider that is there, the ids that it has. */
static int settle_ids(struct specs *s, struct spec *spec, const struct known *k, bool *used)
{
	unsigned int room = 0;

	for (int i = 0; s->ids[i]; i++) {
		const char *part = event_part(spec, k, s->ids[i]);
		uint64_t first, last;

		if (!part)
			continue;
		if (parse_ids(part, &first, &last))
			return STATUS_USAGE;
		if (!has_id(k, first, last))
			continue;
		used[i] = true;
		for (uint64_t id = first; id <= last; id++) {
			if (!has_id(k, id, id))
				continue;
			if (spec->nr_ids == ETW_MAX_EVENT_IDS)
				return usage("--id: more than the %u ids of one filter", ETW_MAX_EVENT_IDS);
			if (spec->nr_ids == room) {
				room = room ? 2 * room : 16;
				spec->ids = realloc(spec->ids, room * sizeof(*spec->ids));
				if (!spec->ids)
					abort();
			}
			spec->ids[spec->nr_ids++] = id;
		}
	}
	if (spec->nr_ids)
		spec->id_mode = s->ids_out ? ETW_EVENTS_OUT : ETW_EVENTS_IN;
	else
		spec->skip |= !s->ids_out;
	return 0;
}

/* Conditions are asked of it. Of what rundown writes nothing is asked. */
static bool is_chosen(const struct spec *spec, const struct known_event *e)
{
	bool named = false;

	if (e->rundown)
		return false;
	for (unsigned int i = 0; i < spec->nr_events && !named; i++)
		named = !strcmp(spec->events[i], e->name);
	return spec->event_mode == ETW_EVENTS_ALL || named == (spec->event_mode == ETW_EVENTS_IN);
}

/* --where: the conditions as they are for the events that are chosen of this provider. */
static int settle_where(struct specs *s, struct spec *spec, const struct known *k)
{
	struct etw_class **classes = xmalloc((k->nr_events + 1) * sizeof(*classes));
	unsigned int nr = 0, asked = 0;
	int status = 0;

	for (unsigned int i = 0; i < k->nr_events; i++)
		if (is_chosen(spec, &k->events[i]))
			classes[nr++] = k->events[i].cls;
	for (unsigned int i = 0; !status && i < s->nr_where; i++) {
		struct where *w = &s->where[i];
		bool found;

		if (w->provider && !is_called(spec, k, w->provider))
			continue;
		asked++;
		if (k->found && !nr)
			found = false;
		else
			status = where_settle(w, spec->provider, classes, nr, &found,
					      &spec->predicates[spec->nr_predicates]);
		if (found)
			spec->nr_predicates++;
		else
			spec->missing = w->field;
	}
	if (spec->nr_predicates && (s->where_any || spec->nr_predicates == asked))
		spec->missing = NULL;
	spec->skip |= !!spec->missing;
	free(classes);
	return status;
}

/* Each --where has been for something. */
static int check_where(const struct specs *s, struct etw_control *control)
{
	for (unsigned int i = 0; i < s->nr_where; i++) {
		const struct where *w = &s->where[i];
		char *list = xstrdup(""), *fields, *more;

		for (unsigned int n = 0; !w->used && n < s->nr; n++) {
			const struct spec *spec = &s->list[n];
			struct etw_class **classes;
			unsigned int nr = 0;
			struct known k;

			if (is_etw(spec->name) || known_get(control, spec->provider, &k))
				continue;
			if (!w->provider || is_called(spec, &k, w->provider)) {
				classes = xmalloc((k.nr_events + 1) * sizeof(*classes));
				for (unsigned int e = 0; e < k.nr_events; e++)
					if (is_chosen(spec, &k.events[e]))
						classes[nr++] = k.events[e].cls;
				fields = where_fields(classes, nr);
				more = xasprintf("%s%s%s: %s", list, *list ? "; " : "", spec->provider,
						 *fields ? fields : "none");
				free(classes);
				free(fields);
				free(list);
				list = more;
			}
			known_free(&k);
		}
		if (!w->used && !*list)
			fail(STATUS_FAILED, "--where '%s': %s is none of the providers chosen", w->text, w->provider);
		else if (!w->used)
			fail(STATUS_FAILED, "--where '%s': no event chosen has a field %s; fields of %s", w->text, w->field,
			     list);
		free(list);
		if (!w->used)
			return STATUS_FAILED;
	}
	return 0;
}

int specs_settle(struct specs *s, struct etw_control *control)
{
	unsigned int first_user = 0;
	bool *used = xmalloc(list_len(s->events) + 1), *used_ids = xmalloc(list_len(s->ids) + 1);
	int status = 0;

	if (s->where_any && !s->nr_where) {
		free(used);
		free(used_ids);
		return usage("--where-any says that one --where is enough, and there is none");
	}

	if (!s->no_etw) {
		bool there = false;

		for (unsigned int i = 0; i < s->nr; i++)
			there |= is_etw(s->list[i].provider);
		if (!there) {
			struct spec last;

			status = specs_add(s, ETW_PROVIDER);
			if (!status) {
				/* It goes first: its records say when each of the others began. */
				last = s->list[s->nr - 1];
				memmove(s->list + 1, s->list, (s->nr - 1) * sizeof(last));
				s->list[0] = last;
				first_user = 1;
			}
		}
	}
	for (unsigned int i = 0; !status && i < s->nr; i++) {
		struct spec *spec = &s->list[i];
		struct known k;

		status = known_get(control, spec->provider, &k);
		if (!status) {
			snprintf(spec->name, sizeof(spec->name), "%s",
				 k.found ? (const char *)k.info.name : spec->provider);
			status = settle_words(spec, &k);
		}
		if (!status && s->by_uid && !is_etw(spec->name) && k.found && (k.info.flags & ETW_PROVIDER_KERNEL))
			status = fail(
				STATUS_FAILED,
				"--uid: %s is the kernel's, which no user has registered; record it without --uid, in a session of its own",
				spec->name);
		for (unsigned int n = 0; !status && n < i; n++)
			if (!strcasecmp(s->list[n].name, spec->name))
				status = usage(
					"-p '%s' and -p '%s' are the same provider; name it once, with its words joined by +",
					s->list[n].text, spec->text);
		if (!status && s->events && i >= first_user)
			settle_events(s, spec, &k, used);
		/* No filter holds back the session's own records. */
		if (!status && s->ids && !is_etw(spec->name))
			status = settle_ids(s, spec, &k, used_ids);
		if (!status && s->nr_where && !is_etw(spec->name))
			status = settle_where(s, spec, &k);
		known_free(&k);
	}
	for (int i = 0; !status && s->events && s->events[i]; i++)
		if (!used[i])
			status = fail(
				STATUS_FAILED,
				"--event: none of the providers chosen has an event '%s'; etwctl list events shows them",
				s->events[i]);
	for (int i = 0; !status && s->ids && s->ids[i]; i++)
		if (!used_ids[i])
			status = fail(
				STATUS_FAILED,
				"--id: none of the providers chosen has an event with the id '%s'; etwctl list events shows them",
				s->ids[i]);
	if (!status)
		status = check_where(s, control);
	free(used);
	free(used_ids);
	return status;
}

int specs_enable(struct specs *s, struct etw_session *session, void (*between)(void *arg), void *arg)
{
	for (unsigned int i = 0; i < s->nr; i++) {
		const struct spec *spec = &s->list[i];
		bool ours = is_etw(spec->name);
		struct etw_enable_options o = {
			.size = sizeof(o),
			.provider = spec->name,
			.level = spec->level,
			.any = spec->any,
			.all = spec->all,
			.event_mode = spec->event_mode,
			.nr_events = spec->nr_events,
			.events = (const char *const *)spec->events,
			/* The session's own records belong to nobody's process. */
			.pids = ours ? NULL : s->pids,
			.nr_pids = ours ? 0 : s->nr_pids,
			.id_mode = spec->id_mode,
			.ids = spec->ids,
			.nr_ids = spec->nr_ids,
			.processes = ours ? NULL : (const char *const *)s->processes,
			.nr_processes = ours ? 0 : list_len(s->processes),
			.predicates = spec->nr_predicates ? spec->predicates : NULL,
			.nr_predicates = spec->nr_predicates,
		};
		int err;

		if (spec->nr_predicates && s->where_any)
			o.flags |= ETW_ENABLE_ANY_PREDICATE;
		if (s->by_uid && !ours) {
			o.flags |= ETW_ENABLE_UID;
			o.uid = s->uid;
		}

		if (spec->missing)
			note("%s: none of its events has the field %s of --where, so nothing of it is recorded; to ask it of one provider only write 'PROVIDER/%s ...'",
			     spec->provider, spec->missing, spec->missing);
		if (spec->skip)
			continue;
		err = etw_session_enable(session, &o);
		for (unsigned int n = 0; err == -ESRCH && n < o.nr_pids; n++)
			if (kill(o.pids[n], 0) && errno == ESRCH)
				return fail(STATUS_FAILED, "--pid: there is no process or thread %d", o.pids[n]);
		if (err < 0)
			return fail_etw(err, spec->text);
		if (!err && (o.flags & ETW_ENABLE_UID))
			note("%s is not registered by user %u; it will be recorded when it is", spec->text, s->uid);
		else if (!err)
			note("%s is not registered; it will be recorded when it is", spec->text);
		if (between)
			between(arg);
	}
	return 0;
}

void specs_free(struct specs *s)
{
	for (unsigned int i = 0; i < s->nr; i++)
		spec_free(&s->list[i]);
	free(s->list);
	for (unsigned int i = 0; i < s->nr_where; i++)
		where_free(&s->where[i]);
	free(s->where);
	free(s->pids);
	list_free(s->events);
	list_free(s->ids);
	list_free(s->processes);
	memset(s, 0, sizeof(*s));
}
