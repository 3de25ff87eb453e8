/* Records what a process does to files below a folder, and lets calls fail, wait or see another wall clock.

   Preloaded into daemons by tests/kit/syscalls.py, which documents the two files that its environment names:
   SYSCALLS_RECORD   lines of what was done, appended:  begin_ns TAB end_ns TAB pid TAB result TAB call TAB path TAB other
   SYSCALLS_CONTROL  lines of what is to happen, read at each call:
                     fail ERRNO CALL TEXT   calls of that name on a path that contains the text fail
                     wait MILLISECONDS CALL TEXT
                     clock SECONDS          added to the wall clock
   Only paths that begin with SYSCALLS_ROOT count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char *root, *control, *record_path;
static int record = -1;
static pid_t recording;

#define REAL(type, name, ...)                                   \
    static type (*real)(__VA_ARGS__);                           \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* A copy: a process that changes its title writes over its environment. */
static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value && *value ? strdup(value) : 0;
}

/* A fork closes the files of its parent, and opens its own record. */
static void open_record(void) {
    recording = getpid();
    record = (int)syscall(SYS_openat, AT_FDCWD, record_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

__attribute__((constructor)) static void begin(void) {
    root = setting("SYSCALLS_ROOT");
    control = setting("SYSCALLS_CONTROL");
    record_path = setting("SYSCALLS_RECORD");
    if (root && record_path) open_record();
}

static long long now(void) {
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static size_t wanted(char *into) {
    if (!control || !*control) return 0;
    int saved = errno;
    long file = syscall(SYS_openat, AT_FDCWD, control, O_RDONLY | O_CLOEXEC, 0);
    long size = file < 0 ? 0 : syscall(SYS_read, file, into, 4095);
    if (file >= 0) syscall(SYS_close, file);
    into[size > 0 ? size : 0] = 0;
    errno = saved;
    return size > 0 ? (size_t)size : 0;
}

/* The errno that a call is to fail with, or 0; waits where it is to wait. */
static int injected(const char *call, const char *path) {
    char text[4096], *rest = text;
    if (!wanted(text)) return 0;
    int failure = 0;
    for (char *line; (line = strsep(&rest, "\n"));) {
        char what[16], name[32], where[PATH_MAX] = "";
        int number;
        if (sscanf(line, "%15s %d %31s %4095s", what, &number, name, where) < 3 || strcmp(name, call)) continue;
        if (where[0] && !strstr(path, where)) continue;
        if (!strcmp(what, "fail")) failure = number;
        if (!strcmp(what, "wait")) {
            struct timespec t = {number / 1000, number % 1000 * 1000000L};
            syscall(SYS_nanosleep, &t, 0);
        }
    }
    return failure;
}

static int counts(const char *path) { return root && path && !strncmp(path, root, strlen(root)); }

static void note(long long since, long result, const char *call, const char *path, const char *other) {
    if (!record_path) return;
    if (recording != getpid()) open_record();
    if (record < 0) return;
    char line[2 * PATH_MAX + 128];
    int saved = errno;
    int size = snprintf(line, sizeof line, "%lld\t%lld\t%d\t%ld\t%s\t%s\t%s\n", since, now(), (int)getpid(), result, call, path, other);
    syscall(SYS_write, record, line, size);
    errno = saved;
}

static int path_of(int fd, char *path) {
    char link[64];
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = 0;
    errno = saved;
    return counts(path);
}

static void absolute(int folder, const char *path, char *into) {
    if (path[0] == '/') {
        snprintf(into, PATH_MAX, "%s", path);
        return;
    }
    char base[PATH_MAX] = "";
    if (folder == AT_FDCWD) {
        if (syscall(SYS_getcwd, base, sizeof base) < 0) base[0] = 0;
    } else {
        path_of(folder, base);
    }
    snprintf(into, PATH_MAX, "%s/%s", base, path);
}

/* -- calls on descriptors --------------------------------------------------------------------------------------- */

#define ON_FD(type, function, call, parameters, arguments, types)      \
    type function parameters {                                        \
        REAL(type, #function, types);                                 \
        char path[PATH_MAX];                                          \
        if (!path_of(fd, path)) return real arguments;                \
        long long since = now();                                      \
        int failure = injected(call, path);                           \
        if (failure) {                                                \
            note(since, -failure, call, path, "");                    \
            errno = failure;                                          \
            return -1;                                                \
        }                                                             \
        since = now();                                                \
        type result = real arguments;                                 \
        note(since, (long)result, call, path, "");                    \
        return result;                                                \
    }
#define TYPES(...) __VA_ARGS__

ON_FD(ssize_t, write, "write", (int fd, const void *data, size_t size), (fd, data, size), TYPES(int, const void *, size_t))
ON_FD(ssize_t, pwrite, "write", (int fd, const void *data, size_t size, off_t at), (fd, data, size, at), TYPES(int, const void *, size_t, off_t))
ON_FD(ssize_t, pwrite64, "write", (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at), TYPES(int, const void *, size_t, off64_t))
ON_FD(ssize_t, writev, "write", (int fd, const struct iovec *data, int size), (fd, data, size), TYPES(int, const struct iovec *, int))
ON_FD(ssize_t, sendfile, "write", (int fd, int from, off_t *at, size_t size), (fd, from, at, size), TYPES(int, int, off_t *, size_t))
ON_FD(ssize_t, sendfile64, "write", (int fd, int from, off64_t *at, size_t size), (fd, from, at, size), TYPES(int, int, off64_t *, size_t))
ON_FD(int, posix_fallocate, "write", (int fd, off_t at, off_t size), (fd, at, size), TYPES(int, off_t, off_t))
ON_FD(int, posix_fallocate64, "write", (int fd, off64_t at, off64_t size), (fd, at, size), TYPES(int, off64_t, off64_t))
ON_FD(int, fsync, "sync", (int fd), (fd), TYPES(int))
ON_FD(int, fdatasync, "sync", (int fd), (fd), TYPES(int))

/* A file that is cut to the size that it has, as RocksDB does with what it has reserved, does not change. */
static int cut(int fd, off64_t size) {
    char path[PATH_MAX];
    struct stat64 before;
    int changes = path_of(fd, path) && !fstat64(fd, &before) && before.st_size != size;
    long long since = now();
    int result = (int)syscall(SYS_ftruncate, fd, size);
    if (changes) note(since, result, "write", path, "");
    return result;
}

int ftruncate(int fd, off_t size) { return cut(fd, size); }
int ftruncate64(int fd, off64_t size) { return cut(fd, size); }

/* Reads are not recorded, but may fail. */
#define READ(function, parameters, arguments, types)                  \
    ssize_t function parameters {                                     \
        REAL(ssize_t, #function, types);                              \
        char path[PATH_MAX];                                          \
        int failure = path_of(fd, path) ? injected("read", path) : 0; \
        if (failure) {                                                \
            errno = failure;                                          \
            return -1;                                                \
        }                                                             \
        return real arguments;                                        \
    }

READ(read, (int fd, void *data, size_t size), (fd, data, size), TYPES(int, void *, size_t))
READ(pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at), TYPES(int, void *, size_t, off_t))
READ(pread64, (int fd, void *data, size_t size, off64_t at), (fd, data, size, at), TYPES(int, void *, size_t, off64_t))

/* -- calls on names --------------------------------------------------------------------------------------------- */

static int opened(int folder, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    absolute(folder, name, path);
    if (!counts(path)) return (int)syscall(SYS_openat, folder, name, flags | O_LARGEFILE, mode);
    int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT), failure = injected(writes ? "open" : "openread", path);
    if (failure) {
        errno = failure;
        return -1;
    }
    int made = (flags & O_CREAT) && syscall(SYS_faccessat, AT_FDCWD, path, F_OK) < 0;
    long long since = now();
    errno = 0;
    int result = (int)syscall(SYS_openat, folder, name, flags | O_LARGEFILE, mode);
    if (made) note(since, result, "create", path, "");
    if (result >= 0 && (flags & O_TRUNC) && !made) note(since, result, "write", path, "");
    return result;
}

#define OPEN(function, folder, parameters)                            \
    int function parameters {                                         \
        mode_t mode = 0;                                              \
        if (flags & (O_CREAT | O_TMPFILE)) {                          \
            va_list more;                                             \
            va_start(more, flags);                                    \
            mode = va_arg(more, mode_t);                              \
            va_end(more);                                             \
        }                                                             \
        return opened(folder, name, flags, mode);                     \
    }

OPEN(open, AT_FDCWD, (const char *name, int flags, ...))
OPEN(open64, AT_FDCWD, (const char *name, int flags, ...))
OPEN(openat, at, (int at, const char *name, int flags, ...))
OPEN(openat64, at, (int at, const char *name, int flags, ...))

static int named(const char *call, int from_at, const char *from, int to_at, const char *to, long number, int flags) {
    char one[PATH_MAX], two[PATH_MAX] = "";
    absolute(from_at, from, one);
    if (to) absolute(to_at, to, two);
    int mine = counts(one) || counts(two), failure = mine ? injected(call, one) : 0;
    if (failure) {
        errno = failure;
        return -1;
    }
    long long since = now();
    long result = to ? syscall(number, from_at, from, to_at, to, flags) : syscall(number, from_at, from, flags);
    if (mine && result == 0) note(since, result, call, one, two);
    return (int)result;
}

int rename(const char *from, const char *to) { return named("rename", AT_FDCWD, from, AT_FDCWD, to, SYS_renameat2, 0); }
int renameat(int a, const char *from, int b, const char *to) { return named("rename", a, from, b, to, SYS_renameat2, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { return named("rename", a, from, b, to, SYS_renameat2, (int)flags); }
int link(const char *from, const char *to) { return named("link", AT_FDCWD, from, AT_FDCWD, to, SYS_linkat, 0); }
int linkat(int a, const char *from, int b, const char *to, int flags) { return named("link", a, from, b, to, SYS_linkat, flags); }
int mkdir(const char *path, mode_t mode) { return named("create", AT_FDCWD, path, 0, 0, SYS_mkdirat, (int)mode); }
int mkdirat(int at, const char *path, mode_t mode) { return named("create", at, path, 0, 0, SYS_mkdirat, (int)mode); }

/* -- the wall clock --------------------------------------------------------------------------------------------- */

static long offset(void) {
    char text[4096], *rest = text;
    long seconds = 0;
    if (wanted(text))
        for (char *line; (line = strsep(&rest, "\n"));) sscanf(line, "clock %ld", &seconds);
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
    int result = (int)syscall(SYS_clock_gettime, clock, t);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) t->tv_sec += offset();
    return result;
}

int gettimeofday(struct timeval *t, void *zone) {
    int result = (int)syscall(SYS_gettimeofday, t, zone);
    if (!result) t->tv_sec += offset();
    return result;
}

time_t time(time_t *into) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (into) *into = t.tv_sec;
    return t.tv_sec;
}

/* Waits end at a time of the shifted clock, and the kernel has the other one: a time in its past would end each
   wait at once, and a thread that waits in a loop would spin. Times of the monotonic clock count from the boot. */
static struct timespec unshifted(const struct timespec *until) {
    struct timespec t = *until;
    if (t.tv_sec > 1000000000) t.tv_sec -= offset();
    return t;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!real) real = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real) real = (int (*)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *))dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec t = unshifted(until);
    return real(condition, mutex, &t);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until) {
    REAL(int, "sem_timedwait", sem_t *, const struct timespec *);
    struct timespec t = unshifted(until);
    return real(semaphore, &t);
}
