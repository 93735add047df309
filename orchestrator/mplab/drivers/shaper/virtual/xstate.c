/* User-mode Linux on processors with AMX.
 *
 * It puts the floating-point registers of its processes back by ptrace(PTRACE_SETREGSET, NT_X86_XSTATE), from a buffer
 * of the size that they had before there was AMX. The host's kernel takes them whole or not at all (EFAULT), and the
 * guest's first process dies. This library, preloaded, fills up what is missing with what is in the registers now.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

typedef long (*ptrace_t)(enum __ptrace_request, ...);

static ptrace_t next;
/* User-mode Linux has one processor and little stack. */
static unsigned char whole[1 << 16] __attribute__((aligned(64)));

__attribute__((constructor)) static void find_next(void) { next = (ptrace_t)dlsym(RTLD_NEXT, "ptrace"); }

static long fill_up(void *pid, const struct iovec *given)
{
	struct iovec all = {whole, sizeof whole};

	if (next(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &all) == -1)
		return -1;
	if (given->iov_len >= all.iov_len) {
		errno = EFAULT;
		return -1;
	}
	memcpy(whole, given->iov_base, given->iov_len);
	return next(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &all);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	void *pid = va_arg(arguments, void *);
	void *address = va_arg(arguments, void *);
	void *data = va_arg(arguments, void *);
	va_end(arguments);

	long result = next(request, pid, address, data);
	if (result == -1 && errno == EFAULT && request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE)
		return fill_up(pid, data);
	return result;
}
