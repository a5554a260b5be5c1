/* The live table (src/core/live_table.[ch]) with its users in src/record/sample/recorder.c, and its readers:
 * live_table_copy (core/live_table.h) and recording_copy_stack (core/recording_copy.h). Several threads call malloc
 * and free. Every interleaving.
 *
 * Inlines have the names of the functions in C. A step of the model is one access in C to memory that other threads
 * change. The model's memory is sequentially consistent: live_entry.pml has the weak orders of an entry.
 *
 * The model is smaller than the code:
 *   - Slots are made two at a time, at most SLOTS.
 *   - A thread may give its list to the pool at any moment, not only when the list is long. So `spare_count` and
 *     `length`, which are approximate, are left out.
 *   - Removal counts have two bits.
 *   - No two allocations have equal keys. In C a key is an address and 16 bits of the nanosecond of birth. A reader
 *     would be fooled if, during one copy, the same address were freed, allocated, sampled and given the same slot,
 *     with the same 16 bits.
 *
 * Switches, chosen by `run`: CALLS_0 to CALLS_2, how many calls of malloc or free each of three threads makes;
 * READERS; POOL, two free slots are in the pool at the start, as two chains; CHAIN, the same as one chain; SIGNALS,
 * thread 0 is interrupted at any point by a handler that calls malloc or free; TOLD_TWICE, two threads may report
 * the same free.
 *
 * Each BUG_... switch plants a bug that must be found: see `run`. */
#ifndef CALLS_0
#define CALLS_0 2
#endif
#ifndef CALLS_1
#define CALLS_1 2
#endif
#ifndef CALLS_2
#define CALLS_2 0
#endif
#ifndef READERS
#define READERS 1
#endif
#ifndef SLOTS
#define SLOTS 4
#endif
#define THREADS    3
#define LIVE_FIRST 2
#define ADDRESSES  2
#define THREAD_0   1 /* the process number (_pid) of thread 0, which is run first */
#ifdef BUG_NO_REMOVAL_COUNT
#define REMOVED(count) (count)
#else
#define REMOVED(count) (((count) + 1) & 3)
#endif

/* struct live_entry. The links of a free slot, `next` and `next_chain`, lie in the place of `size`. All fields of an
 * allocation hold its number, so that a mixture of two entries shows. */
byte key[SLOTS], next[SLOTS], next_chain[SLOTS], birth[SLOTS], stack[SLOTS];

byte made;                      /* table.count */
byte pool_slot, pool_removals;  /* live_pool */
byte spare_slot[THREADS], spare_removals[THREADS];

byte alloc_objects, freed_objects, dropped;

/* The program. */
#define BUSY 254
byte block_slot[ADDRESSES]; /* slot + 1 of the block at an address; 0 = none; BUSY = inside malloc or free */
byte allocations;           /* how many there were: the number of the last one */

/* Whether a thread owns a slot. Not in the code: the assertions need it. */
bool is_owned[SLOTS];
bool handler_runs;

/* ---- the pool ---- */

inline pool_give(chain) {
    d_step { seen_slot = pool_slot; seen_removals = pool_removals }
    do
    :: next_chain[chain - 1] = seen_slot;
       atomic {
           if
           :: pool_slot == seen_slot && pool_removals == seen_removals -> pool_slot = chain; break
           :: else -> seen_slot = pool_slot; seen_removals = pool_removals
           fi
       }
    od;
    chain = 0
}

/* Result: `slot`, the slot + 1, or 0 for none. */
inline pool_take() {
    d_step { seen_slot = pool_slot; seen_removals = pool_removals }
    do
    :: seen_slot == 0 -> slot = 0; break
    :: else ->
       rest = next_chain[seen_slot - 1];
       atomic {
           if
           :: pool_slot == seen_slot && pool_removals == seen_removals ->
              pool_slot = rest; pool_removals = REMOVED(pool_removals); slot = seen_slot; break
#ifdef BUG_HEAD_NOT_READ_AGAIN
           :: else
#else
           :: else -> seen_slot = pool_slot; seen_removals = pool_removals
#endif
           fi
       }
    od;
    rest = 0; seen_slot = 0; seen_removals = 0
}

/* ---- a thread's list ---- */

inline list_put(first, last) {
    d_step { seen_slot = spare_slot[me]; seen_removals = spare_removals[me] }
    do
    :: next[last - 1] = seen_slot;
       atomic {
           if
           :: spare_slot[me] == seen_slot && spare_removals[me] == seen_removals -> spare_slot[me] = first; break
           :: else -> seen_slot = spare_slot[me]; seen_removals = spare_removals[me]
           fi
       }
    od;
    seen_slot = 0; seen_removals = 0
}

inline make_slots() {
    atomic {
        if
        :: made + LIVE_FIRST <= SLOTS -> slot = made + 1; made = made + LIVE_FIRST
        :: else -> slot = 0
        fi
    };
    if
    :: slot != 0 -> list_put(slot + 1, slot + 1)
    :: else
    fi
}

