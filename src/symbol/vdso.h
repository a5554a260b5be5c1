/* The vdso: the library that the kernel maps into every program. It is in no file. */
#ifndef MALLOSCOPE_SYMBOL_VDSO_H
#define MALLOSCOPE_SYMBOL_VDSO_H

/* A descriptor of a copy of the running kernel's vdso, or -1. Another kernel has another one. */
int vdso_open(void);

#endif
