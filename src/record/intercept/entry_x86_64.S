/* Where the program's calls arrive, on x86-64. entry_aarch64.S has the same functions for aarch64: a change to
 * one file is a change to both.
 *
 * The fast paths are written in assembly because each of their instructions counts: four on top of malloc, five
 * on top of free, and no store but to the thread's own countdown (docs/fast-path.md). They end in a jump to the
 * allocator, which returns straight to the program.
 *
 *     malloc   takes the size off the thread's countdown. A sample is due when the result is 0 or the subtraction
 *              borrows (jbe); so sizes beyond 2^63 are caught, too. A thread's countdown starts at 0, and stays
 *              at 0 in exact mode: both take the cold path.
 *     free     compares the word in front of the block with the mark of sampled blocks (mark.h). Blocks that
 *              begin a page, and NULL, leave the fast path.
 *
 * The cold paths put the size back on the countdown, and call a C function with one more argument: the caller's
 * registers, from which its stack is walked. The C code decides on its own whether a sample is due. */

#include "record/sample/address_filter.h"
#include "record/sample/mark.h"
#include "record/intercept/cxx_operators.h"
#include "base/limits.h"
#include "record/intercept/real_allocator.h"

#include <sys/syscall.h>

#define CLONE_VM 0x100
#define CLONE_SETTLS 0x80000

#ifdef MALLOSCOPE_STATIC
/* The names to which the linker binds the calls of a program that is linked statically
 * (real_allocator_static.c). */
#define malloc __wrap_malloc
#define free __wrap_free
#define calloc __wrap_calloc
#define realloc __wrap_realloc
#define malloc_usable_size __wrap_malloc_usable_size
#define reallocarray __wrap_reallocarray
#define posix_memalign __wrap_posix_memalign
#define aligned_alloc __wrap_aligned_alloc
#define memalign __wrap_memalign
#define valloc __wrap_valloc
#define pvalloc __wrap_pvalloc
#endif

	.text

/* A function that the program calls. entry_NAME is the same address under a hidden name: by NAME our own code
 * might be bound to another library's function. */
.macro function name
	.globl	\name, entry_\name
	.hidden	entry_\name
	.type	\name, @function
	.p2align 6 /* so that the fast path lies in one cache line */
\name:
entry_\name:
	.cfi_startproc
.endm

.macro end_function name
	.cfi_endproc
	.size	\name, . - \name
.endm

/* A function that only our own code calls or jumps to: entry_NAME. */
.macro inner name
	.globl	entry_\name
	.hidden	entry_\name
	.type	entry_\name, @function
	.p2align 6
entry_\name:
	.cfi_startproc
.endm

.macro end_inner name
	.cfi_endproc
	.size	entry_\name, . - entry_\name
.endm

/* The cold path: calls \target, with a pointer to the caller's registers (struct unwind_registers, unwind.h) in
 * register \argument, and returns what it returns. The stack is aligned for it: a caller written in assembly may have
 * left that out, and the C code stores registers of 16 bytes. */
.macro cold_call target argument
	push	%r15
	.cfi_adjust_cfa_offset 8
	push	%r14
	.cfi_adjust_cfa_offset 8
	push	%r13
	.cfi_adjust_cfa_offset 8
	push	%r12
	.cfi_adjust_cfa_offset 8
	push	%rbx
	.cfi_adjust_cfa_offset 8
	push	%rbp
	.cfi_adjust_cfa_offset 8
	lea	56(%rsp), %rax		/* the caller's stack pointer when we have returned */
	push	%rax
	.cfi_adjust_cfa_offset 8
	push	-8(%rax)		/* the return address */
	.cfi_adjust_cfa_offset 8
	mov	%rsp, \argument
	mov	recorder_work@gottpoff(%rip), %rax
	push	%fs:(%rax)		/* struct work (work.h): says that the thread is in the recorder's work */
	.cfi_adjust_cfa_offset 8
	mov	%rsp, %fs:(%rax)
	mov	%rsp, %rbx
	.cfi_rel_offset %rbx, 32
	.cfi_def_cfa_register %rbx
	and	$-16, %rsp
	call	\target
	mov	%rbx, %rsp
	.cfi_def_cfa_register %rsp
	mov	32(%rsp), %rbx		/* the callee has preserved the other registers that were pushed */
	.cfi_restore %rbx
	mov	recorder_work@gottpoff(%rip), %rcx
	pop	%fs:(%rcx)
	.cfi_adjust_cfa_offset -8
	add	$64, %rsp
	.cfi_adjust_cfa_offset -64
	ret
