/*
 * reveille: contexts for C. Linux, x86-64, GNU C library.
 *
 * getcontext, setcontext, makecontext and swapcontext with the semantics of POSIX.1-2001, on
 * the platform's own ucontext_t, in two forms:
 *
 *   rvl_getcontext, ...        no system call. The signal mask is neither saved nor restored.
 *   rvl_getcontext_mask, ...   one system call, and the signal mask is part of the context.
 *
 * Both keep the callee-saved registers, MXCSR (all of it) and the x87 control word. The two
 * forms mix: a context saved without a mask leaves the mask alone, whoever continues it.
 *
 * Contexts that the C library's functions made can be continued by these, and contexts that
 * the _mask forms saved can be continued by the C library's.
 *
 * A third kind of context is the signal frame: the third argument of a SA_SIGINFO handler.
 * rvl_setcontext continues such a context exactly where the signal hit: all registers, flags,
 * x87 and vector state, red zone. The C library's setcontext loses much of that.
 *
 * Errors: -1, with errno set to EINVAL: the context was never made, its stack was too small,
 * or it is a signal frame that cannot be true (truncated, wrong magic number, sizes or
 * components that this CPU does not have, reserved bits, not 64-bit code). Nothing has changed
 * then. Addresses are taken at their word.
 *
 * All functions are async-signal-safe and thread-safe. A context is continued on a kernel
 * thread that may run it: thread-local variables are those of that thread.
 */
#ifndef REVEILLE_H
#define REVEILLE_H

#include <stddef.h>
#include <ucontext.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Save the current context in *ucp. Returns 0 now, and 0 again each time *ucp is continued.
 * The function that calls it must not have returned by then.
 */
int rvl_getcontext(ucontext_t *ucp) __attribute__((returns_twice));
int rvl_getcontext_mask(ucontext_t *ucp) __attribute__((returns_twice));

/*
 * Continue *ucp. Returns only to report an error.
 *
 * Of a signal frame, the plain form leaves the mask as it is; inside a handler that means that
 * the handler's own signal stays blocked. The _mask form sets the frame's mask first.
 *
 * A signal frame is continued once. Its stack needs 152 bytes below the stack pointer, of
 * which the lower 24, below the red zone, are written.
 */
int rvl_setcontext(const ucontext_t *ucp);
int rvl_setcontext_mask(const ucontext_t *ucp);

/*
 * Save the current context in *oucp and continue *ucp. Returns 0 when *oucp is continued, or
 * -1 if *ucp is refused; *oucp has been written to in either case.
 */
int rvl_swapcontext(ucontext_t *oucp, const ucontext_t *ucp);
int rvl_swapcontext_mask(ucontext_t *oucp, const ucontext_t *ucp);

/*
 * Make *ucp call func with argc integer arguments when it is continued, on the stack named by
 * ucp->uc_stack. Set uc_stack and uc_link before. Any number of arguments will do; each is
 * passed on as a whole 64-bit word.
 *
 * A getcontext of either form before decides whether the context has a signal mask. Without
 * one, it has none, and starts with the current MXCSR and x87 control word.
 *
 * When func returns, *uc_link is continued (with its signal mask, if it has one). If uc_link is
 * null, the thread ends: pthread_exit(NULL), or what rvl_set_thread_end said. The C library
 * ends the process instead.
 */
void rvl_makecontext(ucontext_t *ucp, void (*func)(void), int argc, ...);

/* Replace what ends a thread; NULL means pthread_exit. `end` must not return. */
void rvl_set_thread_end(void (*end)(void *));

/* Bytes that rvl_capturecontext needs for the extended state on this machine. */
size_t rvl_xstate_buffer_size(void);

/*
 * In a signal handler: copy the frame (the handler's third argument) into *ucp, with its
 * extended state in the buffer, which must be aligned to 64 bytes and stay as long as *ucp
 * does. The copy outlives the handler, and every setcontext above continues it.
 */
int rvl_capturecontext(ucontext_t *ucp, const void *frame, void *xstate, size_t len);

/*
 * In a signal handler: write *ucp, of any kind, into the frame, so that returning from the
 * handler continues *ucp, with its signal mask if it has one.
 */
int rvl_storecontext(void *frame, const ucontext_t *ucp);

#ifdef __cplusplus
}
#endif

#endif