inline take_elsewhere() {
    pool_take();
    if
    :: slot == 0 -> make_slots()
    :: else ->
       rest = next[slot - 1];
       seen_removals = spare_removals[me]; /* HEAD_COUNT */
       if
       :: rest != 0 ->
          atomic {
              if
#ifdef BUG_LIST_REPLACED
              :: true -> spare_slot[me] = rest; goto_last = 0
#else
              :: spare_slot[me] == 0 && spare_removals[me] == seen_removals -> spare_slot[me] = rest; goto_last = 0
              :: else -> goto_last = slot
#endif
              fi
          };
          if
          :: goto_last != 0 -> /* the list is no longer empty: a signal handler has given slots back */
             do
             :: next[goto_last - 1] != 0 -> goto_last = next[goto_last - 1]
             :: else -> break
             od;
             list_put(rest, goto_last)
          :: else
          fi
       :: else
       fi
    fi;
    rest = 0; goto_last = 0; seen_removals = 0
}

inline live_table_take() {
    d_step { seen_slot = spare_slot[me]; seen_removals = spare_removals[me] }
    do
    :: seen_slot == 0 -> take_elsewhere(); break
    :: else ->
       rest = next[seen_slot - 1];
       atomic {
           if
           :: spare_slot[me] == seen_slot && spare_removals[me] == seen_removals ->
              spare_slot[me] = rest; spare_removals[me] = REMOVED(spare_removals[me]); slot = seen_slot; break
           :: else -> seen_slot = spare_slot[me]; seen_removals = spare_removals[me]
           fi
       }
    od;
    atomic {
        rest = 0; seen_slot = 0; seen_removals = 0;
        if
        :: slot != 0 ->
           assert(!is_owned[slot - 1] && key[slot - 1] == 0); /* given out twice */
           is_owned[slot - 1] = true
        :: else
        fi
    }
}

inline live_table_give_all() {
    d_step { seen_slot = spare_slot[me]; seen_removals = spare_removals[me] }
    do
    :: seen_slot == 0 -> break
    :: else ->
       atomic {
           if
           :: spare_slot[me] == seen_slot && spare_removals[me] == seen_removals ->
              spare_slot[me] = 0; spare_removals[me] = REMOVED(spare_removals[me]); rest = seen_slot; break
           :: else -> seen_slot = spare_slot[me]; seen_removals = spare_removals[me]
           fi
       }
    od;
    if
    :: rest != 0 -> pool_give(rest)
    :: else
    fi;
    seen_slot = 0; seen_removals = 0
}

inline live_table_give() {
    d_step { assert(is_owned[slot - 1]); is_owned[slot - 1] = false } /* freed twice */
    if
    :: next[slot - 1] = 0; rest = slot; pool_give(rest) /* a thread without a record */
    :: list_put(slot, slot);
       if
       :: live_table_give_all()
       :: true
       fi
    fi
}

/* ---- recorder.c ---- */

inline sample_store() {
    next[slot - 1] = number; next_chain[slot - 1] = number; /* size */
    birth[slot - 1] = number;
    stack[slot - 1] = number
}

inline counter_add(counter) {
#ifdef BUG_COUNTER_ALONE
    old = counter; counter = old + 1; old = 0
#else
    counter++
#endif
}

/* malloc of a sampled block: recorder_insert, then recorder_count. */
inline recorder_sample() {
    live_table_take();
    if
    :: slot == 0 -> dropped++; block_slot[address] = 0
    :: else ->
#ifdef BUG_PUBLISH_BEFORE_FILL
       key[slot - 1] = number;
       sample_store();
#else
       sample_store();
       key[slot - 1] = number; /* live_table_publish */
#endif
       counter_add(alloc_objects); /* events_allocate */
       block_slot[address] = slot
    fi;
    slot = 0; number = 0
}

/* free of a block whose mark holds its slot: recorder_forget, the allocator's free, recorder_freed. */
inline recorder_forget_marked() {
#ifndef BUG_GIVE_BEFORE_WITHDRAW
    key[slot - 1] = 0; /* live_table_withdraw */
#endif
    block_slot[address] = 0;
    counter_add(freed_objects); /* events_free */
    live_table_give();
#ifdef BUG_GIVE_BEFORE_WITHDRAW
    key[slot - 1] = 0;
#endif
    slot = 0
}

/* A free that two threads may report at once: recorder_forget_slot, recorder_freed. `told` is the allocation that is
 * meant. In C it is known by its address, which malloc does not give out again before it is freed. */
inline recorder_forget_slot() {
    number = key[slot - 1];
    if
    :: number == told ->
       atomic { /* live_table_withdraw_once */
           if
#ifdef BUG_WITHDRAW_WITHOUT_COMPARE
           :: true -> key[slot - 1] = 0
#else
           :: key[slot - 1] == number -> key[slot - 1] = 0
           :: else -> number = 0
#endif
           fi
       };
       if
       :: number != 0 -> counter_add(freed_objects); live_table_give()
       :: else
       fi
    :: else
    fi;
    slot = 0; number = 0; told = 0
}

