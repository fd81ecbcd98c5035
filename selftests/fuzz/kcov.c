// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which code of the module a thread went through, from the kernel's KCOV. Only the module is instrumented. It must not
 * know calls.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/kcov.h>

#include "fuzz.h"

#define NR_RECORDS (64U << 10)
#define NR_EDGES (1U << 18)
#define NR_BLOCKS (1U << 20)	/* bytes of the module's code, at most */
#define MAX_FUNCTIONS 4096
#define MAX_OPS 64

struct kcov {
	uint64_t *records;
};

struct function {
	uint64_t at;
	char name[256];
	bool neutral;
	bool reached;
};

static uint64_t base;
static _Atomic uint8_t edges[NR_EDGES / 8], blocks[NR_BLOCKS / 8];
static _Atomic uint8_t *op_blocks;		/* MAX_OPS times NR_BLOCKS / 8 */
static struct function functions[MAX_FUNCTIONS];
static unsigned int nr_functions, total;

static int by_address(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/*
 * What records an event runs when the event happens, whatever is being called: it is counted, but makes no edge, or
 * every interruption would look like news.
 */
static bool is_neutral(const char *name)
{
	static const char *const beginnings[] = {
		"probe_", "filter_", "write_", "etw_write", "etw_relay_reserve", "etw_relay_lose", "etw_nested", "close_packet",
		"open_slot", "begin_packet", "etw_relay_deliver", "copy_scrubbed", "put_header", "etw_reject", "wake_readers",
		"etw_clock_read", "etw_filter_has_exact", "flush_local", "etw_relay_flush", "flush_tick",
	};
	size_t i;

	for (i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

/* The module's functions, by address; the first is where it begins. */
static void read_symbols(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long at;
	char line[512], name[256], module[64], type;

	while (f && fgets(line, sizeof(line), f)) {
		struct function *fn = &functions[nr_functions];

		if (sscanf(line, "%llx %c %255s %63s", &at, &type, name, module) != 4 || strcmp(module, "[etw]") ||
		    (type != 't' && type != 'T') || !at || !strncmp(name, "__pfx_", 6) || nr_functions == MAX_FUNCTIONS)
			continue;
		fn->at = at;
		snprintf(fn->name, sizeof(fn->name), "%s", name);
		fn->neutral = is_neutral(name);
		nr_functions++;
	}
	if (f)
		fclose(f);
	qsort(functions, nr_functions, sizeof(*functions), by_address);
	base = nr_functions ? functions[0].at : 0;
}

/* Calls of KCOV in the module's file: what can be reached at most. */
static void count_blocks(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	const uint8_t *file = size > 0 ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	const Elf64_Ehdr *h = (const void *)file;
	const Elf64_Shdr *s;
	unsigned int i;
	size_t k;

	if (fd >= 0)
		close(fd);
	if (file == MAP_FAILED)
		return;
	s = (const void *)(file + h->e_shoff);
	for (i = 0; i < h->e_shnum; i++) {
		const Elf64_Rela *r = (const void *)(file + s[i].sh_offset);
		const Elf64_Sym *symbols;
		const char *names;

		if (s[i].sh_type != SHT_RELA || !(s[s[i].sh_info].sh_flags & SHF_EXECINSTR))
			continue;
		symbols = (const void *)(file + s[s[i].sh_link].sh_offset);
		names = (const char *)(file + s[s[s[i].sh_link].sh_link].sh_offset);
		for (k = 0; k < s[i].sh_size / sizeof(*r); k++)
			total += !strcmp(names + symbols[ELF64_R_SYM(r[k].r_info)].st_name, "__sanitizer_cov_trace_pc");
	}
	munmap((void *)file, size);
}

bool kcov_init(void)
{
	int fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	read_symbols();
	count_blocks(getenv("ETW_KO") ? getenv("ETW_KO") : "/etw/etw.ko");
	op_blocks = mmap(NULL, MAX_OPS * (NR_BLOCKS / 8), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return base && op_blocks != MAP_FAILED;
}

struct kcov *kcov_open(void)
{
	struct kcov *k = calloc(1, sizeof(*k));
	int fd = private_fd(open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC));

	if (!k || fd < 0 || ioctl(fd, KCOV_INIT_TRACE, NR_RECORDS))
		goto failed;
	k->records = mmap(NULL, NR_RECORDS * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (k->records == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		goto failed;
	return k;

failed:
	perror("fuzz: kcov");
	exit(1);
}

void kcov_begin(struct kcov *k)
{
	__atomic_store_n(&k->records[0], 0, __ATOMIC_RELAXED);
}

static bool set_bit(_Atomic uint8_t *bits, uint32_t bit)
{
	const uint8_t mask = 1 << bit % 8;

	if (atomic_load_explicit(&bits[bit / 8], memory_order_relaxed) & mask)
		return false;
	return !(atomic_fetch_or_explicit(&bits[bit / 8], mask, memory_order_relaxed) & mask);
}

static struct function *function_of(uint64_t pc)
{
	unsigned int low = 0, high = nr_functions;

	while (low + 1 < high) {
		unsigned int middle = (low + high) / 2;

		if (functions[middle].at <= pc)
			low = middle;
		else
			high = middle;
	}
	return &functions[low];
}

unsigned int kcov_end(struct kcov *k, uint32_t op)
{
	uint64_t nr = __atomic_load_n(&k->records[0], __ATOMIC_RELAXED), i, last = op;
	struct function *fn = &functions[0];
	unsigned int news = 0;

	for (i = 1; i <= nr && i < NR_RECORDS; i++) {
		uint64_t pc = k->records[i] - base;

		if (pc >= NR_BLOCKS)
			continue;
		set_bit(blocks, pc);
		set_bit(op_blocks + op * (NR_BLOCKS / 8), pc);
		if (k->records[i] < fn->at || (fn + 1 < functions + nr_functions && k->records[i] >= fn[1].at))
			fn = function_of(k->records[i]);
		fn->reached = true;
		if (fn->neutral)
			continue;
		news += set_bit(edges, (uint32_t)((last * 0x9e3779b1U ^ pc * 0x85ebca6bU) >> 7) % NR_EDGES);
		last = pc;
	}
	return news;
}

static unsigned int count_bits(const _Atomic uint8_t *bits, unsigned int bytes)
{
	unsigned int i, sum = 0;

	for (i = 0; i < bytes; i++)
		sum += __builtin_popcount(bits[i]);
	return sum;
}

unsigned int kcov_edges(void)
{
	return count_bits(edges, sizeof(edges));
}

unsigned int kcov_blocks(void)
{
	return count_bits(blocks, sizeof(blocks));
}

unsigned int kcov_op_blocks(uint32_t op)
{
	return count_bits(op_blocks + op * (NR_BLOCKS / 8), NR_BLOCKS / 8);
}

unsigned int kcov_total(void)
{
	return total;
}

void kcov_print_unreached(FILE *out)
{
	unsigned int i;

	for (i = 0; i < nr_functions; i++)
		/* constructors of the sanitizers, and parts of functions, are none */
		if (!functions[i].reached && functions[i].name[0] != '_' && !strstr(functions[i].name, ".cold"))
			fprintf(out, "# not reached: %s\n", functions[i].name);
}
