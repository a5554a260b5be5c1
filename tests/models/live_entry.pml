/* One entry of the live table under weak memory orders: live_table_publish, live_table_withdraw and
 * live_table_withdraw_once against live_table_copy (all in src/core/live_table.h), while the slot is used again.
 *
 * The writer's stores become visible word by word, in any order that its fences and releases permit, as on aarch64.
 * In the model, each word has a queue between the writer and the memory, which drains at any time. A release, as a
 * store or as a fence, waits until all earlier stores are visible. A read-modify-write with acquire and release
 * also waits for earlier stores, but stores that follow it may become visible before it does: the architecture
 * permits that, and so does C11. The reader does its loads between two acquires in any order.
 *
 * Each BUG_... switch plants a bug that must be found: see `run`. */
#define KEY   0
#define SIZE  1
#define BIRTH 2
#define WORDS 3
#define QUEUE 3
#ifndef REUSES
#define REUSES 2
#endif
#define LINK 9 /* what a free slot holds in the place of its size */

byte memory[WORDS];
chan queue[WORDS] = [QUEUE] of { byte };
bool is_done;

#define is_drained (empty(queue[KEY]) && empty(queue[SIZE]) && empty(queue[BIRTH]))

inline release() { is_drained }
inline store(word, value) { queue[word] ! value }

inline live_table_withdraw() {
    store(KEY, 0);
#ifndef BUG_WITHDRAW_WITHOUT_FENCE
    release()
#endif
}

inline live_table_withdraw_once() {
    atomic { release(); store(KEY, 0) } /* the compare succeeds: the key is what the last publish stored */
#ifndef BUG_WITHDRAW_ONCE_WITHOUT_FENCE
    ; release()
#endif
}

inline live_table_give() { store(SIZE, LINK) }

inline sample_store() {
    store(SIZE, number);
    store(BIRTH, number)
}

inline live_table_publish() {
#ifndef BUG_PUBLISH_RELAXED
    release();
#endif
    store(KEY, number)
}

proctype recorder() {
    byte number = 1;
    sample_store();
    live_table_publish();
    do
    :: number < REUSES ->
       if
       :: live_table_withdraw()
       :: live_table_withdraw_once()
       fi;
       live_table_give();
       number++;
       sample_store();
       live_table_publish()
    :: else -> break
    od;
    is_drained;
    is_done = true
}

/* The processor drains the queues. */
proctype drain() {
    byte value;
    do
    :: d_step { queue[KEY] ? value; memory[KEY] = value; value = 0 }
    :: d_step { queue[SIZE] ? value; memory[SIZE] = value; value = 0 }
    :: d_step { queue[BIRTH] ? value; memory[BIRTH] = value; value = 0 }
    :: is_done -> break
    od
}

#define is_torn(key, again) ((again) == (key) && (key) != 0 && (size != (key) || birth != (key)))

/* live_table_copy with two attempts. */
proctype reader() {
    byte key, size, birth, again;
    bool has_size, has_birth, has_again, is_early;
    key = memory[KEY]; /* acquire: the loads that follow come later */
    do
    :: !has_size -> size = memory[SIZE]; has_size = true
    :: !has_birth -> birth = memory[BIRTH]; has_birth = true
#ifdef BUG_READER_WITHOUT_FENCE
    :: !has_again -> again = memory[KEY]; has_again = true
#endif
    :: has_size && has_birth -> break /* the fence */
    od;
    if
    :: !has_again -> again = memory[KEY]
    :: else
    fi;
    assert(!is_torn(key, again)); /* a torn entry is not accepted */
    if
    :: again == key -> goto end
    :: else
    fi;
#ifdef BUG_SECOND_ROUND_RELAXED
    /* Words of the second attempt may be read before the key. */
    if
    :: size = memory[SIZE]; birth = memory[BIRTH]; is_early = true
    :: true
    fi;
#endif
    key = memory[KEY];
    if
    :: !is_early -> size = memory[SIZE]; birth = memory[BIRTH]
    :: else
    fi;
    again = memory[KEY];
    assert(!is_torn(key, again));
end:
    skip
}

init { atomic { run recorder(); run drain(); run reader() } }
