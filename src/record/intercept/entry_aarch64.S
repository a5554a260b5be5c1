/* Where the program's calls arrive, on aarch64. entry_x86_64.S says what the functions do and why they are
 * written in assembly: a change to one file is a change to both.
 *
 * The countdown is loaded, and stored only if no sample is due; so the cold paths have nothing to put back. A
 * signal handler that allocates between the load and the store loses its charge: the store overwrites it. The
 * bytes that are counted for the thread are then too few by what the handler has allocated. A handler that runs
 * at a call (raise) does not come there.
 *
 * x9 to x17 may be changed: no caller relies on them across a call. */

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
	.type	\name, %function
	.p2align 4
\name:
entry_\name:
	.cfi_startproc
#if defined(__ARM_FEATURE_BTI_DEFAULT)
	hint	#34			/* bti c: indirect calls may arrive here */
#endif
.endm

.macro end_function name
	.cfi_endproc
	.size	\name, . - \name
.endm

/* A function that only our own code calls or jumps to: entry_NAME. */
.macro inner name
	.globl	entry_\name
	.hidden	entry_\name
	.type	entry_\name, %function
	.p2align 4
entry_\name:
	.cfi_startproc
#if defined(__ARM_FEATURE_BTI_DEFAULT)
	hint	#34			/* bti c */
#endif
.endm

.macro end_inner name
	.cfi_endproc
	.size	entry_\name, . - entry_\name
.endm

/* Makes a frame of \size bytes, which begins with the frame record (the caller's x29 and x30). */
.macro enter size
#if defined(__ARM_FEATURE_PAC_DEFAULT)
	hint	#25			/* paciasp: signs the return address */
	.cfi_negate_ra_state