.endm

	function malloc
malloc_here:
	mov	recorder_countdown@gottpoff(%rip), %rax
	sub	%rdi, %fs:(%rax)
	jbe	1f
	jmp	*real_allocator+REAL_MALLOC(%rip)
1:	add	%rdi, %fs:(%rax)
	cold_call hooks_malloc %rsi
	end_function malloc

	function free
free_here:
	test	$PAGE_MASK, %edi
	je	1f
	cmpq	$MARK_IMMEDIATE, -8(%rdi)
	je	2f
	jmp	*hooks_next_free(%rip)
1:	jmp	*hooks_next_free_page(%rip)
2:	jmp	hooks_free
	end_function free

	function calloc
	mov	%rdi, %rax
	mul	%rsi
	jo	2f
	mov	recorder_countdown@gottpoff(%rip), %rcx
	sub	%rax, %fs:(%rcx)
	jbe	1f
	jmp	*real_allocator+REAL_CALLOC(%rip)
1:	add	%rax, %fs:(%rcx)
2:	cold_call hooks_calloc %rdx
	end_function calloc

	function realloc
	test	$PAGE_MASK, %edi
	je	3f
	cmpq	$MARK_IMMEDIATE, -8(%rdi)
	je	2f
	mov	recorder_countdown@gottpoff(%rip), %rax
	sub	%rsi, %fs:(%rax)
	jbe	1f
	jmp	*hooks_next_realloc(%rip)
1:	add	%rsi, %fs:(%rax)
2:	cold_call hooks_realloc %rdx
3:	test	%rdi, %rdi
	jne	2b
	mov	%rsi, %rdi
	jmp	malloc_here
	end_function realloc

	function malloc_usable_size
	jmp	*hooks_next_usable_size(%rip)
	end_function malloc_usable_size

	inner usable_size_marked
	test	$PAGE_MASK, %edi
	je	1f
	cmpq	$MARK_IMMEDIATE, -8(%rdi)
	je	1f
	jmp	*real_allocator+REAL_USABLE_SIZE(%rip)
1:	jmp	hooks_malloc_usable_size
	end_inner usable_size_marked

/* hooks_next_free, hooks_next_free_page and hooks_next_realloc lead to the next two functions where sampled
 * blocks carry no mark. A block whose counter in the address filter (address_filter.h) is 0 was not sampled. */
.macro filter_test
	imul	$FILTER_FACTOR, %rdi, %rax
	lea	address_filter_counts(%rip), %rdx
	shr	$FILTER_SHIFT, %eax
	cmpb	$0, (%rdx, %rax)
.endm

	inner free_filtered
	filter_test
	jne	1f
	jmp	*real_allocator+REAL_FREE(%rip)
1:	jmp	hooks_free
	end_inner free_filtered

	inner realloc_filtered
	filter_test
	jne	entry_realloc_always
	jmp	*real_allocator+REAL_REALLOC(%rip)
	end_inner realloc_filtered

/* hooks_next_realloc leads here where every block has to be looked up. The countdown has been charged: the charge
 * is put back, because hooks_realloc charges it again. */
	inner realloc_always
	mov	recorder_countdown@gottpoff(%rip), %rax
	add	%rsi, %fs:(%rax)
	cold_call hooks_realloc %rdx
	end_inner realloc_always

	function reallocarray
	cold_call hooks_reallocarray %rcx
	end_function reallocarray

/* The aligned ones do as malloc does. \size is the register that holds the size, \at the register of the argument
 * that is added. */
