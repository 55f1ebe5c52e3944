/*
 * Keyed tickets: the same key always gets the same number, and the numbers have no holes, over
 * registers of which each write changes only one. The sequence's record holds `next` and the (key,
 * number) pairs that its own write allocated. A server that wants to replace that record first
 * makes sure that idem/<key> exists for each of those pairs. An allocation reads the sequence,
 * then, freshly, idem/<key>; only if both lack the key does it compare and swap the record that it
 * read. The outcome of a write is not examined: after anything but OK the server begins again, and
 * finds its number if there is one.
 *
 * Claims: one key never gets two numbers, in the store or as an answer; no number goes to two keys;
 * every number below `next` belongs to a key.
 *
 * The environment: two servers for two keys, which ask for either or both at once, again and again;
 * crashes at any point (a server begins again and remembers nothing); requests land late, more than
 * once, or never; answers are lost; the read of the sequence may be old.
 *
 * Each switch removes one rule, and spin must then find a violation:
 *   BUG_NO_CAS           the sequence is written whatever it holds
 *   BUG_NO_HANDOVER      the record is replaced without writing idem/ for its pairs
 *   BUG_UNSURE_HANDOVER  ... without waiting until idem/ is there
 *   BUG_STALE_IDEM       the read of idem/ may be old
 *   BUG_IDEM_FIRST       idem/ is read before the sequence
 *   BUG_LIST_UNREAD      the pairs in the record are not looked at
 *   BUG_PUT_IDEM         idem/ is written from a record that never landed
 */
#ifndef MAXQ
#define MAXQ 4 /* writes of the sequence in all, at most 6 */
#endif
#ifndef SERVERS
#define SERVERS 2
#endif
#define KEYS 2

typedef record { byte exp; byte next; byte pair[KEYS] }; /* 0: none of this key */
record q[MAXQ + 1];
byte seq, reqs;
byte landed = 1;
byte idem[KEYS];    /* 0: absent */
byte put[KEYS];     /* a create that is under way and may land at any time */
byte number[KEYS];  /* ground truth: what the store first gave a key */
byte given;         /* bit n: number n went to a key */

#ifdef BUG_NO_CAS
#define MATCHES(r) (seq != r)
#else
#define MATCHES(r) (seq == q[r].exp)
#endif

inline allot(k, n) {
    if
    :: n != 0 ->
        assert(number[k] == 0);
        assert(!(given & (1 << n)));
        number[k] = n;
        given = given | (1 << n)
    :: else
    fi
}

inline land(r) {
    d_step {
        reqs >= r && MATCHES(r) ->
        if :: !(landed & (1 << r)) -> allot(0, q[r].pair[0]); allot(1, q[r].pair[1]) :: else fi;
        seq = r;
        landed = landed | (1 << r);
        assert(given == (1 << q[r].next) - 2) /* 1 .. next-1, no holes */
    }
}

active proctype Store() {
end:
    do
    :: land(1)
    :: land(2)
#if MAXQ > 2
    :: land(3)
#endif
#if MAXQ > 3
    :: land(4)
#endif
#if MAXQ > 4
    :: land(5)
#endif
    :: d_step { put[0] != 0 && idem[0] == 0 -> idem[0] = put[0] }
    :: d_step { put[1] != 0 && idem[1] == 0 -> idem[1] = put[1] }
    od
}

inline answer(k, n) {
    assert(n == number[k])
}

inline read_stale(x) {
    if
    :: x = seq
    :: x = 0
    :: landed & 2 -> x = 1
    :: landed & 4 -> x = 2
#if MAXQ > 3
    :: landed & 8 -> x = 3
#endif
    fi
}

inline read_idem(k) {
    atomic {
        if
        :: want & (1 << k) ->
            if
            :: idem[k] != 0 -> answer(k, idem[k]); want = want & ~(1 << k)
#ifdef BUG_STALE_IDEM
            :: true
#endif
            :: idem[k] == 0
            fi
        :: else
        fi
    }
}

/* Create if absent; the answer may be missing, so it is read until it is there. */
inline hand_over(k) {
    if
    :: q[base].pair[k] != 0 ->
        put[k] = q[base].pair[k];
#ifndef BUG_UNSURE_HANDOVER
        if
        :: idem[k] != 0
        :: goto TOP /* crash, or no patience */
        fi
#endif
    :: else
    fi
}

active [SERVERS] proctype Server() {
    byte want, base, n;
TOP:
    atomic {
        want = 0; base = 0; n = 0;
        if :: want = 1 :: want = 2 :: want = 3 fi
    }
#ifdef BUG_IDEM_FIRST
    read_idem(0);
    read_idem(1);
#endif
    atomic {
        read_stale(base);
#ifndef BUG_LIST_UNREAD
        if :: (want & 1) && q[base].pair[0] != 0 -> answer(0, q[base].pair[0]); want = want & ~1 :: else fi;
        if :: (want & 2) && q[base].pair[1] != 0 -> answer(1, q[base].pair[1]); want = want & ~2 :: else fi;
#endif
        if :: want == 0 -> goto TOP :: else fi
    }
#ifndef BUG_IDEM_FIRST
    read_idem(0);
    read_idem(1);
#endif
    if :: want == 0 -> goto TOP :: else fi;
#ifndef BUG_NO_HANDOVER
    hand_over(0);
    hand_over(1);
#endif
    atomic {
        if
        :: reqs < MAXQ ->
            reqs++;
            n = q[base].next;
            if :: n == 0 -> n = 1 :: else fi;
            q[reqs].exp = base;
            if :: want & 1 -> q[reqs].pair[0] = n; n++ :: else fi;
            if :: want & 2 -> q[reqs].pair[1] = n; n++ :: else fi;
            q[reqs].next = n;
            n = reqs
        :: else -> goto DONE
        fi;
#ifdef BUG_PUT_IDEM
        if :: want & 1 -> put[0] = q[n].pair[0] :: else fi;
        if :: want & 2 -> put[1] = q[n].pair[1] :: else fi;
#endif
    }
    if
    :: atomic {
        landed & (1 << n) -> /* OK */
        if :: want & 1 -> answer(0, q[n].pair[0]) :: else fi;
        if :: want & 2 -> answer(1, q[n].pair[1]) :: else fi
    }
    :: true /* conflict, no answer, or a crash */
    fi;
    goto TOP;
DONE:
    skip
}
