/* The library that the kernel maps into every program, "[vdso]". It is in no file. */
#ifndef MALLOSCOPE_SYMBOL_VDSO_H
#define MALLOSCOPE_SYMBOL_VDSO_H

/* A descriptor of a copy of this kernel's, or -1. A recording made under another kernel has another one. */
int vdso_open(void);

#endif
