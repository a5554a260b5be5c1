/* What is judged a leak, and what a suppression matches. */
#include "check.h"
#include "view/c_library_keeps.h"
#include "view/leaks.h"

#include <stdlib.h>
#include <unistd.h>

#define DURATION 16.0 /* seconds, so that a part is 2 */

static const struct leak_scene exited = {
    .exact = true, .has_exited = true, .from_start = true, .duration = DURATION};

/* Figures of objects of 100 bytes: `births` live ones in each part of the run, aged to match, and `freed`
 * that lived for `lifetime` seconds. */
static struct figures figures_of(const uint32_t births[BIRTH_PARTS], double freed, double lifetime) {
    struct figures figures;
    figures_clear(&figures);
    for (int i = 0; i < BIRTH_PARTS; i++) {
        double age = DURATION * (1 - (i + 0.5) / BIRTH_PARTS);
        figures.births[i] = births[i];
        figures.ages[lifetime_bucket((uint64_t)(1e9 * age))] += births[i];
        figures.live_samples += births[i];
    }
    figures.lifetime[lifetime_bucket((uint64_t)(1e9 * lifetime))] = freed;
    figures.freed_objects = freed;
    figures.live_objects.value = (double)figures.live_samples;
    figures.live_bytes.value = 100 * figures.live_objects.value;
    figures.total_objects.value = figures.live_objects.value + freed;
    figures.samples = (uint64_t)figures.total_objects.value;
    return figures;
}

#define FIGURES(freed, lifetime, ...) figures_of((const uint32_t[BIRTH_PARTS]){__VA_ARGS__}, freed, lifetime)

static void check_kind(
    int line, struct figures figures, const struct leak_scene *scene, enum leak_kind expected) {
    enum leak_kind kind = leaks_judge(&figures, scene).kind;
    if (!CHECK(kind == expected)) fprintf(stderr, "  from line %d: %d, not %d\n", line, kind, expected);
}
#define CHECK_KIND(figures, scene, expected) check_kind(__LINE__, figures, scene, expected)

static void what_is_left_behind_all_along_grows(void) {
    CHECK_KIND(FIGURES(0, 0, 5, 5, 5, 5, 5, 5, 5, 5), &exited, LEAK_GROWING);
    CHECK_KIND(FIGURES(0, 0, 0, 0, 0, 1, 0, 1, 1, 0), &exited, LEAK_GROWING);
    /* One in a thousand, while the others live for a millisecond. */
    CHECK_KIND(FIGURES(40000, 0.001, 5, 5, 5, 5, 5, 5, 5, 5), &exited, LEAK_GROWING);
    struct figures figures = FIGURES(40000, 0.001, 5, 5, 5, 5, 5, 5, 5, 5);
    CHECK_EQUAL(leaks_judge(&figures, &exited).outliving, 40);
    CHECK_EQUAL(leaks_judge(&figures, &exited).growth, 20 * 100 / (DURATION / 2));
    /* Two that were freed late by chance hide nothing. */
    figures.lifetime[lifetime_bucket(7000000000)] = 2;
    CHECK_KIND(figures, &exited, LEAK_GROWING);
    CHECK_EQUAL(leaks_judge(&figures, &exited).freed_later, 2);
}

static void what_has_stopped_growing_is_merely_never_freed(void) {
    CHECK_KIND(FIGURES(0, 0, 0, 5, 5, 5, 5, 0, 0, 0), &exited, LEAK_NEVER_FREED);
    CHECK_KIND(FIGURES(0, 0, 0, 0, 0, 1, 0, 0, 0, 0), &exited, LEAK_NEVER_FREED);
    CHECK_KIND(FIGURES(0, 0, 0, 0, 0, 0, 0, 0, 0, 9), &exited, LEAK_NEVER_FREED);
}

