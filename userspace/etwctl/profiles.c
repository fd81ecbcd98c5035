// SPDX-License-Identifier: GPL-2.0-only
/*
 * Profiles: named sets of providers in text files, and those built in. It must not know what a provider's words mean.
 *
 *	# comment
 *	description TEXT
 *	provider SPEC		as after -p
 */
#include "spec.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

/* The profiles of the source tree, so that one static binary is enough. */
#define PROFILE(name)											\
	__asm__(".section .rodata\n"									\
		"profile_" #name ": .incbin \"" ETWCTL_PROFILE_DIR "/" #name ".profile\"\n.byte 0\n"	\
		".previous\n");										\
	extern const char profile_##name[] __attribute__((visibility("hidden")))

PROFILE(default);
PROFILE(cpu);
PROFILE(disk);
PROFILE(memory);

static const struct {
	const char *name, *text;
} builtin[] = {
	{ "default", profile_default },
	{ "cpu", profile_cpu },
	{ "disk", profile_disk },
	{ "memory", profile_memory },
};

/* One line of a profile; 0 or a status. @s NULL: only look for the description, which goes to @description. */
static int profile_line(struct specs *s, const char *from, int number, char *line, char *description, size_t size)
{
	char *word, *rest;

	line[strcspn(line, "#")] = 0;
	while (isspace((unsigned char)*line))
		line++;
	for (char *end = line + strlen(line); end > line && isspace((unsigned char)end[-1]);)
		*--end = 0;
	if (!*line)
		return 0;
	word = line;
	rest = line + strcspn(line, " \t");
	if (*rest)
		*rest++ = 0;
	rest += strspn(rest, " \t");
	if (!strcmp(word, "description")) {
		if (description)
			snprintf(description, size, "%s", rest);
		return 0;
	}
	if (!strcmp(word, "provider") && *rest)
		return s ? specs_add(s, rest) : 0;
	if (!s)
		return 0;
	return fail(STATUS_FAILED, "profile %s, line %d: '%s%s%s': a line is 'provider SPEC' or 'description TEXT'",
		    from, number, word, *rest ? " " : "", rest);
}

static int profile_text(struct specs *s, const char *from, const char *text, char *description, size_t size)
{
	char *copy = xstrdup(text), *rest = copy, *line;
	int number = 0, status = 0;

	while (!status && (line = text_part(&rest, '\n')))
		status = profile_line(s, from, ++number, line, description, size);
	free(copy);
	return status;
}

static char *read_file(const char *path)
{
	size_t size = 0, room = 4096, n;
	FILE *f = fopen(path, "re");
	char *text;

	if (!f)
		return NULL;
	text = xmalloc(room);
	while ((n = fread(text + size, 1, room - size - 1, f)) > 0) {
		size += n;
		if (size + 1 == room) {
			char *more = xmalloc(2 * room);

			memcpy(more, text, size);
			free(text);
			text = more;
			room *= 2;
		}
	}
	fclose(f);
	text[size] = 0;
	return text;
}

/* The directories where profiles are looked for, first found wins; @i from 0, NULL at the end. Free the result. */
static char *profile_dir(int i)
{
	const char *home;

	switch (i) {
	case 0:
		return getenv("ETWCTL_PROFILES") ? xstrdup(getenv("ETWCTL_PROFILES")) : xstrdup("");
	case 1:
		home = getenv("XDG_CONFIG_HOME");
		if (home && *home)
			return xasprintf("%s/etw/profiles", home);
		home = getenv("HOME");
		return home ? xasprintf("%s/.config/etw/profiles", home) : xstrdup("");
	case 2:
		return xstrdup("/etc/etw/profiles");
	}
	return NULL;
}

int specs_profile(struct specs *s, const char *name)
{
	char *dir, *path, *text = NULL;
	int status;

	if (strchr(name, '/')) {
		text = read_file(name);
		if (!text)
			return fail(STATUS_FAILED, "profile %s: %s", name, strerror(errno));
		status = profile_text(s, name, text, NULL, 0);
		free(text);
		return status;
	}
	for (int i = 0; !text && (dir = profile_dir(i)); i++) {
		path = xasprintf("%s/%s.profile", dir, name);
		if (*dir)
			text = read_file(path);
		free(dir);
		if (text) {
			status = profile_text(s, path, text, NULL, 0);
			free(text);
			free(path);
			return status;
		}
		free(path);
	}
	for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++)
		if (!strcmp(builtin[i].name, name))
			return profile_text(s, name, builtin[i].text, NULL, 0);
	return fail(STATUS_FAILED, "there is no profile '%s'; etwctl list profiles shows them", name);
}

void profiles_each(void (*show)(const char *name, const char *from, const char *description))
{
	char description[128];
	char *dir, *text;

	for (int i = 0; (dir = profile_dir(i)); i++) {
		char *pattern = xasprintf("%s/*.profile", dir);
		glob_t found;

		if (*dir && !glob(pattern, 0, NULL, &found)) {
			for (size_t k = 0; k < found.gl_pathc; k++) {
				char *name = xstrdup(strrchr(found.gl_pathv[k], '/') + 1);

				name[strlen(name) - strlen(".profile")] = 0;
				text = read_file(found.gl_pathv[k]);
				*description = 0;
				if (text)
					profile_text(NULL, name, text, description, sizeof(description));
				show(name, found.gl_pathv[k], description);
				free(text);
				free(name);
			}
			globfree(&found);
		}
		free(pattern);
		free(dir);
	}
	for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++) {
		*description = 0;
		profile_text(NULL, builtin[i].name, builtin[i].text, description, sizeof(description));
		show(builtin[i].name, "built in", description);
	}
}