/* ---- the processes of the model ---- */

inline program_call() {
    if
    :: atomic { /* malloc gives an address to this thread alone */
           if
           :: block_slot[0] == 0 -> address = 0
           :: block_slot[0] != 0 && block_slot[1] == 0 -> address = 1
           fi;
           block_slot[address] = BUSY; allocations++; number = allocations
       };
       recorder_sample()
    :: atomic {
           if
           :: block_slot[0] != 0 && block_slot[0] != BUSY -> address = 0
           :: block_slot[1] != 0 && block_slot[1] != BUSY -> address = 1
           fi;
           slot = block_slot[address];
#ifdef TOLD_TWICE
           told = key[slot - 1]; old = slot
       };
       recorder_forget_slot();
       atomic { if :: block_slot[address] == old -> block_slot[address] = 0 :: else fi; old = 0 }
#else
           block_slot[address] = BUSY
       };
       recorder_forget_marked()
#endif
    fi;
    address = 0
}

#define LOCALS                                                                                                 \
    byte slot, rest, seen_slot, seen_removals, goto_last, number, address, told, old

#ifdef SIGNALS
#define UNLESS_INTERRUPTED provided(!handler_runs || _pid != THREAD_0)
#else
#define UNLESS_INTERRUPTED
#endif

proctype thread(byte me; byte calls) UNLESS_INTERRUPTED {
    LOCALS;
    do
    :: calls > 0 -> program_call(); calls--; progress: skip
    :: else -> break
    od
}

#ifdef SIGNALS
/* A signal handler of thread 0: comes between any two of its steps, and runs to its end before thread 0 goes on. */
proctype handler(byte me) {
    LOCALS;
    atomic { handler_runs = true };
    program_call();
    atomic { handler_runs = false }
}
#endif

/* A reader: live_table_copy of every slot, then the stack's counters. */
proctype reader() {
    byte at, word, freed, allocated, attempts;
    bool torn;
    do
    :: at < made ->
       attempts = 0;
       do
       :: attempts < 2 ->
          attempts++;
          word = key[at];
          if
          :: word == 0 -> break
          :: else
          fi;
          torn = torn || next[at] != word;
          torn = torn || next_chain[at] != word;
          torn = torn || birth[at] != word;
          torn = torn || stack[at] != word;
#ifdef BUG_READER_WITHOUT_RECHECK
          assert(!torn); break
#else
          if
          :: key[at] == word -> assert(!torn); break
          :: else
          fi;
          torn = false
#endif
       :: else -> break
       od;
       word = 0; torn = false; at++;
       progress: skip
    :: else -> break
    od;
    at = 0; attempts = 0;
    /* recording_copy_stack: what was freed is read before what was allocated. */
#ifdef BUG_READS_ALLOCATED_FIRST
    allocated = alloc_objects;
    freed = freed_objects;
#else
    freed = freed_objects;
    allocated = alloc_objects;
#endif
    assert(freed <= allocated)
}

/* When all threads have ended. */
inline check_quiescence() {
    byte slot, live, found[SLOTS], chain, me;
    d_step {
        for (slot : 0 .. SLOTS - 1) {
            if
            :: key[slot] != 0 -> live++; found[slot]++; assert(is_owned[slot])
            :: else
            fi
        }
        assert(alloc_objects - freed_objects == live); /* no event is lost or counted twice */
        chain = pool_slot;
        do
        :: chain != 0 ->
           slot = chain;
           do
           :: slot != 0 -> found[slot - 1]++; assert(found[slot - 1] == 1); slot = next[slot - 1]
           :: else -> break
           od;
           chain = next_chain[chain - 1]
        :: else -> break
        od;
        for (me : 0 .. THREADS - 1) {
            slot = spare_slot[me];
            do
            :: slot != 0 -> found[slot - 1]++; assert(found[slot - 1] == 1); slot = next[slot - 1]
            :: else -> break
            od
        }
        for (slot : 0 .. SLOTS - 1) {
            assert(slot >= made || found[slot] == 1) /* each slot is live, or in one list, once */
        }
    }
}

init {
    atomic {
#ifdef POOL
        made = LIVE_FIRST; pool_slot = 2; next_chain[1] = 1;
#endif
#ifdef CHAIN
        made = LIVE_FIRST; pool_slot = 1; next[0] = 2;
#endif
        run thread(0, CALLS_0);
#if CALLS_1
        run thread(1, CALLS_1);
#endif
#if CALLS_2
        run thread(2, CALLS_2);
#endif
#if READERS
        run reader();
#endif
#ifdef SIGNALS
        run handler(0)
#endif
    }
    (_nr_pr == 1);
    check_quiescence()
}