static void one_that_got_lost_outlives_the_others(void) {
    CHECK_KIND(FIGURES(5000, 0.001, 0, 0, 0, 1, 0, 0, 0, 0), &exited, LEAK_OUTLIVING);
    CHECK_KIND(FIGURES(5000, 0.001, 1, 0, 0, 0, 0, 0, 0, 0), &exited, LEAK_OUTLIVING);
    /* Samples may have missed the old ones among the few that were freed. */
    struct leak_scene sampled = exited;
    sampled.exact = false;
    CHECK_KIND(FIGURES(3, 0.001, 0, 0, 0, 1, 0, 0, 0, 0), &exited, LEAK_OUTLIVING);
    CHECK_KIND(FIGURES(3, 0.001, 0, 0, 0, 1, 0, 0, 0, 0), &sampled, LEAK_IN_USE);
    CHECK_KIND(FIGURES(300, 0.001, 0, 0, 0, 1, 0, 0, 0, 0), &sampled, LEAK_OUTLIVING);
}

static void caches_and_work_under_way_are_in_use(void) {
    CHECK_KIND(FIGURES(600, 6, 0, 0, 0, 0, 0, 100, 100, 100), &exited, LEAK_IN_USE);
    CHECK_KIND(FIGURES(600, 0.3, 0, 0, 0, 0, 0, 0, 0, 1), &(struct leak_scene){.duration = 0.5}, LEAK_IN_USE);
    /* Freed just before they would be in the bucket of the live ones. */
    CHECK_KIND(FIGURES(600, 4.2, 0, 0, 0, 0, 0, 100, 100, 100), &exited, LEAK_IN_USE);
    /* Evicted at random: some get old, as some of those that were freed did. */
    struct figures random = FIGURES(600, 1, 1, 1, 2, 4, 8, 16, 32, 64);
    for (int i = 0; i < BIRTH_PARTS; i++) random.lifetime[lifetime_bucket((uint64_t)(2e9 * i))] += 600 >> i;
    CHECK_KIND(random, &exited, LEAK_IN_USE);
}

static void start_up_is_apart(void) {
    CHECK_KIND(FIGURES(0, 0, 100, 0, 0, 0, 0, 0, 0, 0), &exited, LEAK_START_UP);
    /* A table that was moved a few times as it grew. */
    CHECK_KIND(FIGURES(4, 0.001, 1, 0, 0, 0, 0, 0, 0, 0), &exited, LEAK_START_UP);
    /* What an attach sees first is no start. */
    struct leak_scene attached = exited;
    attached.from_start = attached.has_exited = false;
    CHECK_KIND(FIGURES(0, 0, 100, 0, 0, 0, 0, 0, 0, 0), &attached, LEAK_NEVER_FREED);
    /* What a forked child took over is not its own. */
    struct figures inherited = FIGURES(0, 0, 5, 5, 5, 5, 5, 5, 5, 5);
    inherited.inherited_bytes = 4000;
    inherited.total_objects.value = 0;
    CHECK_KIND(inherited, &exited, LEAK_START_UP);
}

static void the_young_are_not_judged_while_the_program_runs(void) {
    struct leak_scene running = exited;
    running.has_exited = false;
    CHECK_KIND(FIGURES(0, 0, 0, 0, 0, 0, 0, 0, 0, 9), &running, LEAK_IN_USE);
    CHECK_KIND(FIGURES(0, 0, 0, 0, 0, 0, 0, 1, 0, 9), &running, LEAK_NEVER_FREED);
    CHECK_KIND(FIGURES(0, 0, 5, 5, 5, 5, 5, 5, 5, 5), &running, LEAK_GROWING);
}

