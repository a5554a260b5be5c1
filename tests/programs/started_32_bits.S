/* A 32-bit program without libraries, for whose dynamic loader LD_PRELOAD counts all the same. Says that it was
 * started, and ends with 7. Linked by: gcc -m32 -nostdlib -pie -Wl,--dynamic-linker=/lib/ld-linux.so.2 */
	.text
	.globl	_start
_start:
	call	1f
1:	popl	%ecx
	addl	$text - 1b, %ecx
	movl	$4, %eax		/* write */
	movl	$1, %ebx
	movl	$end - text, %edx
	int	$0x80
	movl	$1, %eax		/* exit */
	movl	$7, %ebx
	int	$0x80
text:
	.ascii	"started in 32 bits\n"
end:
	.section .note.GNU-stack,"",@progbits
