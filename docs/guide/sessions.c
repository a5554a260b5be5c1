/* A server that keeps a session for each visitor, and ends it a while after the last request. The requests are made
 * up. It loses memory: docs/guide.md finds out where. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SESSIONS_MAX 2000
#define ROUNDS       300
#define VISITORS     200 /* that come in a round */

struct session {
    char *user, *agent, *cart;
};

static struct session *sessions[SESSIONS_MAX];
static char **languages; /* read once, and kept until the end */

static char *describe_browser(int visitor) {
    char text[600];
    snprintf(text, sizeof text, "Mozilla/5.0 (X11; Linux x86_64; rv:%d.0) Gecko/20100101 %0*d",
        90 + visitor % 40, 500, visitor);
    return strdup(text);
}

static struct session *session_begin(int visitor) {
    struct session *session = malloc(sizeof *session);
    session->user = malloc(64);
    snprintf(session->user, 64, "visitor-%d", visitor);
    session->agent = describe_browser(visitor);
    session->cart = calloc(40, 16);
    return session;
}

static void session_end(struct session *session) {
    if (!session) return;
    free(session->user);
    free(session->cart);
#ifdef FIXED
    free(session->agent);
#endif
    free(session);
}

static void read_languages(void) {
    languages = calloc(5000, sizeof *languages);
    for (int i = 0; i < 5000; i++) languages[i] = malloc(400);
}

int main(void) {
    read_languages();
    for (int visitor = 0; visitor < ROUNDS * VISITORS; visitor++) {
        struct session **place = &sessions[visitor % SESSIONS_MAX];
        session_end(*place);
        *place = session_begin(visitor);
        if (visitor % VISITORS == 0) usleep(5000); /* until more of them come */
    }
    printf("%d visitors\n", ROUNDS * VISITORS);
    for (int i = 0; i < SESSIONS_MAX; i++) session_end(sessions[i]);
}
