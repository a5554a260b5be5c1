/* The address index (src/core/address_index.c): three threads insert addresses and remove them. Every interleaving.
 *
 * Inlines have the names of the functions in C. A step of the model is one access in C to memory that other threads
 * change. The model's memory is sequentially consistent; the comments at the atomics in C say why weaker orders are
 * enough.
 *
 * The model is smaller than the code: one segment of BUCKETS buckets with one place each, PROBE_MAX buckets that a
 * search visits, and the addresses 1 to 3, whose home buckets are given below. An insertion into a full segment
 * fails; the code then opens another segment, which works in the same way.
 *
 * Each BUG_... switch plants a bug that must be found: see `run`. */
#define BUCKETS   3
#define PROBE_MAX 3
#define ADDRESSES 3
#define NONE      255

/* All three addresses have bucket 0 as their home. With SPREAD, the third has bucket 1, where the second may have
 * to go. */
#ifdef SPREAD
#define HOME(address) ((address) == 3 -> 1 : 0)
#else
#define HOME(address) 0
#endif
#define bucket_at(home, passed) (((home) + (passed)) % BUCKETS)

byte address_in[BUCKETS], slot_in[BUCKETS];
short overflow[BUCKETS];

/* The program and its allocator. */
bool is_given[ADDRESSES + 1]; /* a thread is inside malloc or free with this address */
byte truth[ADDRESSES + 1];    /* the slot that the address has; 0 = it is not allocated */

inline lower_overflow() {
    do
    :: passed > 0 -> passed--; overflow[bucket_at(home, passed)]--
    :: else -> break
    od
}

/* Result: `done`, whether there was a place. */
inline insert_into() {
    home = HOME(address); passed = 0; done = false;
    do
    :: passed < PROBE_MAX ->
       atomic { /* claim_place */
           if
           :: address_in[bucket_at(home, passed)] == 0 -> address_in[bucket_at(home, passed)] = address; done = true
           :: else
           fi
       };
       if
       :: done -> slot_in[bucket_at(home, passed)] = slot; break
       :: else
       fi;
#ifndef BUG_NO_OVERFLOW
       overflow[bucket_at(home, passed)]++;
#endif
       passed++
    :: else -> break
    od;
    if
    :: !done -> lower_overflow()
    :: else
    fi;
    passed = 0; home = 0
}

/* Result: `found`, the slot, or NONE. */
inline remove_from() {
    home = HOME(address); passed = 0; found = NONE;
    do
    :: passed < PROBE_MAX ->
       if
       :: address_in[bucket_at(home, passed)] == address ->
#ifdef BUG_FREE_PLACE_BEFORE_READ
          address_in[bucket_at(home, passed)] = 0;
          found = slot_in[bucket_at(home, passed)];
          lower_overflow(); break
#else
          found = slot_in[bucket_at(home, passed)];
          atomic {
              if
              :: address_in[bucket_at(home, passed)] == address -> address_in[bucket_at(home, passed)] = 0; done = true
              :: else -> found = NONE
              fi
          };
          if
          :: done ->
#ifndef BUG_OVERFLOW_STAYS
             lower_overflow();
#endif
             break
          :: else
          fi
#endif
       :: else
       fi;
       if
       :: overflow[bucket_at(home, passed)] == 0 -> break
       :: else
       fi;
       passed++
    :: else -> break
    od;
    passed = 0; home = 0; done = false
}

/* A thread that calls malloc, whose block is sampled, or frees a block that any thread allocated. */
proctype thread(byte number; byte calls) {
    byte address, slot, passed, home, found;
    bool done;
    do
    :: calls > 0 ->
       if
       :: atomic { /* the allocator gives an address to one thread */
              if
              :: !is_given[1] && truth[1] == 0 -> address = 1
              :: !is_given[2] && truth[2] == 0 -> address = 2
              :: !is_given[3] && truth[3] == 0 -> address = 3
              fi;
              is_given[address] = true; slot = 10 * number + calls
          };
          insert_into();
          /* Other threads may know the address once malloc has returned. */
          d_step { if :: done -> truth[address] = slot :: else fi; is_given[address] = false; done = false }
       :: atomic { /* one thread frees an address */
              if
              :: !is_given[1] && truth[1] != 0 -> address = 1
              :: !is_given[2] && truth[2] != 0 -> address = 2
              :: !is_given[3] && truth[3] != 0 -> address = 3
              fi;
              is_given[address] = true
          };
          remove_from();
          d_step {
              assert(found == truth[address]); /* a live address is found, with its own slot */
              truth[address] = 0; is_given[address] = false; found = 0
          }
       fi;
       d_step { address = 0; slot = 0 }
       calls--;
       progress: skip
    :: else -> break
    od
}

/* When all threads have ended: each address is in the index once or not at all, and the overflow counts are right. */
inline check_quiescence() {
    byte bucket, address, place, home;
    short expected[BUCKETS];
    bool is_there;
    d_step {
        for (address : 1 .. ADDRESSES) {
            is_there = false;
            for (bucket : 0 .. BUCKETS - 1) {
                if
                :: address_in[bucket] == address ->
                   assert(!is_there && slot_in[bucket] == truth[address]);
                   is_there = true;
                   home = HOME(address);
                   do
                   :: home != bucket -> expected[home]++; home = (home + 1) % BUCKETS
                   :: else -> break
                   od
                :: else
                fi
            }
            assert(is_there == (truth[address] != 0))
        }
        /* overflow = the number of addresses that went past the bucket. */
        for (bucket : 0 .. BUCKETS - 1) { assert(overflow[bucket] == expected[bucket]) }
    }
}

#ifndef CALLS_0
#define CALLS_0 2
#define CALLS_1 2
#define CALLS_2 1
#endif

init {
    atomic { run thread(1, CALLS_0); run thread(2, CALLS_1); run thread(3, CALLS_2) }
    (_nr_pr == 1);
    check_quiescence()
}
