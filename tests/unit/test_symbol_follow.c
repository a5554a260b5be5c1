/* A resolver that goes on with later readings of its recording. */
#include "check.h"
#include "test_symbol_world.h"

static const char library[] = "int first(int x) { return x + 1; }\n"
                              "int second(int x) { return x * 2; }\n";

/* A later reading, elsewhere in memory, in which a library was mapped below the one of before. */
struct later {
    struct model model;
    struct model_process process;
    struct model_module modules[2];
    const struct model_module *numbered[2];
    char path[4096];
};

static struct later *read_later(const struct world *world) {
    struct later *later = calloc(1, sizeof *later);
    *later = (struct later){.model = world->model, .process = world->process};
    strcpy(later->path, world->path);
    later->modules[1] = world->module;
    later->modules[1].path = later->path;
    later->modules[0] = (struct model_module){
        .start = 0x1000, .end = 0x2000, .number = 1, .first_seen = 5, .path = "/none/libnew.so"};
    later->numbered[0] = &later->modules[1];
    later->numbered[1] = &later->modules[0];
    later->process.executable = later->path;
    later->model.processes = &later->process;
    later->model.modules = later->modules;
    later->model.numbered = later->numbered;
    later->model.module_count = 2;
    module_map_make(&later->model);
    return later;
}

static void forget(struct later *later) {
    free(later->model.module_ranges);
    memset(later, 0xa5, sizeof *later);
    free(later);
}

static void names_stay_and_new_ones_are_found(void) {
    struct world world;
    world_map(&world, "lib.so");
    world_resolve(&world);
    uint64_t first = address_of("lib.so", "first"), second = address_of("lib.so", "second");
    const struct symbol *known = look_up(&world, first).frames;
    CHECK_TEXT(known->function, "first");
    struct later *one = read_later(&world), *two = read_later(&world);
    CHECK(resolver_follow(world.resolver, &one->model));
    memset(&world.module, 0xa5, sizeof world.module);
    memset(&world.process, 0xa5, sizeof world.process);
    CHECK(look_up(&world, first).frames == known);
    CHECK(look_up(&world, first).module == &one->modules[1]);
    CHECK(resolver_follow(world.resolver, &two->model));
    forget(one);
    CHECK(look_up(&world, first).frames == known);
    CHECK(look_up(&world, first).module == &two->modules[1]);
    CHECK_TEXT(look_up(&world, second).frames[0].function, "second");
    CHECK_EQUAL(look_up(&world, second).frames[0].line, 2);
    CHECK_TEXT(look_up_word(&world, 0x1235).frames[0].function, "[libnew.so+0x234]");
    CHECK(look_up_word(&world, 0x1235).module == &two->modules[0]);
    resolver_free(world.resolver);
    forget(two);
    free(world.model.module_ranges);
}

static void another_recording_is_refused(void) {
    struct world world;
    world_map(&world, "lib.so");
    world_resolve(&world);
    uint64_t first = address_of("lib.so", "first");
    CHECK_TEXT(look_up(&world, first).frames[0].function, "first");
    struct later *other = read_later(&world);
    other->process.pid = 17;
    CHECK(!resolver_follow(world.resolver, &other->model));
    other->process.pid = 0;
    other->process.start_realtime = 17;
    CHECK(!resolver_follow(world.resolver, &other->model));
    other->process.start_realtime = 0;
    other->modules[1].build_id[0] ^= 1;
    CHECK(!resolver_follow(world.resolver, &other->model));
    other->modules[1].build_id[0] ^= 1;
    other->model.process_count = 2;
    CHECK(!resolver_follow(world.resolver, &other->model));
    forget(other);
    CHECK(look_up(&world, first).module == &world.module);
    world_end(&world);
}

int main(void) {
    char folder[64];
    enter_folder(folder);
    write_file("lib.c", library);
    CHECK(shell("gcc -O1 -g -shared -fPIC -Wl,--build-id -o lib.so lib.c"));
    names_stay_and_new_ones_are_found();
    another_recording_is_refused();
    leave_folder(folder);
    return check_result();
}
