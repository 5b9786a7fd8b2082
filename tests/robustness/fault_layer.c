/* Between a program and its libc: a disk that fails, is full or slow, a clock that jumps, and a machine that was
   booted again: what says which boot it is (SAMPAN_TEST_BOOT_ID).
   SAMPAN_TEST_FAULTS names a file with one struct faults, SAMPAN_TEST_FAULTS_BELOW the directory whose files
   it is about. Loaded with LD_PRELOAD by tests/robustness/fault_layer.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct faults {
    int64_t clock_offset_seconds;
    int32_t sync_errno, write_errno, sync_delay_ms, unused;
};

static const volatile struct faults none, *faults = &none;
static const char *below;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SAMPAN_TEST_FAULTS");
    below = getenv("SAMPAN_TEST_FAULTS_BELOW");
    int file = path && below ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *at = mmap(NULL, sizeof(struct faults), PROT_READ, MAP_SHARED, file, 0);
    if (at != MAP_FAILED) faults = at;
    close(file);
}

static int is_ours(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path);
    size_t wanted = strlen(below);
    return size > (ssize_t)wanted && !memcmp(path, below, wanted) && path[wanted] == '/';
}

static int fails(int file, int error) {
    if (!error || !is_ours(file)) return 0;
    errno = error;
    return 1;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)

static int sync_fails(int file) {
    int delay = faults->sync_delay_ms;
    if (delay && is_ours(file)) usleep(1000 * (useconds_t)delay);
    return fails(file, faults->sync_errno);
}

int fsync(int file) { REAL(fsync); return sync_fails(file) ? -1 : real(file); }
int fdatasync(int file) { REAL(fdatasync); return sync_fails(file) ? -1 : real(file); }

ssize_t write(int file, const void *data, size_t size) {
    REAL(write);
    return fails(file, faults->write_errno) ? -1 : real(file, data, size);
}
ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    return fails(file, faults->write_errno) ? -1 : real(file, data, size, at);
}
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    return fails(file, faults->write_errno) ? -1 : real(file, data, size, at);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(clock_gettime);
    int failed = real(clock, now);
    if (!failed && clock == CLOCK_REALTIME) now->tv_sec += faults->clock_offset_seconds;
    return failed;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    REAL(gettimeofday);
    int failed = real(now, zone);
    if (!failed) now->tv_sec += faults->clock_offset_seconds;
    return failed;
}

static const char *shown(const char *path) {
    const char *other = getenv("SAMPAN_TEST_BOOT_ID");
    return other && !strcmp(path, "/proc/sys/kernel/random/boot_id") ? other : path;
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *path, int flags, ...) { MODE(flags); REAL(open); return real(shown(path), flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags); REAL(open64); return real(shown(path), flags, mode); }
