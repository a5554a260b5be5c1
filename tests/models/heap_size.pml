/* The size of the whole heap and its peak (src/core/heap_size.c): threads allocate and free. Every interleaving.
 *
 * Inlines have the names of the functions in C. A step of the model is one access in C to memory that other threads
 * change. The model's memory is sequentially consistent, as are the operations in C on which the protocol rests.
 *
 * The model is smaller than the code: every block is one byte, a thread may have two bytes of slack, and takes one in
 * advance. It has no signal handlers (tests/unit/test_heap_size.c has).
 *
 * Each BUG_... switch plants a bug that must be found: see `run`. */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef PEAK
#define PEAK 3 /* the peak at the start, when START blocks are live */
#endif
#ifndef START
#define START 2
#endif
#define SLACK_MOST 2
#define TRIES      2

/* The header and the threads' records. */
short live = START, peak = PEAK; /* live_bytes, peak_bytes */
bool is_tense;
byte slack[THREADS], changes[THREADS]; /* the two parts of thread_record.slack */

/* The program. */
short truth = START;  /* live blocks, counted when an event has ended */
short blocks = START; /* blocks that a thread may free */
short held = START;   /* live blocks; one that is being allocated or freed counts as live */
short most = PEAK;    /* the largest value of `held` so far */
byte busy;            /* threads inside an event */
byte slack_sum;

/* ---- measure ---- */

inline slack_of_all(sum, state) {
    sum = 0; state = 0; i = 0;
    do
    :: i < THREADS -> atomic { sum = sum + slack[i]; state = state + changes[i]; i++ }
    :: else -> break
    od;
    i = 0
}

/* Results: `size`, and `is_sure`, what measure() returns in C. */
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
        :: size > peak -> peak = size; assert(peak <= most) /* the peak is never more than was live */
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

inline heap_size_grow_shared() {
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

inline heap_size_shrink_shared() {
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

/* While no thread is inside an event: live_bytes − Σ slack(t) = live bytes, and the peak is not below that. */
inline check_rest() {
    if
    :: busy == 0 ->
       slack_sum = slack[0] + slack[1];
#if THREADS > 2
       slack_sum = slack_sum + slack[2];
#endif
       assert(live - slack_sum == truth);
       assert(truth <= peak); /* no peak was overlooked */
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
       :: begin_grow(); heap_size_grow_shared(); end_grow()
       :: begin_shrink(); heap_size_shrink_shared(); end_shrink()
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
