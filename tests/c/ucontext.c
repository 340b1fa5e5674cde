/*
 * The C interface, as a C program would use it. Each case is one function; the driver in
 * tests/ucontext_c.rs runs them one by one, by name.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xmmintrin.h>

#include "reveille.h"

#undef NDEBUG
#define CHECK(what)                                                                     \
    do {                                                                                \
        if (!(what)) {                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                  \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

#define STACK 65536
static _Alignas(16) char stack_a[STACK], stack_b[STACK];
static ucontext_t main_context, a, b;
static volatile int steps;

static void prepare(ucontext_t *ucp, char *stack, ucontext_t *link)
{
    ucp->uc_stack.ss_sp = stack;
    ucp->uc_stack.ss_size = STACK;
    ucp->uc_link = link;
}

/* getcontext returns twice, and its locals survive. */
static void returns_twice(void)
{
    volatile int passes = 0;
    CHECK(rvl_getcontext(&a) == 0);
    if (++passes < 3)
        rvl_setcontext(&a);
    CHECK(passes == 3);
    CHECK(rvl_getcontext_mask(&a) == 0);
    if (++passes < 6)
        rvl_setcontext_mask(&a);
    CHECK(passes == 6);
}

static void want0(void) { steps += 1; }
static void want1(int i) { CHECK(i == -1); steps += 10; }
static void want6(int i, int j, int k, int l, int m, int n)
{
    CHECK(i == 1 && j == -2 && k == 3 && l == -4 && m == 5 && n == -6);
    CHECK(((uintptr_t)__builtin_frame_address(0) & 15) == 0);
    steps += 100;
}
static void want7(int i, int j, int k, int l, int m, int n, int o)
{
    CHECK(i == 1 && j == 2 && k == 3 && l == 4 && m == 5 && n == 6 && o == -7);
    steps += 1000;
}
static void want12(int i, int j, int k, int l, int m, int n, int o, int p, int q, int r, int s,
                   int t)
{
    CHECK(i == 1 && j == 2 && k == 3 && l == 4 && m == 5 && n == 6 && o == 7 && p == 8);
    CHECK(q == -9 && r == 10 && s == -11 && t == 12);
    CHECK(((uintptr_t)__builtin_frame_address(0) & 15) == 0);
    steps += 10000;
}

static void arguments(void)
{
    CHECK(rvl_getcontext(&a) == 0);
    prepare(&a, stack_a, &main_context);
    rvl_makecontext(&a, want0, 0);
    CHECK(rvl_swapcontext(&main_context, &a) == 0);
    rvl_makecontext(&a, (void (*)(void))want1, 1, -1);
    CHECK(rvl_swapcontext(&main_context, &a) == 0);
    rvl_makecontext(&a, (void (*)(void))want6, 6, 1, -2, 3, -4, 5, -6);
    CHECK(rvl_swapcontext(&main_context, &a) == 0);
    rvl_makecontext(&a, (void (*)(void))want7, 7, 1, 2, 3, 4, 5, 6, -7);
    CHECK(rvl_swapcontext(&main_context, &a) == 0);
    rvl_makecontext(&a, (void (*)(void))want12, 12, 1, 2, 3, 4, 5, 6, 7, 8, -9, 10, -11, 12);
    CHECK(rvl_swapcontext(&main_context, &a) == 0);
    CHECK(steps == 11111);
}

static void link_a(void) { steps = steps * 10 + 1; }
static void link_b(void) { steps = steps * 10 + 2; }

/* a ends into b, b ends into main. */
static void link_chain(void)
{
    prepare(&b, stack_b, &main_context);
    rvl_makecontext(&b, link_b, 0);
    prepare(&a, stack_a, &b);
    rvl_makecontext(&a, link_a, 0);
    CHECK(rvl_swapcontext_mask(&main_context, &a) == 0);
    CHECK(steps == 12);
}

static void *thread(void *unused)
{
    (void)unused;
    rvl_getcontext(&a);
    prepare(&a, stack_a, NULL);
    rvl_makecontext(&a, link_a, 0);
    rvl_setcontext(&a);
    CHECK(!"not reached");
    return NULL;
}

/* A null uc_link ends the thread, and only that. */
static void null_link(void)
{
    pthread_t id;
    void *result = &id;
    CHECK(pthread_create(&id, NULL, thread, NULL) == 0);
    CHECK(pthread_join(id, &result) == 0);
    CHECK(result == NULL && steps == 1);
}

