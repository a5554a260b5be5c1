/* The size of the whole heap and its peak (src/core/heap_size.c): threads that allocate and free; every
 * interleaving.
 *
 * Inline names are those of the functions in C; a step here is one access to memory that others change there.
 * The memory is sequentially consistent, as the operations in C that matter are.
 *
 * Smaller than life: every block is one byte, a thread may keep two as slack and takes one in advance. Signal
 * handlers are not in it (tests/unit/test_heap_size.c has them).
 *
 * Planted bugs, each of which must be found: see `run`. */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef PEAK
#define PEAK 3 /* at the start, when START are live */
#endif
#ifndef START
#define START 2
#endif
#define SLACK_MOST 2
#define TRIES      2

short live = START, peak = PEAK; /* live_bytes, peak_bytes */
bool is_tense;
byte slack[THREADS], changes[THREADS];

/* The program. What is being allocated counts for `most` from the beginning, what is being freed to the end. */
short truth = START, blocks = START, held = START, most = PEAK;
byte busy, slack_sum;

/* ---- measure ---- */

inline slack_of_all(sum, state) {
    sum = 0; state = 0; i = 0;
    do
    :: i < THREADS -> atomic { sum = sum + slack[i]; state = state + changes[i]; i++ }
    :: else -> break
    od;
    i = 0
}

/* The result is in `size`, and whether it is one in `is_sure`. */
inline measure() {
    tries = 0;
    do
    :: slack_of_all(sum, before);
       size = live - sum;
       slack_of_all(sum, after);
       is_sure = before == after; tries++;
       if
       :: is_sure || tries == TRIES -> break
       :: else
       fi
    od;
    sum = 0; before = 0; after = 0; tries = 0
}

inline heap_size_note_peak() {
    atomic {
        if
        :: size > peak -> peak = size; assert(peak <= most) /* no more than was live */
        :: else
        fi
    }
}

/* ---- the peak and slack ---- */

inline look_at_peak() {
    do
    :: size = live;
       was_tense = is_tense;
       is_above = size > peak;
       if
       :: is_above != was_tense -> is_tense = is_above
       :: else
       fi;
#ifdef BUG_CLEARED_WITHOUT_LOOKING_AGAIN
       break
#else
       if
       :: is_above || !was_tense -> break
       :: else
       fi
#endif
    od
}

inline note_size() {
    look_at_peak();
    if
    :: is_above ->
       measure();
       if
       :: is_sure -> heap_size_note_peak()
       :: else
       fi
    :: else
    fi;
    size = 0; is_sure = false; is_above = false; was_tense = false
}

#define set_slack(value) atomic { slack[me] = value; changes[me]++ }

inline add(bytes, kept) {
    given = slack[me];
    if
#ifdef BUG_ADDED_BEFORE_SLACK_IS_RAISED
    :: given < kept -> live = live + bytes + kept - given; set_slack(kept)
#else
    :: given < kept -> set_slack(kept); live = live + bytes + kept - given
#endif
    :: given == kept -> live = live + bytes
    :: given > kept -> live = live + bytes + kept - given; set_slack(kept)
    fi;
    given = 0
}

inline heap_size_grow() {
    if
    :: !is_tense ->
       if
       :: slack[me] >= 1 ->
          set_slack(slack[me] - 1);
#ifndef BUG_LOWERED_WITHOUT_LOOKING
          if
          :: is_tense -> note_size()
          :: else
          fi;
#endif
          goto grown
       :: else
       fi;
       if
       :: live + 1 + SLACK_MOST / 2 <= peak -> in_advance = SLACK_MOST / 2
       :: else
       fi
    :: else
    fi;
    add(1, in_advance);
    in_advance = 0;
    note_size();
grown:
}

inline heap_size_shrink() {
    if
    :: !is_tense ->
       if
       :: slack[me] + 1 <= SLACK_MOST -> set_slack(slack[me] + 1); goto shrunk
       :: else -> in_advance = SLACK_MOST / 2
       fi
    :: else
    fi;
    add(-1, in_advance);
    in_advance = 0;
    note_size();
shrunk:
}

/* ---- the program ---- */

/* While nobody is at it, all of this is exact. */
inline check_rest() {
    if
    :: busy == 0 ->
       slack_sum = slack[0] + slack[1];
#if THREADS > 2
       slack_sum = slack_sum + slack[2];
#endif
       assert(live - slack_sum == truth);
       assert(truth <= peak); /* overlooked */
       slack_sum = 0
    :: else
    fi
}

#define begin_grow() atomic { busy++; held++; if :: held > most -> most = held :: else fi }
#define end_grow()   atomic { truth++; blocks++; busy--; check_rest() }
#define begin_shrink() atomic { blocks > 0 -> blocks--; busy++ }
#define end_shrink() atomic { truth--; held--; busy--; check_rest() }

proctype thread(byte me, calls) {
    byte i, tries, sum, before, after, given, in_advance;
    short size;
    bool is_sure, is_above, was_tense;
    do
    :: calls > 0 ->
       calls--;
       if
       :: begin_grow(); heap_size_grow(); end_grow()
       :: begin_shrink(); heap_size_shrink(); end_shrink()
       :: skip
       fi
    :: else -> break
    od
}

init {
    atomic {
        run thread(0, CALLS_0);
        run thread(1, CALLS_1);
#if THREADS > 2
        run thread(2, CALLS_2)
#endif
    }
}
