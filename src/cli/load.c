#include "cli/load.h"
#include "cli/message.h"
#include "cli/progress.h"

#include <string.h>

/* `text` holds one sentence a line, or is NULL. */
static void print_warnings(const char *text) {
    while (text && *text) {
        size_t length = strcspn(text, "\n");
        if (length) message_note("warning: %.*s", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

int load_sources(char **sources, size_t count, bool symbols, struct loaded *ret_loaded) {
    struct problem problem = {0};
    struct loaded loaded = {0};
    if (model_load_many((const char *const *)sources, count, &loaded.model, &problem) < 0)
        return message_problem(&problem);
    print_warnings(loaded.model->warning);
    if (loaded.model->damaged)
        message_hint("what can be read is shown; get a whole copy of the file, or record again");
    if (symbols) {
        if (resolver_new(loaded.model, &loaded.resolver, &problem) < 0) {
            model_free(loaded.model);
            return message_problem(&problem);
        }
        struct progress progress;
        progress_start(&progress, "reading symbols");
        resolver_resolve_all(loaded.resolver, progress_step, &progress);
        progress_end(&progress);
        print_warnings(resolver_warning(loaded.resolver));
    }
    *ret_loaded = loaded;
    return 0;
}

void load_free(struct loaded *loaded) {
    if (loaded->resolver) resolver_free(loaded->resolver);
    if (loaded->model) model_free(loaded->model);
    *loaded = (struct loaded){0};
}

int load_finish(struct loaded *loaded) {
    bool damaged = loaded->model->damaged;
    load_free(loaded);
    int code = message_finish_output();
    return code || !damaged ? code : PROBLEM_DAMAGED;
}
