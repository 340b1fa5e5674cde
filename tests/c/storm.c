/* Things that only C does, for the storms of preempted threads. */
#include <errno.h>
#include <fenv.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* malloc, calloc, realloc and aligned blocks, each filled with a pattern that is checked before it goes. */
static void fill(unsigned char *p, size_t n, unsigned seed)
{
    memset(p, (int)(seed & 255), n);
}

static int wrong(const unsigned char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != (seed & 255))
            return 1;
    return 0;
}

void *storm_block(int kind, size_t n, unsigned seed)
{
    unsigned char *p;
    switch (kind & 3) {
    case 0:
        p = malloc(n);
        break;
    case 1:
        p = calloc(1, n);
        if (p && wrong(p, n, 0))
            abort();
        break;
    case 2:
        p = malloc(n / 2 + 1);
        if (p) {
            fill(p, n / 2 + 1, seed);
            p = realloc(p, n);
            if (p && wrong(p, n / 2 + 1 < n ? n / 2 + 1 : n, seed))
                abort();
        }
        break;
    default:
        p = aligned_alloc(64, (n + 63) & ~(size_t)63);
        if ((uintptr_t)p & 63)
            abort();
    }
    if (p)
        fill(p, n, seed);
    return p;
}

/* 0 if the block still holds its pattern. */
int storm_unblock(void *p, size_t n, unsigned seed)
{
    int bad = wrong(p, n, seed);
    free(p);
    return bad;
}

/* One line through stdio's lock and buffer, put together from several conversions. */
int storm_line(FILE *f, int thread, int count)
{
    char text[40];
    int n = 5 + count % 20;
    memset(text, 'a' + thread % 26, (size_t)n);
    text[n] = 0;
    return fprintf(f, "%d:%d:%s:%.3f:%d\n", thread, count, text, (double)count / 8.0, n);
}

FILE *storm_open(int fd)
{
    return fdopen(fd, "w");
}

int storm_close(FILE *f)
{
    return fclose(f);
}

/* The rounding mode decides the last bit of a third; 0 if sums come out as the mode says. */
int storm_rounding(int mode, int spins)
{
    static const int modes[4] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    volatile double one = 1.0, three = 3.0;
    volatile long double lone = 1.0L, lthree = 3.0L;
    double want, got;
    long double lwant, lgot;
    int bad = 0;
    if (fegetround() != FE_TONEAREST)
        bad |= 1;
    if (fesetround(modes[mode & 3]))
        bad |= 2;
    want = one / three;
    lwant = lone / lthree;
    for (int i = 0; i < spins; i++) {
        got = one / three;
        lgot = lone / lthree;
        if (got != want || lgot != lwant || fegetround() != modes[mode & 3])
            bad |= 4;
    }
    fesetround(FE_TONEAREST);
    double lo = 0x1.5555555555555p-2;
    double hi = 0x1.5555555555556p-2;
    if (want != ((mode & 3) == 2 ? hi : lo))
        bad |= 8;
    return bad;
}

/* Leaves a rounding mode behind, in both units. */
void storm_leave_rounding(void)
{
    fesetround(FE_UPWARD);
}

int storm_has_default_rounding(void)
{
    unsigned short cw;
    unsigned mxcsr;
    __asm__ volatile("fnstcw %0" : "=m"(cw));
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    return cw == 0x37f && (mxcsr & 0xffc0) == 0x1f80;
}

/* A cleanup handler counts; the thread ends in one of glibc's ways. */
static void count_up(void *arg)
{
    __atomic_fetch_add((int *)arg, 1, __ATOMIC_SEQ_CST);
}

static void __attribute__((noinline)) end(int how)
{
    if (how == 0)
        pthread_exit((void *)7);
    if (how == 2)
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_cancel(pthread_self());
    for (;;)
        pthread_testcancel();
}

void storm_end(int how, int depth, int *cleanups)
{
    volatile char room[64];
    memset((char *)room, how, sizeof room);
    pthread_cleanup_push(count_up, cleanups);
    if (depth > 0)
        storm_end(how, depth - 1, cleanups);
    end(how);
    pthread_cleanup_pop(0);
}

int storm_cancel_state(int state)
{
    int old = -1;
    pthread_setcancelstate(state, &old);
    return old;
}

int storm_cancel_type(int type)
{
    int old = -1;
    pthread_setcanceltype(type, &old);
    return old;
}
