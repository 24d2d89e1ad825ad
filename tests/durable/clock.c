/* Set the clock of the day by $CLOCK_BY seconds, once $CLOCK_AFTER seconds have gone by since the
 * process began. What counts only forward (CLOCK_MONOTONIC) goes on as it does.
 *
 * Loaded by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static int (*next)(clockid_t, struct timespec *);
static struct timespec begun;
static double by, after;

static void begin(void) {
    if (next) return;
    next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    next(CLOCK_MONOTONIC, &begun);
    by = getenv("CLOCK_BY") ? atof(getenv("CLOCK_BY")) : 0;
    after = getenv("CLOCK_AFTER") ? atof(getenv("CLOCK_AFTER")) : 0;
}

static time_t shift(void) {
    struct timespec now;
    next(CLOCK_MONOTONIC, &now);
    double gone = (now.tv_sec - begun.tv_sec) + (now.tv_nsec - begun.tv_nsec) / 1e9;
    return gone < after ? 0 : (time_t)by;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    begin();
    int result = next(clock, time);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        time->tv_sec += shift();
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return result;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}
