/* The small parts of src/symbol: maps of intervals, maps of generated code, names for people. */
#include "base/interval_map.h"
#include "check.h"
#include "symbol/bounded_demangler.h"
#include "symbol/demangle.h"
#include "symbol/jit_map.h"

#include <stdlib.h>

static void the_innermost_interval_is_found(void) {
    struct interval_map map = {0};
    CHECK(interval_map_find(&map, 5) == INTERVAL_NONE);
    interval_map_add(&map, 30, 40, 3);
    interval_map_add(&map, 10, 100, 1);
    interval_map_add(&map, 20, 50, 2);
    interval_map_add(&map, 30, 40, 4); /* as long as 3: the larger value */
    interval_map_add(&map, 60, 60, 5); /* empty */
    interval_map_add(&map, 100, 110, 6);
    interval_map_add(&map, 200, UINT64_MAX, 7);
    interval_map_seal(&map);
    static const struct {
        uint64_t address;
        uint32_t value;
    } expected[] = {{0, INTERVAL_NONE}, {9, INTERVAL_NONE}, {10, 1}, {19, 1}, {20, 2}, {30, 4}, {39, 4},
        {40, 2}, {49, 2}, {50, 1}, {60, 1}, {99, 1}, {100, 6}, {110, INTERVAL_NONE}, {199, INTERVAL_NONE},
        {200, 7}, {UINT64_MAX - 1, 7}, {UINT64_MAX, INTERVAL_NONE}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        CHECK_EQUAL(interval_map_find(&map, expected[i].address), expected[i].value);
    interval_map_clear(&map);
}

/* Against a search through all intervals, for random ones that overlap in any way. */
static void any_set_of_intervals_is_mapped_as_promised(void) {
    srand(1);
    for (int round = 0; round < 300; round++) {
        struct interval_map map = {0};
        struct interval all[30];
        uint32_t count = 1 + (uint32_t)rand() % 30;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t low = (uint64_t)(rand() % 60);
            all[i] = (struct interval){low, low + (uint64_t)(rand() % 30), i};
            interval_map_add(&map, all[i].low, all[i].high, i);
        }
        interval_map_seal(&map);
        for (uint64_t address = 0; address < 100; address++) {
            uint32_t best = INTERVAL_NONE;
            for (uint32_t i = 0; i < count; i++) {
                if (address < all[i].low || address >= all[i].high) continue;
                if (best == INTERVAL_NONE || all[i].low > all[best].low ||
                    (all[i].low == all[best].low && all[i].high <= all[best].high))
                    best = i;
            }
            CHECK_EQUAL(interval_map_find(&map, address), best);
        }
        interval_map_clear(&map);

        for (uint32_t i = 0; i < count; i++) interval_map_add(&map, all[i].low, all[i].high, i);
        interval_map_seal_latest(&map);
        for (uint64_t address = 0; address < 100; address++) {
            uint32_t latest = INTERVAL_NONE;
            for (uint32_t i = 0; i < count; i++)
                if (address >= all[i].low && address < all[i].high) latest = i;
            CHECK_EQUAL(interval_map_find(&map, address), latest);
        }
        interval_map_clear(&map);
    }
}

static void a_jit_map_is_read_line_by_line(void) {
    char text[] = "1000 10 first\n"
                  "0x2000 0x20 second: a name (with blanks)\r\n"
                  "\n"
                  "nonsense\n"
                  "3000 zz no number\n"
                  "3000 0 empty\n"
                  "3000 10\n"
                  "ffffffffffffffff 2 beyond the end\n"
                  "11111111111111111 2 too large\n"
                  "-1000 10 negative\n"
                  "1008 10 later\n"
                  "4000 10 being writ";
    struct jit_map map = {0};
    jit_map_read(&map, text, strlen(text));
    CHECK_EQUAL(map.count, 3);
    CHECK_EQUAL(map.nonsense, 7);
    CHECK_TEXT(jit_map_find(&map, 0x1007), "first");
    CHECK_TEXT(jit_map_find(&map, 0x1008), "later"); /* code that is gone has made room for it */
    CHECK_TEXT(jit_map_find(&map, 0x1017), "later");
    CHECK_TEXT(jit_map_find(&map, 0x201f), "second: a name (with blanks)");
    CHECK(jit_map_find(&map, 0xfff) == NULL && jit_map_find(&map, 0x1018) == NULL);
    CHECK(jit_map_find(&map, 0x2020) == NULL && jit_map_find(&map, 0x4000) == NULL);
    jit_map_clear(&map);
    char nothing[1];
    jit_map_read(&map, nothing, 0);
    CHECK(map.count == 0 && jit_map_find(&map, 0) == NULL);
    jit_map_clear(&map);
}

/* Run under ASan by `./dev check --sanitize`. */
static void any_bytes_may_be_in_a_jit_map(void) {
    static const char likely[] = "0123456789abcdefx \t\n\n\r-\0\xff";
    for (int round = 0; round < 2000; round++) {
        size_t size = (size_t)rand() % 400;
        char *text = malloc(size + 1);
        for (size_t i = 0; i < size; i++) text[i] = likely[(size_t)rand() % (sizeof likely - 1)];
        struct jit_map map = {0};
        jit_map_read(&map, text, size);
        for (int i = 0; i < 50; i++) {
            const char *name = jit_map_find(&map, (uint64_t)(rand() % 65536));
            CHECK(!name || (name > text && name + strlen(name) <= text + size));
        }
        jit_map_clear(&map);
        free(text);
    }
}

