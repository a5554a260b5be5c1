/* ELF files with debug info of any shape: names are found for their addresses, or not, but no harm is done.
 *
 * The input is the file. It is mapped as a whole from offset 0 on, so the corpus is linked without pages
 * between its segments. libelf and libdw are Debian's: they are run, but not watched from inside. */
#include "fuzz.h"

#include "model/module_map.h"
#include "symbol/symbol.h"

#define BASE      UINT64_C(0x7f1234560000)
#define ADDRESSES 96

static char path[64];
static int file;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    unsetenv("DEBUGINFOD_URLS");
    snprintf(path, sizeof path, "/tmp/fuzz_symbols.%d", getpid());
    file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    REQUIRE(file >= 0);
    return 0;
}

static __attribute__((destructor)) void clean_up(void) {
    if (path[0]) unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    file_put(file, bytes, size);
    struct model_process process = {.state = PROCESS_FINISHED, .executable = path};
    struct model_module module = {.path = path, .start = BASE, .end = BASE + (size | 4095) + 1};
    uint64_t frames[ADDRESSES];
    for (size_t i = 0; i < ADDRESSES; i++) frames[i] = BASE + size * i / ADDRESSES + 1;
    struct model_stack stack = {.frames = frames, .frame_count = ADDRESSES};
    struct model model = {.processes = &process,
        .process_count = 1,
        .modules = &module,
        .module_count = 1,
        .stacks = &stack,
        .stack_count = 1};
    module_map_make(&model);
    struct resolver *resolver = resolver_new(&model);
    resolver_resolve_all(resolver, NULL, NULL);
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        struct symbol_list list = resolver_look_up(resolver, &stack, i);
        REQUIRE(list.count > 0);
        for (size_t k = 0; k < list.count; k++) REQUIRE(list.frames[k].function);
    }
    REQUIRE(resolver_describe(resolver, &module));
    size_t packed_size, packed_count;
    free(resolver_pack(resolver, &packed_size, &packed_count));
    resolver_free(resolver);
    free(model.module_ranges);
    return 0;
}
