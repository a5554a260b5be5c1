#include "base/dump_schedule.h"
#include "base/memory.h"
#include "cli/completion/completion.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static char *add_word(char *list, const char *word) {
    char *longer = list ? memory_format_text("%s %s", list, word) : memory_copy_text(word);
    free(list);
    return longer;
}

char *completion_join(const char *const *choices) {
    char *list = NULL;
    for (; choices && *choices; choices++) list = add_word(list, *choices);
    return list;
}

char *completion_values(const struct option_rule *option) {
    if (option->kind != OPTION_SIGNAL) return completion_join(option->choices);
    char *list = NULL;
    for (int number = 1; number < SIGRTMIN; number++) {
        const char *name = sigabbrev_np(number);
        if (name && dump_schedule_read_signal(name) > 0) list = add_word(list, name);
    }
    return list;
}

char *completion_summary(const struct option_rule *option) {
    char *text = memory_copy_text(option->help);
    for (char *p = text; *p; p++)
        if (*p == '\n') *p = ' ';
    size_t length = strlen(text);
    if (length && text[length - 1] == ':') text[length - 1] = '\0'; /* in --help the choices follow here */
    return text;
}

void completion_quote(FILE *out, const char *text, const char *special, const char *quote) {
    for (; *text; text++) {
        if (*text == '\'') {
            fputs(quote, out);
            continue;
        }
        if (strchr(special, *text)) fputc('\\', out);
        fputc(*text, out);
    }
}
