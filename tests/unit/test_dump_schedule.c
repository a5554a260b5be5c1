/* When dumps are made, and on which signal, as people write it. */
#include "base/dump_schedule.h"
#include "check.h"

#include <signal.h>
#include <stdlib.h>

static struct dump_schedule when;
static char bad[64];

static bool reads(const char *text) {
    const char *word;
    size_t length;
    memset(bad, 0, sizeof bad);
    if (dump_schedule_read(text, &when, &word, &length)) return true;
    memcpy(bad, word, length < sizeof bad ? length : sizeof bad - 1);
    return false;
}

static void check_times(void) {
    CHECK(reads("exit") && when.at_exit && !when.every_bytes && !when.every_nanoseconds);
    CHECK(reads("EXIT,10s,100M") && when.at_exit);
    CHECK_EQUAL(when.every_bytes, 100 << 20);
    CHECK_EQUAL(when.every_nanoseconds, 10e9);
    CHECK(reads("4096") && when.every_bytes == 4096 && !when.at_exit);
    CHECK(reads("64k") && when.every_bytes == 64 << 10);
    CHECK(reads("1GiB") && when.every_bytes == 1 << 30);
    CHECK(reads("2tb") && when.every_bytes == UINT64_C(2) << 40);
    CHECK(reads("500ms") && when.every_nanoseconds == 500000000);
    CHECK(reads("5min") && when.every_nanoseconds == UINT64_C(300000000000));
    CHECK(reads("1h") && when.every_nanoseconds == UINT64_C(3600000000000));

    static const char *const wrong[] = {"", "never", "10m", "0", "0s", "s", "-1", "1.5s", "1 s", "10x",
        "18446744073709551616", "16777216T", "99999999999h"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!reads(wrong[i]));
        CHECK_TEXT(bad, wrong[i]);
    }
    CHECK(!reads("exit,10m,1G"));
    CHECK_TEXT(bad, "10m");
    CHECK(!reads("exit,"));
    CHECK_TEXT(bad, "");
}

static void check_signals(void) {
    CHECK_EQUAL(dump_schedule_read_signal("USR2"), SIGUSR2);
    CHECK_EQUAL(dump_schedule_read_signal("SIGUSR1"), SIGUSR1);
    CHECK_EQUAL(dump_schedule_read_signal("sigurg"), SIGURG);
    CHECK_EQUAL(dump_schedule_read_signal("12"), 12);
    CHECK_EQUAL(dump_schedule_read_signal("64"), 64);
    static const char *const none[] = {"", "0", "65", "USR3", "SIG", "12x", "-12", "18446744073709551628"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK_EQUAL(dump_schedule_read_signal(none[i]), 0);
    static const char *const deadly[] = {"KILL", "STOP", "SEGV", "BUS", "ILL", "FPE", "TRAP", "ABRT", "9"};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        CHECK_EQUAL(dump_schedule_read_signal(deadly[i]), -1);
}

int main(void) {
    check_times();
    check_signals();
    return check_result();
}
