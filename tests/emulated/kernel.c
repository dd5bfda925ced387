/* Runs one static program of Linux on an emulated processor, without Linux: programs start at once,
 * and the emulator needs no disk. Used by tools/test_avx512.sh.
 *
 * The program runs in ring 0, as this file does. It has one thread. Its output goes to the serial
 * port, and so does the line "exit code N" at its end. One file can be read, as /file.onnx. There
 * are the system calls that the C library and the tests need; others fail with ENOSYS. */
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Addresses: program (from 256 MiB on, see tools/test_avx512.sh), its heap, its mappings. */
enum { STACK_TOP = 0x0ff00000, HEAP_END = 0x28000000, MAPPED_END = 0x7f000000 };
enum { SERIAL = 0x3f8, BOCHS_SHUTDOWN = 0x8900, PAGE = 4096 };
enum { STAT_BYTES = 144, UTSNAME_BYTES = 390, SYSINFO_BYTES = 112 };
enum { SPARE = 4096, DESCRIPTORS = 64 };

#ifndef ENVIRONMENT
#define ENVIRONMENT
#endif
#ifndef ARGUMENTS
#define ARGUMENTS
#endif

struct gate {
    uint16_t low, selector;
    uint8_t stack, kind;
    uint16_t middle;
    uint32_t high, zero;
};

/* In boot.S. */
extern struct gate idt[20];
extern uint64_t fault_table[20];
extern unsigned char program[], file_start[], file_end[];
_Noreturn void enter_program(uint64_t entry, uint64_t stack);

/* Called by boot.S. */
void kernel_main(void);
void handle_fault(const uint64_t *frame);
int64_t handle_system_call(uint64_t number, const uint64_t *saved);

static uint64_t heap_start, heap_now, mapped = HEAP_END;
static uint64_t place_of[DESCRIPTORS]; /* in the file; descriptors from 3 on are of the file */
static uint64_t next_descriptor = 3;
static struct { uint64_t at, end; } spare[SPARE]; /* unmapped ranges; a full table forgets ranges */
static int n_spare;

static void write_port(uint16_t port, uint8_t v) {
    __asm__ volatile("outb %0, %1" ::"a"(v), "Nd"(port));
}

static uint8_t read_port(uint16_t port) {
    uint8_t v;
    __asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port));
    return v;
}

static void copy(void *to, const void *from, uint64_t n) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
}

static void clear(void *to, uint64_t n) {
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory");
}

static void write_char(char c) {
    while ((read_port(SERIAL + 5) & 0x20) == 0) continue;
    write_port(SERIAL, (uint8_t)c);
}

static void write_text(const char *s) {
    while (*s != '\0') write_char(*s++);
}

static void write_hex(uint64_t v) {
    for (int i = 60; i >= 0; i -= 4) write_char("0123456789abcdef"[v >> i & 15]);
}

/* Sets 115200 bits per second, no interrupts. */
static void open_serial(void) {
    static const uint8_t settings[][2] = {{1, 0}, {3, 0x80}, {0, 1}, {1, 0}, {3, 3}, {2, 0xc7}};
    for (int i = 0; i < 6; i++) write_port((uint16_t)(SERIAL + settings[i][0]), settings[i][1]);
}

static _Noreturn void leave(unsigned code) {
    write_text("\nexit code ");
    write_char((char)('0' + code / 100 % 10));
    write_char((char)('0' + code / 10 % 10));
    write_char((char)('0' + code % 10));
    write_text("\n\n");
    while ((read_port(SERIAL + 5) & 0x40) == 0) continue;
    for (const char *s = "Shutdown"; *s != '\0'; s++) write_port(BOCHS_SHUTDOWN, (uint8_t)*s);
    for (;;) __asm__ volatile("hlt");
}

/* frame: vector, error code, address of the instruction. */
void handle_fault(const uint64_t *frame) {
    uint64_t address;
    __asm__ volatile("mov %%cr2, %0" : "=r"(address));
    write_text("\nfault ");
    write_hex(frame[0]);
    write_text(" at ");
    write_hex(frame[2]);
    write_text(", address ");
    write_hex(address);
    leave(139);
}

static void give_back(uint64_t at, uint64_t end) {
    for (int i = 0; i < n_spare;) {
        if (spare[i].end != at && spare[i].at != end) {
            i++;
            continue;
        }
        if (spare[i].at < at) at = spare[i].at;
        if (spare[i].end > end) end = spare[i].end;
        spare[i] = spare[--n_spare];
        i = 0;
    }
    if (n_spare == SPARE) return;
    spare[n_spare].at = at;
    spare[n_spare++].end = end;
}

/* Returns the address of n free bytes, 0 if there are none. */
static uint64_t take(uint64_t n) {
    for (int i = 0; i < n_spare; i++) {
        if (spare[i].end - spare[i].at < n) continue;
        uint64_t at = spare[i].at;
        spare[i].at += n;
        if (spare[i].at == spare[i].end) spare[i] = spare[--n_spare];
        return at;
    }
    if (mapped + n > MAPPED_END) return 0;
    mapped += n;
    return mapped - n;
}