static void patterns_match_as_those_of_lsan(void) {
    CHECK(suppressions_match_text("alloc", "my_alloc_block"));
    CHECK(!suppressions_match_text("Alloc", "my_alloc_block"));
    CHECK(suppressions_match_text("^my_", "my_alloc_block"));
    CHECK(!suppressions_match_text("^alloc", "my_alloc_block"));
    CHECK(suppressions_match_text("block$", "my_alloc_block"));
    CHECK(!suppressions_match_text("alloc$", "my_alloc_block"));
    CHECK(suppressions_match_text("^my_alloc_block$", "my_alloc_block"));
    CHECK(!suppressions_match_text("^my_alloc$", "my_alloc_block"));
    CHECK(suppressions_match_text("my*block", "my_alloc_block"));
    CHECK(suppressions_match_text("^my*l*k$", "my_alloc_block"));
    CHECK(!suppressions_match_text("^my*x*k$", "my_alloc_block"));
    CHECK(suppressions_match_text("a*aab$", "aaaab"));
    CHECK(!suppressions_match_text("block*my", "my_alloc_block"));
    CHECK(suppressions_match_text("*", "anything"));
    CHECK(!suppressions_match_text("*", NULL));
    CHECK(!suppressions_match_text("longer than that", "that"));
}

static int read_suppressions(
    const char *text, struct suppressions *ret_suppressions, struct problem *problem) {
    char path[] = "/tmp/test_view_leaks.XXXXXX";
    int descriptor = mkstemp(path);
    CHECK(write(descriptor, text, strlen(text)) == (ssize_t)strlen(text));
    close(descriptor);
    int r = suppressions_read(path, ret_suppressions, problem);
    unlink(path);
    return r;
}

static void files_of_lsan_are_read(void) {
    struct suppressions suppressions = {0};
    struct problem problem = {0};
    CHECK_EQUAL(
        read_suppressions("# known\n\nleak:one\n  leak:libtwo.so\r\nleak:^three*", &suppressions, &problem),
        0);
    CHECK_EQUAL(suppressions.count, 3);
    CHECK_TEXT(suppressions.list[1].pattern, "libtwo.so");
    struct symbol symbols[] = {{.function = "allocate", .file = "/src/three.c"}, {.function = "main"}};
    struct model_module module = {.path = "/usr/lib/libtwo.so.1"};
    struct source_frame list[] = {{&symbols[0], NULL}, {&symbols[1], &module}};
    struct source_frames frames = {.frames = list, .count = 2, .end = 2};
    CHECK(suppressions_find(&suppressions, &frames) == &suppressions.list[1]);
    frames.end = 1;
    CHECK(suppressions_find(&suppressions, &frames) == NULL);
    suppressions_free(&suppressions);
    CHECK_EQUAL(read_suppressions("leak:one\nrace:two\n", &suppressions, &problem), -PROBLEM_USAGE);
    CHECK(strstr(problem.what, "line 2") && strstr(problem.what, "race:two"));
    CHECK_EQUAL(read_suppressions("leak:\n", &suppressions, &problem), -PROBLEM_USAGE);
    CHECK_EQUAL(suppressions_read("/none.supp", &suppressions, &problem), -PROBLEM_MISSING);
}

static void the_library_holds_only_what_it_calls_for_itself(void) {
    struct symbol buffer = {.function = "_IO_file_doallocate"}, loader = {.function = "_dl_init"},
                  copy = {.function = "strdup"}, own = {.function = "setlocale"};
    struct model_module libc = {.path = "/lib/libc.so.6"}, program = {.path = "/bin/program"},
                        ld = {.path = "/lib64/ld-linux-x86-64.so.2"};
    struct source_frame list[] = {{&buffer, &libc}, {&copy, &libc}, {&own, &program}, {&loader, &ld}};
    struct source_frames frames = {.frames = list, .count = 4, .end = 4};
    CHECK(c_library_keeps(&frames));
    frames.first = 1;
    CHECK(!c_library_keeps(&frames));
    frames.first = 3;
    CHECK(c_library_keeps(&frames));
}

int main(void) {
    what_is_left_behind_all_along_grows();
    what_has_stopped_growing_is_merely_never_freed();
    one_that_got_lost_outlives_the_others();
    caches_and_work_under_way_are_in_use();
    start_up_is_apart();
    the_young_are_not_judged_while_the_program_runs();
    patterns_match_as_those_of_lsan();
    files_of_lsan_are_read();
    the_library_holds_only_what_it_calls_for_itself();
    return check_result();
}
