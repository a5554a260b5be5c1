/* The stack table (src/core/stack_table.c): three threads look up stacks, or add them, while the index grows. Every
 * interleaving.
 *
 * Inlines have the names of the functions in C. A step of the model is one access in C to memory that other threads
 * change. The model's memory is sequentially consistent; the comments at the atomics in C say why weaker orders are
 * enough.
 *
 * The model is smaller than the code: three stacks (1, 2, 3) with the hashes below; an index of two places that
 * grows to four, once; a search that visits PROBE_MAX places.
 *
 * Switches, chosen by `run`: ASKED_0 to ASKED_2, the stacks that each thread looks up, as two digits (12 = stack 1,
 * then stack 2; 10 = stack 1 only); ROOMY, an index that need not grow.
 *
 * Each BUG_... switch plants a bug that must be found: see `run`. */
#define RECORDS    8 /* record 0 is STACK_DROPPED */
#define PLACES     4
#define PROBE_MAX  4
#ifndef ASKED_0
#define ASKED_0 12
#define ASKED_1 10
#define ASKED_2 20
#endif
#ifdef ROOMY /* the first index never has to grow */
#define FIRST_PLACES 4
#else
#define FIRST_PLACES 2
#endif

/* Stacks 1 and 2 have the same hash: only their frames tell them apart. */
#define HASH(stack) ((stack) == 3 -> 1 : 0)

/* struct stack_record. `frames` and `frame_count` both hold the stack (1 to 3). `frame_count` is written last. */
byte frames[RECORDS], frame_count[RECORDS], figures[RECORDS];
byte record_count = 1;

/* The index before and after it has grown; `is_new` says which one header.stack_index names. */
byte old_places[PLACES], new_places[PLACES];
bool is_new;
bool index_growing;

byte interned[4];     /* how often each stack was looked up */
byte known_before;    /* bit set: stacks that were in the old index when the building of the new one began */
bool grew;

#define mask(new) ((new) -> PLACES - 1 : FIRST_PLACES - 1)
#define place_of(new, at) ((new) -> new_places[at] : old_places[at])

inline claim_place(new, at, wanted) {
    atomic { /* compare and exchange; `found` is what was there, 0 = the exchange succeeded */
        found = place_of(new, at);
        if
        :: found == 0 && new -> new_places[at] = wanted
        :: found == 0 && !new -> old_places[at] = wanted
        :: else
        fi
    }
}

inline index_put() {
    do
    :: from < record_count ->
       if
       :: frame_count[from] != 0 ->
          at = HASH(frame_count[from]) & mask(true); tries = 0;
          do
          :: tries < PROBE_MAX ->
             claim_place(true, at, from + 1);
             if
             :: found == 0 -> break
             :: else -> at = (at + 1) & mask(true); tries++
             fi
          :: else -> break
          od
       :: else
       fi;
       from++
    :: else -> break
    od;
    at = 0; tries = 0; found = 0
}

inline index_grow() {
    atomic { claimed = !index_growing; index_growing = true };
    if
    :: claimed ->
       if
       :: !is_new ->
          d_step {
              grew = true; at = 0;
              do
              :: at < FIRST_PLACES ->
                 if
                 :: old_places[at] != 0 -> known_before = known_before | (1 << frame_count[old_places[at] - 1])
                 :: else
                 fi;
                 at++
              :: else -> break
              od;
              at = 0
          }
          from = 1;
#ifndef BUG_GROW_WITHOUT_COPY
          index_put();
#endif
          is_new = true;
#ifndef BUG_GROW_WITHOUT_COPY
          index_put();
#endif
          from = 0
       :: else
       fi;
       index_growing = false
    :: else
    fi;
    claimed = false
}

inline add_stack() {
    atomic { assert(record_count < RECORDS); added = record_count; record_count++ }; /* table_append */
#ifndef BUG_PUBLISH_BEFORE_FILL
    frames[added] = key;
    frame_count[added] = key
#endif
}

/* Result: `added`, the number of the record. */
inline stack_table_intern() {
    word = is_new; at = HASH(key) & mask(word); tries = 0; added = 0; is_found = false;
    do
    :: tries < PROBE_MAX ->
       found = place_of(word, at);
       if
       :: found == 0 ->
          if
          :: added == 0 -> add_stack()
          :: else
          fi;
          claim_place(word, at, added + 1);
#ifdef BUG_PUBLISH_BEFORE_FILL
          frames[added] = key;
          frame_count[added] = key;
#endif
          if
          :: found == 0 -> break
          :: else
          fi
#ifdef BUG_LOSER_GOES_ON
          ; found = 0
#endif
       :: else
       fi;
       if
       :: found != 0 ->
          assert(frame_count[found - 1] != 0); /* a record in the index is filled */
#ifdef BUG_HASH_ALONE
          if
          :: HASH(frames[found - 1]) == HASH(key) -> added = found - 1; is_found = true; break
#else
          if
          :: frames[found - 1] == key -> added = found - 1; is_found = true; break
#endif
          :: else
          fi
       :: else
       fi;
       at = (at + 1) & mask(word); tries++
    :: else -> break
    od;
    if
    :: !is_found && added == 0 -> add_stack()
#ifdef BUG_PUBLISH_BEFORE_FILL
       ; frames[added] = key; frame_count[added] = key
#endif
    :: else
    fi;
    at = 0; tries = 0; found = 0;
    if
#ifndef ROOMY
    :: !is_found && added > mask(word) / 2 -> index_grow()
#endif
    :: else
    fi;
    word = false; is_found = false
}

proctype thread(byte first; byte second) {
    byte key, added, at, tries, found, from;
    bool word, is_found, claimed;
    key = first;
    do
    :: key != 0 ->
       stack_table_intern();
       d_step {
           assert(frames[added] == key && frame_count[added] == key); /* the right record, and filled */
           figures[added]++; interned[key]++;
           key = second; second = 0; added = 0
       }
       progress: skip
    :: else -> break
    od
}

/* When all threads have ended. A reader merges records with equal frames: a stack has the sum of their figures. */
inline check_quiescence() {
    byte record, key, sum, used;
    byte at;
    bool is_there, is_full;
    d_step {
        for (key : 1 .. 3) {
            sum = 0; used = 0;
            for (record : 1 .. RECORDS - 1) {
                if
                :: record < record_count && frames[record] == key ->
                   sum = sum + figures[record];
                   used = used + (figures[record] -> 1 : 0)
                :: else
                fi
            }
            assert(sum == interned[key]);
            assert(used <= 1 || grew); /* unless the index grew, a stack has one record with figures */
            is_there = false;
            for (at : 0 .. PLACES - 1) {
                is_there = is_there || (new_places[at] != 0 && frames[new_places[at] - 1] == key)
            }
            /* A stack that was known before the index grew is still found, unless there was no place left for it. */
            is_full = new_places[0] != 0 && new_places[1] != 0 && new_places[2] != 0 && new_places[3] != 0;
            assert(!is_new || !(known_before & (1 << key)) || is_there || is_full)
        }
        assert(!index_growing)
    }
}

init {
    atomic {
        run thread(ASKED_0 / 10, ASKED_0 % 10);
        run thread(ASKED_1 / 10, ASKED_1 % 10);
        run thread(ASKED_2 / 10, ASKED_2 % 10)
    }
    (_nr_pr == 1);
    check_quiescence()
}