static uint64_t pages(uint64_t n) {
    return (n + PAGE - 1) / PAGE * PAGE;
}

static uint64_t file_bytes(void) {
    return (uint64_t)(file_end - file_start);
}

static int64_t read_file(void *to, uint64_t n, uint64_t at) {
    if (at >= file_bytes()) return 0;
    n = n < file_bytes() - at ? n : file_bytes() - at;
    copy(to, file_start + at, n);
    return (int64_t)n;
}

static int64_t find_file(uint64_t name) {
    const char *a = (const char *)name, *b = "/file.onnx";
    while (*a != '\0' && *a == *b) a++, b++;
    return *a == *b ? 0 : -ENOENT;
}

/* Writes a struct stat: a terminal, or the file. */
static int64_t describe(uint64_t descriptor, uint64_t to) {
    clear((void *)to, STAT_BYTES);
    ((uint64_t *)to)[1] = descriptor;
    ((uint64_t *)to)[2] = 1;
    ((uint32_t *)to)[6] = descriptor < 3 ? 0020620 : 0100644;
    ((uint64_t *)to)[6] = descriptor < 3 ? 0 : file_bytes();
    return 0;
}

static int64_t describe_name(uint64_t name, uint64_t to) {
    return find_file(name) == 0 ? describe(3, to) : -ENOENT;
}

static int64_t open_file(uint64_t name) {
    if (find_file(name) != 0) return -ENOENT;
    if (next_descriptor == DESCRIPTORS) return -EMFILE;
    place_of[next_descriptor] = 0;
    return (int64_t)next_descriptor++;
}

static int64_t seek(uint64_t descriptor, uint64_t offset, uint64_t from) {
    if (descriptor < 3 || descriptor >= DESCRIPTORS) return -ESPIPE;
    const uint64_t starts[] = {0, place_of[descriptor], file_bytes()};
    place_of[descriptor] = starts[from % 3] + offset;
    return (int64_t)place_of[descriptor];
}

static int64_t write_bytes(uint64_t from, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) write_char(((const char *)from)[i]);
    return (int64_t)n;
}

static int64_t write_vectors(const uint64_t *vectors, uint64_t n) {
    int64_t written = 0;
    for (uint64_t i = 0; i < n; i++) written += write_bytes(vectors[2 * i], vectors[2 * i + 1]);
    return written;
}

static int64_t map(uint64_t n, int descriptor, uint64_t offset) {
    uint64_t at = take(pages(n));
    if (at == 0) return -ENOMEM;
    clear((void *)at, pages(n));
    if (descriptor >= 3) (void)read_file((void *)at, n, offset);
    return (int64_t)at;
}

static int64_t set_heap(uint64_t end) {
    if (end < heap_start || end > HEAP_END) return (int64_t)heap_now;
    if (end > heap_now) clear((void *)heap_now, end - heap_now);
    heap_now = end;
    return (int64_t)heap_now;
}

static int64_t set_base(uint64_t code, uint64_t base) {
    if (code != 0x1002) return -EINVAL; /* ARCH_SET_FS */
    __asm__ volatile("wrmsr" ::"c"(0xc0000100), "a"((uint32_t)base), "d"((uint32_t)(base >> 32)));
    return 0;
}

/* Counts cycles as nanoseconds. */
static int64_t tell_time(uint64_t *to, uint64_t unit) {
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    uint64_t t = (uint64_t)high << 32 | low;
    to[0] = t / 1000000000;
    to[1] = t % 1000000000 / unit;
    return 0;
}

static int64_t tell_limit(uint64_t kind, uint64_t *to) {
    if (to != 0) to[0] = to[1] = kind == 3 ? 8 << 20 : ~(uint64_t)0; /* 3: the stack */
    return 0;
}

static int64_t tell_system(uint64_t to) {
    clear((void *)to, SYSINFO_BYTES);
    ((uint64_t *)to)[4] = (uint64_t)MAPPED_END;
    ((uint32_t *)to)[26] = 1;
    return 0;
}

static int64_t tell_name(uint64_t to) {
    clear((void *)to, UTSNAME_BYTES);
    copy((void *)to, "Linux", 5);
    copy((void *)(to + 130), "6.1.0", 5);
    return 0;
}

static int64_t tell_processors(uint64_t to) {
    *(uint64_t *)to = 1;
    return sizeof(uint64_t);
}

static int64_t fill(uint64_t to, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) ((uint8_t *)to)[i] = (uint8_t)(i * 37 + 11);
    return (int64_t)n;
}

