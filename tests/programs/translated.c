/* With -DLIBRARY a library whose constructor, as libgpg-error's, tells gettext where its texts are: that is
 * where the program first allocates, under gettext's lock. Without, a program that uses gettext afterwards.
 */
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
