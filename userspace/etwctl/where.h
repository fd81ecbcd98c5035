/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A condition on a field as written after --where, and what it becomes for the events of a provider. It must not know
 * sessions nor how providers are chosen.
 *
 *	[PROVIDER/]FIELD OP VALUE
 *	  OP	==  !=  <  <=  >  >=  &  (bits in common)  ^=  (begins with)  *=  (contains)
 *	  VALUE	as the field's type is: a number, names of its map joined by |, true or false, a device, an errno's name, a
 *		GUID, an address; or text, in quotes or not
 */
#ifndef ETWCTL_WHERE_H
#define ETWCTL_WHERE_H

#include <etw/etw.h>

#include "etwctl.h"

struct where {
	char *text;		/* as written */
	char *provider;		/* NULL = all */
	char *field;
	__u32 op;
	char *value;		/* without its quotes */
	bool quoted;
	bool used;		/* an event of some provider has the field */
};

/* Takes @text apart; 0, or STATUS_USAGE after saying what is wrong. */
int where_parse(const char *text, struct where *w);
void where_free(struct where *w);

/*
 * The predicate that @w is for events of these @nr classes of @provider. *@found: one of them has the field; if none
 * has, @p is not set. With @nr 0 the classes are not known: what it looks like decides. 0, or a status after saying what
 * is wrong.
 */
int where_settle(struct where *w, const char *provider, struct etw_class *const *classes, unsigned int nr, bool *found,
		 struct etw_predicate *p);

/* The names of all fields of these classes, for an error; to be freed. */
char *where_fields(struct etw_class *const *classes, unsigned int nr);

#endif