static void names_are_made_for_people(void) {
    static const struct {
        const char *linkage, *name, *shown;
    } cases[] = {
        {"malloc", NULL, "malloc"},
        {"malloc@@GLIBC_2.2.5", NULL, "malloc"},
        {"parse.part.0", NULL, "parse"},
        {"parse.constprop.0.isra.0", NULL, "parse"},
        {"main.cold", NULL, "main"},
        {"main.partial", NULL, "main.partial"}, /* Go has dots in its names */
        {".hidden", NULL, ".hidden"},
        {"_ZN3zoo3cat4feedEl", "feed", "zoo::cat::feed(long)"},
        {"_ZN3zoo3cat4feedEl.cold", NULL, "zoo::cat::feed(long)"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", NULL,
            "std::vector<int, std::allocator<int> >::push_back(int const&)"},
        {"_ZN4core3ptr13drop_in_place17h0123456789abcdefE", NULL, "core::ptr::drop_in_place"},
        {"_ZN4core3ptr13drop_in_place17h0123456789abcdefE.llvm.123456", NULL, "core::ptr::drop_in_place"},
        {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
         "3bar17h930b740aa94f1d3aE",
            NULL, "<Test + 'static as foo::Bar<Test>>::bar"},
        {"_RNvC6_123foo3bar", NULL, "123foo::bar"},
        {"_RINvNtC3std3mem8align_ofdE", NULL, "std::mem::align_of::<f64>"},
        {"_Znonsense", "sensible", "sensible"},
        {"_Read", NULL, "_Read"},
        {NULL, "plain", "plain"},
        {"renamed_by_asm", "source_name", "source_name"},
    };
    struct result_pool *pool = result_pool_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_TEXT(demangle_name(pool, cases[i].linkage, cases[i].name), cases[i].shown);
    result_pool_free(pool);
}

/* Names in which each part is twice the part before: in full they have more than 2^40 letters, and to search the second
 * one for a parameter pack takes 2^40 steps before any letter is known. */
static void names_that_expand_beyond_bounds_stay_mangled(void) {
    static const char *const names[] = {
        "_Z1fPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFv"
        "PFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPiS_ES1_ES3_ES5_ES7_ES9_ESB_ESD_ESF_ESH_ESJ_ESL_ESN_"
        "ESP_ESR_EST_ESV_ESX_ESZ_ES11_ES13_ES15_ES17_ES19_ES1B_ES1D_ES1F_ES1H_ES1J_ES1L_ES1N_ES1P"
        "_ES1R_ES1T_ES1V_ES1X_ES1Z_ES21_ES23_ES25_E",
        "_Z1fDpPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvP"
        "FvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPFvPiS_ES1_ES3_ES5_ES7_ES9_ESB_ESD_ESF_ESH_ESJ_ESL_ES"
        "N_ESP_ESR_EST_ESV_ESX_ESZ_ES11_ES13_ES15_ES17_ES19_ES1B_ES1D_ES1F_ES1H_ES1J_ES1L_ES1N_ES"
        "1P_ES1R_ES1T_ES1V_ES1X_ES1Z_ES21_ES23_ES25_E",
        "_RINvC1a1fTlETB7_B7_ETBa_Ba_ETBi_Bi_ETBq_Bq_ETBy_By_ETBG_BG_ETBO_BO_ETBW_BW_ETB14_B14_ET"
        "B1c_B1c_ETB1m_B1m_ETB1w_B1w_ETB1G_B1G_ETB1Q_B1Q_ETB20_B20_ETB2a_B2a_ETB2k_B2k_ETB2u_B2u_"
        "ETB2E_B2E_ETB2O_B2O_ETB2Y_B2Y_ETB38_B38_ETB3i_B3i_ETB3s_B3s_ETB3C_B3C_ETB3M_B3M_ETB3W_B3"
        "W_ETB46_B46_ETB4g_B4g_ETB4q_B4q_ETB4A_B4A_ETB4K_B4K_ETB4U_B4U_ETB54_B54_ETB5e_B5e_ETB5o_"
        "B5o_ETB5y_B5y_ETB5I_B5I_ETB5S_B5S_ETB62_B62_EE",
    };
    struct result_pool *pool = result_pool_new();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK_TEXT(demangle_name(pool, names[i], NULL), names[i]);
        CHECK_TEXT(demangle_name(pool, names[i], "short"), "short");
        CHECK_EQUAL(bounded_demangler_given_up(), 2 * i + 2);
    }
    /* Enough of them, and long names are not tried any more. */
    for (int i = 0; i < 40; i++) demangle_name(pool, names[1], NULL);
    CHECK_TEXT(demangle_name(pool, "_ZN3zoo3cat4feedEl", NULL), "zoo::cat::feed(long)");
    result_pool_free(pool);
}

static void a_pool_keeps_equal_texts_once(void) {
    struct result_pool *pool = result_pool_new();
    char text[] = "some/file.c";
    const char *kept = result_pool_text(pool, text);
    CHECK(kept != text && kept == result_pool_format(pool, "%s/%s", "some", "file.c"));
    CHECK(result_pool_text(pool, NULL) == NULL);
    text[0] = 'S';
    CHECK_TEXT(kept, "some/file.c");
    for (int i = 0; i < 100000; i++) result_pool_format(pool, "text number %d", i);
    CHECK_TEXT(result_pool_format(pool, "text number %d", 77), "text number 77");
    CHECK(kept == result_pool_text(pool, "some/file.c"));
    result_pool_free(pool);
}

int main(void) {
    the_innermost_interval_is_found();
    any_set_of_intervals_is_mapped_as_promised();
    a_jit_map_is_read_line_by_line();
    any_bytes_may_be_in_a_jit_map();
    names_are_made_for_people();
    names_that_expand_beyond_bounds_stay_mangled();
    a_pool_keeps_equal_texts_once();
    return check_result();
}