/* saved: the registers r9, r8, r10, rdx, rsi, rdi. */
int64_t handle_system_call(uint64_t number, const uint64_t *saved) {
    const uint64_t a = saved[5], b = saved[4], c = saved[3], d = saved[2];
    switch (number) {
        case SYS_exit:
        case SYS_exit_group:
            leave((unsigned)(a & 255));
        case SYS_write:
            return write_bytes(b, c);
        case SYS_writev:
            return write_vectors((const uint64_t *)b, c);
        case SYS_read: {
            if (a < 3 || a >= DESCRIPTORS) return 0;
            int64_t n = read_file((void *)b, c, place_of[a]);
            place_of[a] += (uint64_t)n;
            return n;
        }
        case SYS_pread64:
            return read_file((void *)b, c, d);
        case SYS_lseek:
            return seek(a, b, c);
        case SYS_open:
            return open_file(a);
        case SYS_openat:
            return open_file(b);
        case SYS_access:
            return find_file(a);
        case SYS_faccessat:
        case SYS_faccessat2:
            return find_file(b);
        case SYS_fstat:
            return describe(a, b);
        case SYS_stat:
        case SYS_lstat:
            return describe_name(a, b);
        case SYS_newfstatat:
            return *(const char *)b == '\0' ? describe(a, c) : describe_name(b, c);
        case SYS_mmap:
            return map(b, (int)saved[1], saved[0]);
        case SYS_munmap:
            give_back(a, a + pages(b));
            return 0;
        case SYS_brk:
            return set_heap(a);
        case SYS_arch_prctl:
            return set_base(a, b);
        case SYS_clock_gettime:
            return tell_time((uint64_t *)b, 1);
        case SYS_gettimeofday:
            return tell_time((uint64_t *)a, 1000);
        case SYS_getrlimit:
            return tell_limit(a, (uint64_t *)b);
        case SYS_prlimit64:
            return tell_limit(b, (uint64_t *)d);
        case SYS_sysinfo:
            return tell_system(a);
        case SYS_uname:
            return tell_name(a);
        case SYS_sched_getaffinity:
            return tell_processors(c);
        case SYS_getrandom:
            return fill(a, b);
        case SYS_getpid:
        case SYS_gettid:
        case SYS_set_tid_address:
            return 1;
        case SYS_close:
        case SYS_mprotect:
        case SYS_madvise:
        case SYS_rt_sigaction:
        case SYS_rt_sigprocmask:
        case SYS_sigaltstack:
        case SYS_sched_yield:
        case SYS_futex:
        case SYS_set_robust_list:
        case SYS_getuid:
        case SYS_getgid:
        case SYS_geteuid:
        case SYS_getegid:
            return 0;
        case SYS_ioctl:
            return -ENOTTY;
        case SYS_readlink:
        case SYS_execve:
            return -ENOENT;
        default: /* no threads, among others */
            return -ENOSYS;
    }
}

/* Copies the program to its addresses. Returns the address of its program headers. */
static uint64_t load(const Elf64_Ehdr *header) {
    const Elf64_Phdr *part = (const Elf64_Phdr *)(program + header->e_phoff);
    uint64_t headers = 0, top = 0;
    for (int i = 0; i < header->e_phnum; i++, part++) {
        if (part->p_type != PT_LOAD) continue;
        copy((void *)part->p_vaddr, program + part->p_offset, part->p_filesz);
        clear((void *)(part->p_vaddr + part->p_filesz), part->p_memsz - part->p_filesz);
        if (part->p_offset == 0) headers = part->p_vaddr + header->e_phoff;
        if (part->p_vaddr + part->p_memsz > top) top = part->p_vaddr + part->p_memsz;
    }
    heap_start = heap_now = pages(top);
    return headers;
}

/* malloc maps nothing, so that memory is given back rarely. */
void kernel_main(void) {
    static const char *const arguments[] = {"program", ARGUMENTS};
    static const char *const environment[] = {
        "GLIBC_TUNABLES=glibc.malloc.mmap_max=0:glibc.pthread.rseq=0", ENVIRONMENT};
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)program;
    open_serial();
    for (int i = 0; i < 20; i++) {
        uint64_t at = fault_table[i];
        idt[i] =
            (struct gate){(uint16_t)at, 8, 0, 0x8e, (uint16_t)(at >> 16), (uint32_t)(at >> 32), 0};
    }
    const uint64_t facts[][2] = {{AT_PHDR, load(header)},        {AT_PHENT, sizeof(Elf64_Phdr)},
                                 {AT_PHNUM, header->e_phnum},    {AT_PAGESZ, PAGE},
                                 {AT_ENTRY, header->e_entry},    {AT_SECURE, 0},
                                 {AT_RANDOM, (uint64_t)program}, {AT_NULL, 0}};
    uint64_t *const stack = (uint64_t *)(uint64_t)(STACK_TOP - PAGE), *at = stack;
    *at++ = sizeof arguments / sizeof *arguments;
    for (uint64_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        *at++ = (uint64_t)arguments[i];
    *at++ = 0;
    for (uint64_t i = 0; i < sizeof environment / sizeof *environment; i++)
        *at++ = (uint64_t)environment[i];
    *at++ = 0;
    for (uint64_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        *at++ = facts[i][0];
        *at++ = facts[i][1];
    }
    enter_program(header->e_entry, (uint64_t)stack);
}