.macro aligned name hook real_offset size at
	function \name
	mov	recorder_countdown@gottpoff(%rip), %rax
	sub	\size, %fs:(%rax)
	jbe	1f
	jmp	*real_allocator+\real_offset(%rip)
1:	add	\size, %fs:(%rax)
	cold_call \hook \at
	end_function \name
.endm

	aligned posix_memalign hooks_posix_memalign REAL_POSIX_MEMALIGN %rdx %rcx
	aligned aligned_alloc hooks_aligned_alloc REAL_ALIGNED_ALLOC %rsi %rdx
	aligned memalign hooks_memalign REAL_MEMALIGN %rsi %rdx

	function valloc
	cold_call hooks_valloc %rsi
	end_function valloc

	function pvalloc
	cold_call hooks_pvalloc %rsi
	end_function pvalloc

/* The program's own heaps (own_heaps.c). The countdown of a thread is shared by all of them; a heap's scale says
 * how many units of it a byte costs. A scale of 0 leaves the decision to the C code. */

/* Charges rdx bytes of the heap in edi, and falls through if no sample is due. Goes to \due if the C code has to
 * decide; to \refund if a sample is due, with the charge in rax and the offset of the countdown in rcx. */
.macro heap_charge due refund
	cmp	$HEAPS_MOST, %edi
	jae	\due
	mov	%edi, %eax
	lea	own_heaps_scale(%rip), %rcx
	mov	(%rcx, %rax, 8), %rax
	test	%rax, %rax
	je	\due
	imul	%rdx, %rax
	jo	\due
	mov	own_heaps_countdown@gottpoff(%rip), %rcx
	sub	%rax, %fs:(%rcx)
	jbe	\refund
.endm

	function mscope_heap_alloc
	heap_charge 1f, 2f
	xor	%eax, %eax
	ret
2:	add	%rax, %fs:(%rcx)
1:	cold_call own_heaps_alloc %rcx
	end_function mscope_heap_alloc

	function mscope_heap_alloc_many
	cold_call own_heaps_alloc_many %r8
	end_function mscope_heap_alloc_many

	function mscope_heap_resize
	cold_call own_heaps_resize %r8
	end_function mscope_heap_resize

#ifndef MALLOSCOPE_STATIC
/* The cold paths of Python's objects (python_objects.c). */
	inner object_malloc_due
	cold_call python_objects_malloc %rdx
	end_inner object_malloc_due

	inner object_calloc_due
	cold_call python_objects_calloc %rcx
	end_inner object_calloc_due

	inner object_realloc_due
	cold_call python_objects_realloc %rcx
	end_inner object_realloc_due

/* The C library's second names for some functions (libc_names.c). */
.macro libc_name name
	function __libc_\name
	jmp	*libc_names_\name(%rip)
	end_function __libc_\name
.endm

	libc_name malloc
	libc_name free
	libc_name calloc
	libc_name realloc
	libc_name memalign
	libc_name valloc
	libc_name pvalloc

/* The two plain forms of operator new have a fast path, as malloc has. cxx_operators_next_new holds, for each,
 * what allocates. */
.macro operator_new form name
	function \name
	mov	recorder_countdown@gottpoff(%rip), %rax
	sub	%rdi, %fs:(%rax)
	jbe	1f
	jmp	*cxx_operators_next_new + 8 * \form(%rip)
1:	add	%rdi, %fs:(%rax)
	mov	$\form, %r8d
	cold_call cxx_operators_new %rcx
	end_function \name
.endm

	operator_new 0 _Znwm
	operator_new 1 _Znam

	inner new_by_malloc
	push	%rdi
	.cfi_adjust_cfa_offset 8
	call	*real_allocator+REAL_MALLOC(%rip)
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	test	%rax, %rax
	je	1f
	ret
1:	jmp	cxx_operators_new_failed
	end_inner new_by_malloc

/* Goes on in the program's own operator. The charge is put back, because the operator's call of malloc charges
 * the countdown. */