static void finish(void *result)
{
    CHECK(result == NULL && steps == 1);
    exit(0);
}

static void thread_end(void)
{
    rvl_set_thread_end(finish);
    prepare(&a, stack_a, NULL);
    rvl_makecontext(&a, link_a, 0);
    rvl_setcontext(&a);
    CHECK(!"not reached");
}

static int blocked(int signo)
{
    sigset_t set;
    CHECK(sigprocmask(SIG_BLOCK, NULL, &set) == 0);
    return sigismember(&set, signo);
}

static void change(int how, int signo)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signo);
    CHECK(sigprocmask(how, &set, NULL) == 0);
}

static void mask_inside(void)
{
    CHECK(blocked(SIGUSR1) && !blocked(SIGUSR2));
    change(SIG_BLOCK, SIGUSR2);
    change(SIG_UNBLOCK, SIGUSR1);
}

/* The _mask forms keep the mask in both directions, also through uc_link. */
static void mask_kept(void)
{
    change(SIG_BLOCK, SIGUSR1);
    CHECK(rvl_getcontext_mask(&a) == 0);
    change(SIG_UNBLOCK, SIGUSR1);
    prepare(&a, stack_a, &main_context);
    rvl_makecontext(&a, mask_inside, 0);
    CHECK(rvl_swapcontext_mask(&main_context, &a) == 0);
    CHECK(!blocked(SIGUSR1) && !blocked(SIGUSR2));
}

static void block_usr1(void) { change(SIG_BLOCK, SIGUSR1); }

/* The plain forms leave it alone, and mix with the others. */
static void mask_ignored(void)
{
    CHECK(rvl_getcontext(&a) == 0);
    prepare(&a, stack_a, &main_context);
    rvl_makecontext(&a, block_usr1, 0);
    CHECK(rvl_swapcontext(&main_context, &a) == 0);
    CHECK(blocked(SIGUSR1));
    volatile int passes = 0;
    CHECK(rvl_getcontext(&b) == 0);
    if (++passes == 1) {
        change(SIG_UNBLOCK, SIGUSR1);
        rvl_setcontext_mask(&b);
    }
    CHECK(!blocked(SIGUSR1));
}

static void round_up(void)
{
    CHECK(fegetround() == FE_TONEAREST);
    fesetround(FE_UPWARD);
    _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON);
    rvl_swapcontext(&a, &main_context);
    CHECK(fegetround() == FE_UPWARD);
    CHECK(_mm_getcsr() & _MM_FLUSH_ZERO_ON);
    steps = 1;
}

/* Rounding mode (both units) and MXCSR belong to the context. */
static void floating_point(void)
{
    rvl_getcontext(&a);
    prepare(&a, stack_a, &main_context);
    rvl_makecontext(&a, round_up, 0);
    fesetround(FE_DOWNWARD);
    CHECK(rvl_swapcontext(&main_context, &a) == 0);
    CHECK(fegetround() == FE_DOWNWARD);
    CHECK((_mm_getcsr() & _MM_FLUSH_ZERO_ON) == 0);
    fesetround(FE_TOWARDZERO);
    CHECK(rvl_swapcontext(&main_context, &a) == 0);
    CHECK(fegetround() == FE_TOWARDZERO);
    CHECK(steps == 1);
}

/* Contexts of the C library's, continued by ours. */
static void from_libc(void)
{
    volatile int passes = 0;
    memset(&a, 0x5f, sizeof a); /* the C library leaves uc_flags as they were */
    CHECK(getcontext(&a) == 0);
    if (++passes == 1)
        rvl_setcontext(&a);
    else if (passes == 2)
        rvl_setcontext_mask(&a);
    CHECK(passes == 3);
    prepare(&a, stack_a, &main_context);
    makecontext(&a, (void (*)(void))want12, 12, 1, 2, 3, 4, 5, 6, 7, 8, -9, 10, -11, 12);
    CHECK(rvl_swapcontext_mask(&main_context, &a) == 0);
    CHECK(steps == 10000);
}