#endif
	stp	x29, x30, [sp, #-\size]!
	.cfi_def_cfa_offset \size
	.cfi_offset 29, -\size
	.cfi_offset 30, 8 - \size
	mov	x29, sp
.endm

.macro leave size
	ldp	x29, x30, [sp], #\size
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
#if defined(__ARM_FEATURE_PAC_DEFAULT)
	hint	#29			/* autiasp */
	.cfi_negate_ra_state
#endif
.endm

/* The address of the thread's recorder_work is x9 + x10. */
.macro work_address
	mrs	x9, tpidr_el0
	adrp	x10, :gottprel:recorder_work
	ldr	x10, [x10, #:gottprel_lo12:recorder_work]
.endm

/* The cold path: calls \target, with a pointer to the caller's registers (struct unwind_registers, unwind.h) in
 * register \argument, and returns what it returns. */
.macro cold_call target argument
	mov	x15, x29
	mov	x16, sp
	mov	x17, x30		/* not signed yet */
	enter	48
	stp	x17, x16, [sp, #16]
	str	x15, [sp, #32]
	add	\argument, sp, #16
	work_address
	ldr	x11, [x9, x10]		/* struct work (work.h): says that the thread is in the recorder's work */
	str	x11, [sp, #40]
	add	x11, sp, #40
	str	x11, [x9, x10]
	bl	\target
	work_address
	ldr	x11, [sp, #40]
	str	x11, [x9, x10]
	leave	48
	ret
.endm

/* Loads a word of this library's data. */
.macro load register symbol
	adrp	\register, \symbol
	ldr	\register, [\register, #:lo12:\symbol]
.endm

/* Jumps to the function that the word points to, which returns to our caller. */
.macro jump_through symbol
	load	x16, \symbol
	br	x16
.endm

/* Loads the thread's countdown into x11. Its address is x9 + x10. */
.macro load_countdown
	mrs	x9, tpidr_el0
	adrp	x10, :gottprel:recorder_countdown
	ldr	x10, [x10, #:gottprel_lo12:recorder_countdown]
	ldr	x11, [x9, x10]
.endm

/* Takes \size off the countdown, or goes to \due if a sample is due: the condition "lower or same" is jbe of
 * x86-64. */
.macro charge size due
	load_countdown
	subs	x11, x11, \size
	b.ls	\due
	str	x11, [x9, x10]
.endm

.macro refund size
	load_countdown
	add	x11, x11, \size
	str	x11, [x9, x10]
.endm

/* Goes to \target if the word in front of the block must not be read: the block begins a page, or has a tag
 * (mark.h). */
.macro branch_if_unmarkable block target
	tst	\block, #PAGE_MASK
	b.eq	\target
	lsr	x9, \block, #TAG_SHIFT
	cbnz	x9, \target
.endm

/* Goes to \target if the block carries a mark. The mark's upper 32 bits are ones: movn writes the complement of
 * its operand. */
.macro branch_if_marked block target
	ldur	x9, [\block, #-8]
	movn	x10, #((~MARK_IMMEDIATE) & 0xffff)
	movk	x10, #((MARK_IMMEDIATE >> 16) & 0xffff), lsl #16
	cmp	x9, x10
	b.eq	\target
.endm

	function malloc
malloc_here:
	charge	x0, 1f
	jump_through real_allocator+REAL_MALLOC
1:	cold_call hooks_malloc, x1
	end_function malloc

	function free
free_here:
	branch_if_unmarkable x0, 1f
	branch_if_marked x0, 2f
	jump_through hooks_next_free
1:	jump_through hooks_next_free_page
2:	b	hooks_free
	end_function free

	function calloc
	umulh	x12, x0, x1
	cbnz	x12, 1f
	mul	x12, x0, x1
	charge	x12, 1f
	jump_through real_allocator+REAL_CALLOC
1:	cold_call hooks_calloc, x2
	end_function calloc

	function realloc
	branch_if_unmarkable x0, 2f
	branch_if_marked x0, 1f
	charge	x1, 1f
	jump_through hooks_next_realloc
1:	cold_call hooks_realloc, x2
2:	cbnz	x0, 1b
	mov	x0, x1
	b	malloc_here
	end_function realloc

	function malloc_usable_size
	jump_through hooks_next_usable_size
	end_function malloc_usable_size

	inner usable_size_marked
	branch_if_unmarkable x0, 1f
	branch_if_marked x0, 1f
	jump_through real_allocator+REAL_USABLE_SIZE
1:	b	hooks_malloc_usable_size
	end_inner usable_size_marked

/* hooks_next_free, hooks_next_free_page and hooks_next_realloc lead to the next two functions where sampled
 * blocks carry no mark. A block whose counter in the address filter (address_filter.h) is 0 was not sampled. */
.macro branch_if_filtered block target
	mov	w9, #(FILTER_FACTOR & 0xffff)
	movk	w9, #(FILTER_FACTOR >> 16), lsl #16
	mul	w9, w\block, w9
	lsr	w9, w9, #FILTER_SHIFT
	adrp	x10, address_filter_counts
	add	x10, x10, #:lo12:address_filter_counts
	ldrb	w10, [x10, x9]
	cbnz	w10, \target
.endm

	inner free_filtered
	branch_if_filtered 0, 1f
	jump_through real_allocator+REAL_FREE
1:	b	hooks_free
	end_inner free_filtered

	inner realloc_filtered
	branch_if_filtered 0, realloc_always_here
	jump_through real_allocator+REAL_REALLOC
	end_inner realloc_filtered

/* hooks_next_realloc leads here where every block has to be looked up. The countdown has been charged: the charge
 * is put back, because hooks_realloc charges it again. */
	inner realloc_always
realloc_always_here:
	refund	x1
	cold_call hooks_realloc, x2
	end_inner realloc_always

	function reallocarray
	cold_call hooks_reallocarray, x3
	end_function reallocarray

/* The aligned ones do as malloc does. \size is the register that holds the size, \at the register of the argument
 * that is added. */
.macro aligned name hook real_offset size at
	function \name
	charge	\size, 1f
	jump_through real_allocator+\real_offset
1:	cold_call \hook, \at
	end_function \name
.endm

	aligned posix_memalign, hooks_posix_memalign, REAL_POSIX_MEMALIGN, x2, x3
	aligned aligned_alloc, hooks_aligned_alloc, REAL_ALIGNED_ALLOC, x1, x2
	aligned memalign, hooks_memalign, REAL_MEMALIGN, x1, x2

	function valloc
	cold_call hooks_valloc, x1
	end_function valloc

	function pvalloc
	cold_call hooks_pvalloc, x1
	end_function pvalloc

/* The program's own heaps (own_heaps.c). The countdown of a thread is shared by all of them; a heap's scale says
 * how many units of it a byte costs. A scale of 0 leaves the decision to the C code. */

/* Charges x2 bytes of the heap in w0, and falls through if no sample is due. Goes to \due if one is, or if the C
 * code has to decide. */
.macro heap_charge due
	cmp	w0, #HEAPS_MOST
	b.hs	\due
	adrp	x12, own_heaps_scale
	add	x12, x12, #:lo12:own_heaps_scale
	ldr	x12, [x12, w0, uxtw #3]
	cbz	x12, \due
	umulh	x13, x12, x2
	cbnz	x13, \due
	mul	x12, x12, x2
	mrs	x9, tpidr_el0
	adrp	x10, :gottprel:own_heaps_countdown
	ldr	x10, [x10, #:gottprel_lo12:own_heaps_countdown]
	ldr	x11, [x9, x10]
	subs	x11, x11, x12
	b.ls	\due
	str	x11, [x9, x10]
.endm

	function mscope_heap_alloc
	heap_charge 1f
	mov	w0, #0
	ret
1:	cold_call own_heaps_alloc, x3
	end_function mscope_heap_alloc

	function mscope_heap_alloc_many
	cold_call own_heaps_alloc_many, x4
	end_function mscope_heap_alloc_many

	function mscope_heap_resize
	cold_call own_heaps_resize, x4
	end_function mscope_heap_resize

#ifndef MALLOSCOPE_STATIC
/* The cold paths of Python's objects (python_objects.c). */
	inner object_malloc_due
	cold_call python_objects_malloc, x2
	end_inner object_malloc_due

	inner object_calloc_due
	cold_call python_objects_calloc, x3
	end_inner object_calloc_due

	inner object_realloc_due
	cold_call python_objects_realloc, x3
	end_inner object_realloc_due

/* The C library's second names for some functions (libc_names.c). */
.macro libc_name name
	function __libc_\name
	jump_through libc_names_\name
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
	charge	x0, 1f
	jump_through cxx_operators_next_new + 8 * \form
1:	mov	w4, #\form
	cold_call cxx_operators_new, x3
	end_function \name
.endm

	operator_new 0 _Znwm
	operator_new 1 _Znam

	inner new_by_malloc
	enter	32
	str	x0, [sp, #16]
	load	x16, real_allocator+REAL_MALLOC
	blr	x16
	ldr	x9, [sp, #16]
	leave	32
	cbz	x0, 1f
	ret
1:	mov	x0, x9
	b	cxx_operators_new_failed
	end_inner new_by_malloc

/* Goes on in the program's own operator. The charge is put back, because the operator's call of malloc charges
 * the countdown. */
.macro new_by_program form name
	inner \name
	refund	x0
	jump_through cxx_operators_program_new + 8 * \form
	end_inner \name
.endm

	new_by_program 0 new_by_program
	new_by_program 1 new_array_by_program

.macro operator_new_rare form name
	function \name
	mov	w4, #\form
	cold_call cxx_operators_new, x3
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
	jump_through cxx_operators_next_delete + 8 * form; \
	end_function name;
OPERATORS_DELETE(OPERATOR_DELETE)

	.globl	entry_delete_by_free
	.hidden	entry_delete_by_free
	.set	entry_delete_by_free, free

/* See entry_x86_64.S. */
	function dlmopen
	enter	48
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	bl	dl_hooks_before_dlmopen
	ldp	x0, x1, [sp, #16]
	ldr	x2, [sp, #32]
	leave	48
	jump_through dl_hooks_next_dlmopen
	end_function dlmopen

/* got_takeover.c puts its address into GOTs. libc's dlsym, too, chooses by the return address where to search. */
	inner dlsym
	enter	32
	stp	x0, x1, [sp, #16]
	bl	got_takeover_before_dlsym
	ldp	x0, x1, [sp, #16]
	leave	32
	jump_through got_takeover_next_dlsym
	end_inner dlsym
#endif

#ifndef MALLOSCOPE_STATIC
/* libc's syscall(): see entry_x86_64.S. */
	function syscall
	cmp	x0, #SYS_seccomp
	b.eq	sandbox_system_call
	cmp	x0, #SYS_prctl
	b.eq	sandbox_system_call
	cmp	x0, #SYS_landlock_restrict_self
	b.eq	sandbox_system_call
	cmp	x0, #SYS_pivot_root
	b.eq	sandbox_system_call
	cmp	x0, #SYS_unshare
	b.eq	sandbox_system_call
	cmp	x0, #SYS_setns
	b.eq	sandbox_system_call
	cmp	x0, #SYS_execve
	b.eq	exec_system_call
	cmp	x0, #SYS_execveat
	b.eq	exec_system_call
	cmp	x0, #SYS_clone
	b.ne	1f
	cbnz	x2, 1f			/* the child's stack */
	tst	w1, #CLONE_VM
	b.ne	1f
	tst	w1, #CLONE_SETTLS
	b.eq	bare_forks_system_call
1:	mov	x8, x0
	mov	x0, x1
	mov	x1, x2
	mov	x2, x3
	mov	x3, x4
	mov	x4, x5
	mov	x5, x6
	svc	#0
	cmn	x0, #4095
	b.cs	syscall_result
	ret
	end_function syscall
#endif

	.section .note.GNU-stack,"",%progbits

/* Says that this file has landing pads (bit 0) and signs return addresses (bit 1). The linker marks a library so
 * only if all of its parts say so. */
#if defined(__ARM_FEATURE_BTI_DEFAULT) || defined(__ARM_FEATURE_PAC_DEFAULT)
#if !defined(__ARM_FEATURE_PAC_DEFAULT)
#define FEATURES 1
#elif !defined(__ARM_FEATURE_BTI_DEFAULT)
#define FEATURES 2
#else
#define FEATURES 3
#endif
	.section .note.gnu.property,"a",%note
	.p2align 3
	.word	4, 16, 5		/* sizes of the name and the property, NT_GNU_PROPERTY_TYPE_0 */
	.asciz	"GNU"
	.word	0xc0000000, 4		/* GNU_PROPERTY_AARCH64_FEATURE_1_AND and its size */
	.word	FEATURES, 0
#endif