.macro new_by_program form name
	inner \name
	mov	recorder_countdown@gottpoff(%rip), %rax
	add	%rdi, %fs:(%rax)
	jmp	*cxx_operators_program_new + 8 * \form(%rip)
	end_inner \name
.endm

	new_by_program 0 new_by_program
	new_by_program 1 new_array_by_program

.macro operator_new_rare form name
	function \name
	mov	$\form, %r8d
	cold_call cxx_operators_new %rcx
	end_function \name
.endm

	operator_new_rare 2 _ZnwmRKSt9nothrow_t
	operator_new_rare 3 _ZnamRKSt9nothrow_t
	operator_new_rare 4 _ZnwmSt11align_val_t
	operator_new_rare 5 _ZnamSt11align_val_t
	operator_new_rare 6 _ZnwmSt11align_val_tRKSt9nothrow_t
	operator_new_rare 7 _ZnamSt11align_val_tRKSt9nothrow_t

/* Every form of operator delete is free, unless the program has operators of its own. */
#define OPERATOR_DELETE(form, name) \
	function name; \
	jmp	*cxx_operators_next_delete + 8 * form(%rip); \
	end_function name;
OPERATORS_DELETE(OPERATOR_DELETE)

	.globl	entry_delete_by_free
	.hidden	entry_delete_by_free
	.set	entry_delete_by_free, free_here

/* Allocations of a library in a linker namespace of its own are not seen: dl_hooks_before_dlmopen counts it. libc's
 * dlmopen is jumped to, because it chooses by the return address where to search. */
	function dlmopen
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	push	%rdx
	.cfi_adjust_cfa_offset 8
	call	dl_hooks_before_dlmopen
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*dl_hooks_next_dlmopen(%rip)
	end_function dlmopen

/* got_takeover.c puts its address into GOTs. libc's dlsym, too, chooses by the return address where to search. */
	inner dlsym
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	got_takeover_before_dlsym
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*got_takeover_next_dlsym(%rip)
	end_inner dlsym
#endif

#ifndef MALLOSCOPE_STATIC
/* libc's syscall(). Calls that may begin a sandbox go through sandbox.c, exec through exec.c. Forks whose child
 * continues on a copy of this stack go through bare_forks.c. A child that is given another stack is made here,
 * because there is no frame of ours on that stack to return through. */
	function syscall
	cmp	$SYS_seccomp, %rdi
	je	sandbox_system_call
	cmp	$SYS_prctl, %rdi
	je	sandbox_system_call
	cmp	$SYS_landlock_restrict_self, %rdi
	je	sandbox_system_call
	cmp	$SYS_pivot_root, %rdi
	je	sandbox_system_call
	cmp	$SYS_unshare, %rdi
	je	sandbox_system_call
	cmp	$SYS_setns, %rdi
	je	sandbox_system_call
	cmp	$SYS_execve, %rdi
	je	exec_system_call
	cmp	$SYS_execveat, %rdi
	je	exec_system_call
	cmp	$SYS_fork, %rdi
	je	bare_forks_system_call
	cmp	$SYS_clone, %rdi
	jne	2f
	test	%rdx, %rdx		/* the child's stack */
	jne	2f
	test	$(CLONE_VM | CLONE_SETTLS), %esi
	je	bare_forks_system_call
2:	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	mov	%rcx, %rdx
	mov	%r8, %r10
	mov	%r9, %r8
	mov	8(%rsp), %r9
	syscall
	cmp	$-4095, %rax
	jae	1f
	ret
1:	mov	%rax, %rdi
	jmp	syscall_result
	end_function syscall
#endif

/* Where the recorder's own signal handler returns to. Debuggers and unwinders know a signal's frame by these very
 * bytes. There is no unwind information for them, so that the bytes are looked at. */
	.globl	entry_signal_return
	.hidden	entry_signal_return
	.type	entry_signal_return, @function
	.p2align 4
	nop				/* unwinders look at the byte in front of an address, too */
entry_signal_return:
	mov	$SYS_rt_sigreturn, %rax
	syscall
	.size	entry_signal_return, . - entry_signal_return

	.section .note.GNU-stack,"",@progbits