/* Contexts of ours, continued by the C library. */
static void to_libc(void)
{
    volatile int passes = 0;
    fesetround(FE_UPWARD);
    change(SIG_BLOCK, SIGUSR1);
    CHECK(rvl_getcontext_mask(&a) == 0);
    CHECK(blocked(SIGUSR1) && fegetround() == FE_UPWARD);
    if (++passes == 1) {
        fesetround(FE_TONEAREST);
        change(SIG_UNBLOCK, SIGUSR1);
        setcontext(&a);
    }
    CHECK(passes == 2);
    prepare(&a, stack_a, &main_context);
    rvl_makecontext(&a, (void (*)(void))want12, 12, 1, 2, 3, 4, 5, 6, 7, 8, -9, 10, -11, 12);
    CHECK(swapcontext(&main_context, &a) == 0);
    CHECK(steps == 10000);
}

/* A structure that was copied is still a context, although it points into the original. */
static void copied(void)
{
    volatile int passes = 0;
    CHECK(rvl_getcontext(&a) == 0);
    if (++passes == 1) {
        b = a;
        memset(&a, 0, sizeof a);
        rvl_setcontext(&b);
    }
    CHECK(passes == 2);
}

static void refused(void)
{
    memset(&a, 0, sizeof a);
    errno = 0;
    CHECK(rvl_setcontext(&a) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(rvl_setcontext_mask(&a) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(rvl_swapcontext(&main_context, &a) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(rvl_swapcontext_mask(&main_context, &a) == -1 && errno == EINVAL);
    prepare(&a, stack_a, NULL);
    a.uc_stack.ss_size = 64;
    rvl_makecontext(&a, want0, 0);
    errno = 0;
    CHECK(rvl_setcontext(&a) == -1 && errno == EINVAL);
    CHECK(rvl_getcontext(&a) == 0);
    ((uint32_t *)a.uc_mcontext.fpregs)[6] |= 1u << 16; /* MXCSR, a reserved bit */
    errno = 0;
    CHECK(rvl_setcontext(&a) == -1 && errno == EINVAL);
}

static ucontext_t interrupted;
static void *xstate;
static size_t xstate_size;

static void on_signal(int signo, siginfo_t *info, void *frame)
{
    (void)info;
    if (signo == SIGUSR1) {
        CHECK(rvl_capturecontext(&interrupted, frame, xstate, 64) == -1);
        CHECK(rvl_capturecontext(&interrupted, frame, xstate, xstate_size) == 0);
        rvl_setcontext_mask(&main_context);
    } else {
        CHECK(rvl_storecontext(frame, &interrupted) == 0);
    }
}

/*
 * A loop is interrupted and left by its handler, then continued from outside: first by
 * setcontext, then by storing it into the frame of another signal, which interrupted us here.
 */
static volatile uint64_t turns;
static void loop(void)
{
    for (int i = 0; i < 2; i++) {
        double x = 1.5;
        uint64_t n = 0;
        for (; n < 1000; n++) {
            x = x * 1.0000001 + 0.25;
            if (n == 500)
                raise(SIGUSR1);
        }
        turns += n + (x > 251.5 && x < 251.6);
    }
    steps = 7;
}

static void interrupted_loop(void)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);
    xstate_size = rvl_xstate_buffer_size();
    xstate = aligned_alloc(64, xstate_size);
    CHECK(xstate);
    volatile int visits = 0;
    rvl_getcontext_mask(&main_context);
    CHECK(!blocked(SIGUSR1) && !blocked(SIGUSR2));
    switch (visits++) {
    case 0:
        rvl_getcontext_mask(&a);
        prepare(&a, stack_a, &main_context);
        rvl_makecontext(&a, loop, 0);
        rvl_setcontext(&a);
        CHECK(!"not reached");
    case 1:
        CHECK(turns == 0);
        rvl_setcontext_mask(&interrupted);
        CHECK(!"not reached");
    case 2:
        CHECK(turns == 1001);
        raise(SIGUSR2);
        CHECK(!"not reached");
    case 3:
        CHECK(turns == 2002 && steps == 7);
    }
    CHECK(visits == 4);
}

#define CASE(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    CASE(returns_twice), CASE(arguments),      CASE(link_chain), CASE(null_link),
    CASE(thread_end),    CASE(mask_kept),      CASE(mask_ignored), CASE(floating_point),
    CASE(from_libc),     CASE(to_libc),        CASE(copied),     CASE(refused),
    CASE(interrupted_loop),
};

/* Without an argument: list the cases. With one: run that case. */
int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc < 2) {
            puts(cases[i].name);
        } else if (!strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            return 0;
        }
    }
    return argc < 2 ? 0 : 2;
}
