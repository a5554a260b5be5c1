# The least a preload library can cost: every function of the malloc family is one indirect jump to the next
# library's. What a recorder adds on top of this is its own; what this adds is the price of LD_PRELOAD.
#
# With FENCE each call first waits until all earlier loads are done. That is the least that a recorder of every
# allocation can cost where blocks are far from the cache: it runs some hundred instructions per call, more than the
# processor holds at once, so the program's cache misses no longer overlap.
#
# With NOP each function begins with an instruction on which a probe is cheap, and those of mmap are there too: for a
# tracer that probes a library's functions at their first instruction, whatever that is (attach/tracers.py).
#
# A slot first points at code that looks the function up and then jumps to it, so calls that ld.so makes before
# any constructor has run work too.

        .macro forward name
        .globl  \name
        .type   \name, @function
        .text
        .p2align 4
\name:
#ifdef FENCE
        lfence
#endif
#ifdef NOP
        nop
#endif
        jmp     *slot_\name(%rip)
        .size   \name, . - \name

resolve_\name:
        push    %rdi
        push    %rsi
        push    %rdx
        push    %rcx
        push    %r8
        push    %r9
        sub     $8, %rsp                # with the return address: the stack is aligned again
        mov     $-1, %rdi               # RTLD_NEXT
        lea     name_\name(%rip), %rsi
        call    *dlsym@GOTPCREL(%rip)
        mov     %rax, slot_\name(%rip)
        add     $8, %rsp
        pop     %r9
        pop     %r8
        pop     %rcx
        pop     %rdx
        pop     %rsi
        pop     %rdi
        jmp     *%rax

        .data
        .p2align 3
slot_\name:
        .quad   resolve_\name
        .section .rodata
name_\name:
        .string "\name"
        .endm

        forward malloc
        forward free
        forward calloc
        forward realloc
        forward reallocarray
        forward memalign
        forward posix_memalign
        forward aligned_alloc
        forward valloc
        forward pvalloc
        forward malloc_usable_size
#ifdef NOP
        forward mmap
        forward munmap
#endif

        .section .note.GNU-stack, "", @progbits
