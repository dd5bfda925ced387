/* Loaded before a program (LD_PRELOAD): makes its n-th call of a kind fail, as if the system had no
 * memory, no room or a broken disk.
 *
 * RFX_FAULT is "KIND:n" with the kinds below; n 0: no call fails. RFX_FAULT_LOG is a file that
 * gets, at the call that fails, "LIBRARY FUNCTION" of the caller, as far as its names are exported,
 * and for n 0 the number of calls at the end. Calls inside of the C library itself do not come by
 * here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum kind { KIND_MALLOC, KIND_READ, KIND_WRITE, KIND_MMAP, KIND_FSYNC, KIND_COUNT };
static const char *const kind_names[KIND_COUNT] = {"malloc", "read", "write", "mmap", "fsync"};

static atomic_int wanted_kind = -1; /* -1: not read yet, KIND_COUNT: none */
static atomic_long wanted_call, calls;

/* glibc's own names for what is wrapped here. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

/* What is wrapped must not be called here; so straight to the system. */
static void log_words(const char *words) {
    const char *path = getenv("RFX_FAULT_LOG");
    if (path == NULL) return;
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0) return;
    (void)syscall(SYS_write, fd, words, strlen(words));
    (void)syscall(SYS_close, fd);
}

static void read_wish(void) {
    const char *wish = getenv("RFX_FAULT");
    int kind = KIND_COUNT;
    const char *colon = wish == NULL ? NULL : strchr(wish, ':');
    for (int k = 0; colon != NULL && k < KIND_COUNT; k++)
        if (strncmp(wish, kind_names[k], (size_t)(colon - wish)) == 0) kind = k;
    if (colon != NULL) atomic_store(&wanted_call, strtol(colon + 1, NULL, 10));
    atomic_store(&wanted_kind, kind);
}

/* Whether this call is the one that fails. */
static int fails(enum kind kind, void *caller) {
    char words[300];
    Dl_info info = {0};
    if (atomic_load(&wanted_kind) < 0) read_wish();
    if (atomic_load(&wanted_kind) != (int)kind) return 0;
    if (atomic_fetch_add(&calls, 1) + 1 != atomic_load(&wanted_call)) return 0;
    (void)dladdr(caller, &info);
    const char *file = info.dli_fname == NULL ? "?" : info.dli_fname;
    const char *slash = strrchr(file, '/');
    (void)snprintf(words, sizeof words, "%s %s\n", slash == NULL ? file : slash + 1,
                   info.dli_sname == NULL ? "?" : info.dli_sname);
    log_words(words);
    return 1;
}

__attribute__((destructor)) static void say_count(void) {
    char words[40];
    if (atomic_load(&wanted_kind) == KIND_COUNT || atomic_load(&wanted_call) != 0) return;
    (void)snprintf(words, sizeof words, "%ld\n", atomic_load(&calls));
    log_words(words);
}

#define FAILS(kind, error) (fails(kind, __builtin_return_address(0)) && ((errno = (error)), 1))

EXPORT void *malloc(size_t bytes) {
    return FAILS(KIND_MALLOC, ENOMEM) ? NULL : __libc_malloc(bytes);
}

EXPORT void *calloc(size_t count, size_t bytes) {
    return FAILS(KIND_MALLOC, ENOMEM) ? NULL : __libc_calloc(count, bytes);
}

EXPORT void *realloc(void *block, size_t bytes) {
    return FAILS(KIND_MALLOC, ENOMEM) ? NULL : __libc_realloc(block, bytes);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes) {
    return FAILS(KIND_MALLOC, ENOMEM) ? NULL : __libc_memalign(alignment, bytes);
}

EXPORT void *memalign(size_t alignment, size_t bytes) {
    return FAILS(KIND_MALLOC, ENOMEM) ? NULL : __libc_memalign(alignment, bytes);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes) {
    void *made = FAILS(KIND_MALLOC, ENOMEM) ? NULL : __libc_memalign(alignment, bytes);
    if (made == NULL) return ENOMEM;
    *block = made;
    return 0;
}

EXPORT ssize_t read(int fd, void *to, size_t bytes) {
    return FAILS(KIND_READ, EIO) ? -1 : (ssize_t)syscall(SYS_read, fd, to, bytes);
}

EXPORT ssize_t pread(int fd, void *to, size_t bytes, off_t offset) {
    return FAILS(KIND_READ, EIO) ? -1 : (ssize_t)syscall(SYS_pread64, fd, to, bytes, offset);
}

EXPORT ssize_t pread64(int fd, void *to, size_t bytes, off64_t offset) {
    return FAILS(KIND_READ, EIO) ? -1 : (ssize_t)syscall(SYS_pread64, fd, to, bytes, offset);
}

/* What hardened builds call where a buffer's size is known to the compiler but not the read's. */
EXPORT ssize_t __read_chk(int fd, void *to, size_t bytes, size_t room);
EXPORT ssize_t __read_chk(int fd, void *to, size_t bytes, size_t room) {
    if (bytes > room) abort();
    return FAILS(KIND_READ, EIO) ? -1 : (ssize_t)syscall(SYS_read, fd, to, bytes);
}

EXPORT ssize_t __pread_chk(int fd, void *to, size_t bytes, off_t offset, size_t room);
EXPORT ssize_t __pread_chk(int fd, void *to, size_t bytes, off_t offset, size_t room) {
    if (bytes > room) abort();
    return FAILS(KIND_READ, EIO) ? -1 : (ssize_t)syscall(SYS_pread64, fd, to, bytes, offset);
}

EXPORT ssize_t write(int fd, const void *from, size_t bytes) {
    return FAILS(KIND_WRITE, ENOSPC) ? -1 : (ssize_t)syscall(SYS_write, fd, from, bytes);
}

EXPORT ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset) {
    return FAILS(KIND_WRITE, ENOSPC) ? -1 : (ssize_t)syscall(SYS_pwrite64, fd, from, bytes, offset);
}

EXPORT ssize_t pwrite64(int fd, const void *from, size_t bytes, off64_t offset) {
    return FAILS(KIND_WRITE, ENOSPC) ? -1 : (ssize_t)syscall(SYS_pwrite64, fd, from, bytes, offset);
}

EXPORT void *mmap(void *at, size_t bytes, int rights, int flags, int fd, off_t offset) {
    if (FAILS(KIND_MMAP, ENOMEM)) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, bytes, rights, flags, fd, offset);
}

EXPORT void *mmap64(void *at, size_t bytes, int rights, int flags, int fd, off64_t offset) {
    if (FAILS(KIND_MMAP, ENOMEM)) return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, bytes, rights, flags, fd, offset);
}

EXPORT int fsync(int fd) {
    return FAILS(KIND_FSYNC, EIO) ? -1 : (int)syscall(SYS_fsync, fd);
}

EXPORT int fdatasync(int fd) {
    return FAILS(KIND_FSYNC, EIO) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

EXPORT int sync_file_range(int fd, off64_t from, off64_t bytes, unsigned how) {
    if (FAILS(KIND_FSYNC, EIO)) return -1;
    return (int)syscall(SYS_sync_file_range, fd, from, bytes, how);
}
