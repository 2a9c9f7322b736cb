/* Another time of day for a process: the seconds of a file are added to it. Monotonic time stays, as on a machine whose clock is set. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* Times of day are greater, times since the start of the machine are not. */
#define SECONDS_OF_DAYS 1000000000
/* Longest wait between two looks at the clock. */
#define TURN_NS 20000000

static volatile int64_t *offset;

__attribute__((constructor)) static void map_offset(void) {
    const char *path = getenv("OTHER_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    offset = found == MAP_FAILED ? NULL : found;
    if (file >= 0)
        close(file);
}

static int64_t seconds(void) {
    return offset ? *offset : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (syscall(SYS_clock_gettime, clock, now) != 0)
        return -1;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now->tv_sec += seconds();
    return 0;
}

int timespec_get(struct timespec *now, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise) != 0)
        return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *place) {
    struct timespec precise;
    if (clock_gettime(CLOCK_REALTIME, &precise) != 0)
        return -1;
    if (place)
        *place = precise.tv_sec;
    return precise.tv_sec;
}

/* Waits by this clock, in short turns: one that is set meanwhile moves the end of the wait, as the kernel moves it. */
static int wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    for (;;) {
        struct timespec end;
        int64_t left_ns;
        int result;
        syscall(SYS_clock_gettime, CLOCK_REALTIME, &end);
        left_ns = (until->tv_sec - seconds() - end.tv_sec) * 1000000000 + until->tv_nsec - end.tv_nsec;
        if (left_ns <= 0)
            return ETIMEDOUT;
        end.tv_nsec += left_ns < TURN_NS ? left_ns : TURN_NS;
        end.tv_sec += end.tv_nsec / 1000000000;
        end.tv_nsec %= 1000000000;
        result = pthread_cond_clockwait(condition, mutex, CLOCK_REALTIME, &end);
        if (result != ETIMEDOUT)
            return result;
    }
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
    if (until->tv_sec < SECONDS_OF_DAYS)
        return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, until);
    return wait_until(condition, mutex, until);
}

/* In this C library the types of C11 are those of POSIX by other names. */
int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until) {
    int result = wait_until((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);
    return result == 0 ? thrd_success : result == ETIMEDOUT ? thrd_timedout : thrd_error;
}
