/*
 * Closing a generator against threads that are stamping: docs/protocol.md 4.2. `word` is the last
 * tick stamped, two threads share it, and a closer gives the rest of the window back.
 *
 * Claims: no tick is stamped twice; nothing is stamped above the mark that was given back.
 *
 * Each switch removes one rule, and spin must then find a violation:
 *   BUG_NAIVE_CLOSE  Close lowers `until` and then reads `word`, instead of exchanging `word`
 *   BUG_TWO_STEPS    Close reads `word` and then stores CLOSED
 *   BUG_NO_CAS       a thread stores its tick without comparing
 */
#ifndef NT
#define NT 4
#endif
#ifndef THREADS
#define THREADS 2
#endif
#define CLOSED 99

byte word, until = NT, mark, high;
bool closed;
byte stamped[NT + 1];

active [THREADS] proctype Emit() {
    byte seen, t;
    do
    :: seen = word;
       if :: seen == CLOSED -> break :: else fi;
       t = seen + 1;
       if :: t > until -> break :: else fi;
       atomic {
#ifdef BUG_NO_CAS
           if
           :: true ->
#else
           if
           :: word == seen ->
#endif
               word = t;
               stamped[t]++;
               high = t;
               assert(stamped[t] == 1);
               assert(!closed || t <= mark)
           :: else
           fi
       }
    od
}

active proctype Close() {
#if defined(BUG_NAIVE_CLOSE)
    until = 0;
    mark = word;
    closed = true;
#elif defined(BUG_TWO_STEPS)
    mark = word;
    atomic { word = CLOSED; closed = true };
#else
    atomic { mark = word; word = CLOSED; closed = true };
#endif
    assert(high <= mark)
}
