/* Count the calls by which a process changes or reads the files below $STRIKE_UNDER, and strike at
 * call number $STRIKE_AT: kill the process before it ($STRIKE_WITH=kill) or in the middle of what it
 * writes (torn), or let it fail with that errno. With $STRIKE_ON all later writes fail, too: a disk
 * that is full stays full. $STRIKE_LOG gets a line for each call.
 *
 * Loaded by LD_PRELOAD; so it also sees what SQLite does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FILES = 4096, DIE = -1, TEAR = -2 };

static const char *under;
static long at, calls;
static int with, on, record = -1;
static char ours[FILES];

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("STRIKE_WITH");
    under = getenv("STRIKE_UNDER");
    at = getenv("STRIKE_AT") ? atol(getenv("STRIKE_AT")) : 0;
    on = getenv("STRIKE_ON") != NULL;
    with = !text ? 0 : !strcmp(text, "kill") ? DIE : !strcmp(text, "torn") ? TEAR : atoi(text);
    text = getenv("STRIKE_LOG");
    if (text) record = open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (record >= 0) record = fcntl(record, F_DUPFD_CLOEXEC, FILES);
    unsetenv("LD_PRELOAD");
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* Count one call; is it to fail? `writes`: does it need room on the disk? */
static int struck(const char *name, const char *file, int writes) {
    long call = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    if (record >= 0) dprintf(record, "%ld %s %s\n", call, name, file);
    if (!at || call < at || (call > at && !(on && writes))) return 0;
    if (with == DIE) die();
    if (with == TEAR) return TEAR;
    errno = with;
    return 1;
}

static int mine(const char *path) {
    return under && path && !strncmp(path, under, strlen(under));
}

static int is_mine(int fd) { return fd >= 0 && fd < FILES && ours[fd]; }

static int opened(int fd) {
    if (fd >= 0 && fd < FILES) ours[fd] = 1;
    return fd;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        NEXT(name); \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        if (!mine(path)) return next(path, flags, mode); \
        if (struck("open", path, flags & O_CREAT) > 0) return -1; \
        return opened(next(path, flags, mode)); \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    NEXT(close);
    if (is_mine(fd)) ours[fd] = 0;
    return next(fd);
}

#define STRUCK(writes) is_mine(fd) && (hit = struck(__func__, "", writes))

ssize_t read(int fd, void *data, size_t size) {
    NEXT(read);
    int hit;
    return STRUCK(0) && hit > 0 ? -1 : next(fd, data, size);
}

#define PREAD(name, offset) \
    ssize_t name(int fd, void *data, size_t size, offset place) { \
        NEXT(name); \
        int hit; \
        return STRUCK(0) && hit > 0 ? -1 : next(fd, data, size, place); \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

ssize_t write(int fd, const void *data, size_t size) {
    NEXT(write);
    int hit;
    if (!(STRUCK(1))) return next(fd, data, size);
    if (hit > 0) return -1;
    next(fd, data, size / 2);
    die();
    return -1;
}

#define PWRITE(name, offset) \
    ssize_t name(int fd, const void *data, size_t size, offset place) { \
        NEXT(name); \
        int hit; \
        if (!(STRUCK(1))) return next(fd, data, size, place); \
        if (hit > 0) return -1; \
        next(fd, data, size / 2, place); \
        die(); \
        return -1; \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t writev(int fd, const struct iovec *pieces, int count) {
    NEXT(writev);
    int hit;
    return STRUCK(1) && hit > 0 ? -1 : next(fd, pieces, count);
}

#define SYNC(name) \
    int name(int fd) { \
        NEXT(name); \
        int hit; \
        return STRUCK(1) && hit > 0 ? -1 : next(fd); \
    }
SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(name, offset) \
    int name(int fd, offset size) { \
        NEXT(name); \
        int hit; \
        return STRUCK(0) && hit > 0 ? -1 : next(fd, size); \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int unlink(const char *path) {
    NEXT(unlink);
    return mine(path) && struck("unlink", path, 0) > 0 ? -1 : next(path);
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    return mine(to) && struck("rename", to, 0) > 0 ? -1 : next(from, to);
}

int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir);
    return mine(path) && struck("mkdir", path, 1) > 0 ? -1 : next(path, mode);
}
