/* Where the program's calls arrive.
 *
 * The fast paths are here because every instruction of them counts: four on top of malloc, five on top of free,
 * no store but to the thread's own countdown. They jump to the allocator, so it returns straight to the program.
 *
 *   malloc   takes the size off the thread's countdown; a sample is due when that reaches zero or below (jbe: as an
 *            unsigned number it then borrows, so sizes beyond 2^63 are caught too). A thread's countdown starts
 *            at zero, and stays there in exact mode: both take the cold path.
 *   free     asks for the mark of a sampled block (mark.h). Blocks that begin a page, and NULL, take the cold path.
 *
 * The cold paths call hooks.c with one more argument: the caller's registers, from which its stack is walked. They
 * put the countdown back first, so that the C code decides on its own. */

#include "hook/mark.h"

#if defined(__x86_64__)

	.text

.macro function name
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
.endm

.macro end_function name
	.cfi_endproc
	.size	\name, . - \name
.endm

/* Calls \target with a struct unwind_registers (unwind.h) as argument \argument, and returns what it returns. */
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
	lea	56(%rsp), %rax		/* the stack pointer after our return */
	push	%rax
	.cfi_adjust_cfa_offset 8
	push	-8(%rax)		/* the return address */
	.cfi_adjust_cfa_offset 8
	mov	%rsp, \argument
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	\target
	add	$72, %rsp		/* callee-saved registers are as they were */
	.cfi_adjust_cfa_offset -72
	ret
.endm

	function malloc
	mov	hook_countdown@gottpoff(%rip), %rax
	sub	%rdi, %fs:(%rax)
	jbe	1f
	jmp	*real(%rip)
1:	add	%rdi, %fs:(%rax)
	cold_call hook_malloc %rsi
	end_function malloc

	function free
	test	$PAGE_MASK, %edi
	je	1f
	cmpq	$MARK_IMMEDIATE, -8(%rdi)
	je	1f
	jmp	*hook_free_plain(%rip)
1:	jmp	hook_free
	end_function free

	function calloc
	mov	%rdi, %rax
	mul	%rsi
	jo	2f
	mov	hook_countdown@gottpoff(%rip), %rcx
	sub	%rax, %fs:(%rcx)
	jbe	1f
	jmp	*real+16(%rip)
1:	add	%rax, %fs:(%rcx)
2:	cold_call hook_calloc %rdx
	end_function calloc

	function realloc
	test	$PAGE_MASK, %edi
	je	2f
	cmpq	$MARK_IMMEDIATE, -8(%rdi)
	je	2f
	mov	hook_countdown@gottpoff(%rip), %rax
	sub	%rsi, %fs:(%rax)
	jbe	1f
	jmp	*hook_realloc_plain(%rip)
1:	add	%rsi, %fs:(%rax)
2:	cold_call hook_realloc %rdx
	end_function realloc

/* Behind hook_realloc_plain where every block has to be looked up. The countdown has been charged. */
	.hidden	hook_realloc_always
	function hook_realloc_always
	mov	hook_countdown@gottpoff(%rip), %rax
	add	%rsi, %fs:(%rax)
	cold_call hook_realloc %rdx
	end_function hook_realloc_always

	function reallocarray
	cold_call hook_reallocarray %rcx
	end_function reallocarray

	function posix_memalign
	cold_call hook_posix_memalign %rcx
	end_function posix_memalign

	function aligned_alloc
	cold_call hook_aligned_alloc %rdx
	end_function aligned_alloc

	function memalign
	cold_call hook_memalign %rdx
	end_function memalign

	function valloc
	cold_call hook_valloc %rsi
	end_function valloc

	function pvalloc
	cold_call hook_pvalloc %rsi
	end_function pvalloc

/* A library opened with RTLD_DEEPBIND finds libc's free before ours: marks cannot be relied on from then on. The jump keeps
 * the caller's address, by which dlopen chooses where to search. */
#define RTLD_DEEPBIND_BIT 8

	function dlopen
	test	$RTLD_DEEPBIND_BIT, %esi
	jne	1f
	cmpq	$0, hook_dlopen(%rip)
	je	1f
	jmp	*hook_dlopen(%rip)
1:	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	hook_before_dlopen
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*hook_dlopen(%rip)
	end_function dlopen

#endif
	.section .note.GNU-stack,"",@progbits
