/*
 * The generator that threads share, as src/id/shared.c has it: (tick, seq) of the next ID is one
 * word. The quick way adds 1 to it and then looks whether the number may be used; if not it is
 * given back when no thread drew since, or burned. The careful way looks first and compares and
 * swaps. Close exchanges the word with CLOSED. Extend raises `until`. The clock shows every thread
 * what it likes.
 *
 * Claims: no number is used twice; none lies at or beyond `until`; none lies above the `last` that
 * Close reported, also by a thread that drew before Close and comes back after it; none is CLOSED
 * or above.
 *
 * Each switch removes one rule, and spin must then find a violation:
 *   BUG_GIVE_BACK_BLIND  a number is given back though another thread drew since
 *   BUG_CLOSE_TWO_STEPS  Close reads the word and then stores CLOSED
 *   BUG_CLOSE_BY_UNTIL   Close lowers `until` and then reads the word
 *   BUG_CHECK_FIRST      the quick way looks at the number before it draws, not after
 *   BUG_SLOW_NO_CAS      the careful way stores without comparing
 */
#ifndef DRAWS
#define DRAWS 2 /* by each thread */
#endif
#ifndef THREADS
#define THREADS 2
#endif
#define SEQ 2 /* numbers a tick */
#define NT 4  /* ticks 1..NT-1 */
#define CLOSED 64

byte word = SEQ, until = 2, last;
bool closed;
short used; /* bit w: number w was handed out */
byte high;  /* highest tick handed out */

inline hand_out(w) {
    atomic {
        assert((w) < CLOSED);
        assert(!(used & (1 << (w))));
        assert((w) / SEQ < until || closed);
        assert(!closed || (w) / SEQ <= last);
        used = used | (1 << (w));
        if :: (w) / SEQ > high -> high = (w) / SEQ :: else fi
    }
}

active [THREADS] proctype Emit() {
    byte n, now, w, first, count, u;
    do
    :: n < DRAWS ->
        atomic {
            n++;
            do :: now + 1 < NT -> now++ :: break od
        }
        if
        :: true -> /* quick */
#ifdef BUG_CHECK_FIRST
            w = word;
            u = until;
            if :: w / SEQ >= now && w / SEQ < u -> atomic { w = word; word = word + 1 }; hand_out(w); goto NEXT :: else fi;
#else
            atomic { w = word; word = word + 1 };
            if
            :: w / SEQ >= now && w / SEQ < until -> hand_out(w); goto NEXT
            :: true -> /* stale, too far ahead, or beyond the window */
#ifdef BUG_GIVE_BACK_BLIND
                if :: w < CLOSED -> word = w :: else fi
#else
                atomic { if :: w < CLOSED && word == w + 1 -> word = w :: else fi }
#endif
            fi
#endif
        :: true -> skip /* the quick way was not worth trying */
        fi;
CAREFUL:
        w = word;
        if :: w >= CLOSED -> break :: else fi;
        atomic {
            first = w;
            if :: w / SEQ < now -> first = now * SEQ :: else fi
        }
        if :: first / SEQ >= until -> goto NEXT :: else fi;
        atomic {
            count = 1;
            if :: first % SEQ == 0 -> count = 2 :: true fi;
#ifndef BUG_SLOW_NO_CAS
            if :: word != w -> goto CAREFUL :: else fi;
#endif
            word = first + count
        }
        hand_out(first);
        if :: count == 2 -> hand_out(first + 1) :: else fi;
NEXT:   atomic { now = 0; w = 0; first = 0; count = 0; u = 0 }
    :: else -> break
    od
}

active proctype Extend() {
    until = NT
}

active proctype Close() {
    byte w;
#if defined(BUG_CLOSE_BY_UNTIL)
    until = 0;
    atomic { w = word; last = (w - 1) / SEQ; closed = true }
#elif defined(BUG_CLOSE_TWO_STEPS)
    w = word;
    atomic { word = CLOSED; last = (w - 1) / SEQ; closed = true }
#else
    atomic { w = word; word = CLOSED; last = (w - 1) / SEQ; closed = true }
#endif
    assert(high <= last)
}
