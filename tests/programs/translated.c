/* With -DLIBRARY: a library whose constructor tells gettext where its texts are, as libgpg-error's does. This
 * makes the program's first allocation, under gettext's lock. Without: a program that uses gettext afterwards. */
#include <libintl.h>
#include <stdio.h>

#ifdef LIBRARY
__attribute__((constructor)) static void start(void) {
    bindtextdomain("library", "/usr/share/locale");
}
#else
int main(void) {
    bindtextdomain("program", "/usr/share/locale");
    textdomain("program");
    puts(gettext("hello"));
}
#endif
