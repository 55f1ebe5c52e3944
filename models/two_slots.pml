/*
 * A handle that changes its slot: invariant I5 of docs/protocol.md. One node with one handle, a
 * rival that takes either slot when it likes, two slots. An ID is (tick, slot, seq), so inside one
 * tick the slot decides the order: a change must go to a later tick, also when a grant turns up
 * that was asked for long ago.
 *
 * Claims: the handle's IDs rise strictly, over all slot changes and over late grants; no tick of a
 * slot is stamped by both nodes.
 *
 * The environment: as in window_lease.pml (late and repeated requests, lost answers, old reads, any
 * clock).
 *
 * Each switch removes one rule, and spin must then find a violation:
 *   BUG_SAME_TICK    a new slot goes on in the tick of the last ID
 *   BUG_LATE_GRANT   a grant begins at the `from` that was asked for, whatever was stamped since
 *   BUG_OLD_UNTIL    after a change the old grant's `until` counts for the new slot
 *   BUG_NO_CAS       a write lands whatever the register holds
 */
#ifndef NT
#define NT 5
#endif
#ifndef MAXQ
#define MAXQ 4 /* requests in all, at most 6 */
#endif
#define WIN 2
#define SEQ 2

typedef request { byte exp; byte owner; byte slot; byte from; byte until };
request q[MAXQ + 1];   /* q[0]: both slots as INIT made them */
byte reg[2], reqs;     /* nonce of the record in each register */
short landed[2];       /* bit r: it was there once */
bool stamped[2 * NT];  /* by the handle */
bool rival[2 * NT];    /* granted to the rival, which may stamp all of it */

#ifdef BUG_NO_CAS
#define MATCHES(r) (reg[q[r].slot] != r)
#else
#define MATCHES(r) (reg[q[r].slot] == q[r].exp)
#endif

/* The rival uses at once whatever it is granted. */
inline land(r) {
    d_step {
        reqs >= r && MATCHES(r) ->
        reg[q[r].slot] = r;
        landed[q[r].slot] = landed[q[r].slot] | (1 << r);
        i = q[r].from;
        do
        :: q[r].owner == 2 && i < q[r].until ->
            assert(!stamped[2 * i + q[r].slot]);
            rival[2 * i + q[r].slot] = true;
            i++
        :: else -> break
        od;
        i = 0
    }
}

active proctype Store() {
    byte i;
end:
    do
    :: land(1)
    :: land(2)
    :: land(3)
    :: land(4)
#if MAXQ > 4
    :: land(5)
#endif
    od
}

inline send(x_exp, x_owner, x_slot, x_from, x_until) {
    reqs++;
    q[reqs].exp = x_exp;
    q[reqs].owner = x_owner;
    q[reqs].slot = x_slot;
    q[reqs].from = x_from;
    q[reqs].until = x_until
}

inline read_stale(x, s) {
    if
    :: x = reg[s]
    :: x = 0
    :: landed[s] & 2 -> x = 1
    :: landed[s] & 4 -> x = 2
    :: landed[s] & 8 -> x = 3
    fi
}

active proctype Rival() {
    byte b, s;
end:
    do
    :: atomic {
        reqs < MAXQ ->
        if :: s = 0 :: s = 1 fi;
        b = reg[s];
        if
        :: q[b].until + WIN <= NT -> send(b, 2, s, q[b].until, q[b].until + WIN)
        :: else
        fi;
        b = 0; s = 0
    }
    od
}

active proctype Handle() {
    byte slot, tick, seq = SEQ - 1, until; /* the last ID, and the end of the window */
    byte conf, pend, b, s, t, n;
    bool any;
    tick = 0; /* never granted */
end:
    do
    /* stamp: in the same tick while it has numbers, else in a later one */
    :: atomic {
        conf != 0 && any && slot == q[conf].slot && tick < until && seq + 1 < SEQ -> seq++
        /* the same slot and tick: rises */
    }
    :: atomic {
        conf != 0 ->
        t = tick + 1;
#ifdef BUG_SAME_TICK
        if :: any && slot != q[conf].slot -> t = tick :: else fi;
#endif
        if :: q[conf].from > t -> t = q[conf].from :: else fi;
#ifdef BUG_LATE_GRANT
        if :: any && slot != q[conf].slot -> t = q[conf].from :: else fi;
#endif
        do :: t + 1 < until -> t++ :: break od;
        if
        :: t < until ->
            n = q[conf].slot;
            assert(!any || t > tick || (t == tick && n > slot));
            assert(!rival[2 * t + n]);
            stamped[2 * t + n] = true;
            tick = t; slot = n; seq = 0; any = true
        :: else
        fi;
        t = 0; n = 0
    }
    /* extend */
    :: atomic {
        conf != 0 && pend == 0 && reqs < MAXQ && q[conf].until < NT ->
        send(conf, 1, q[conf].slot, q[conf].from, q[conf].until + 1);
        pend = reqs
    }
    /* acquire, from any read; also while a grant is held: it was lost, or a request was given up */
    :: atomic {
        reqs < MAXQ ->
        if :: s = 0 :: s = 1 fi;
        read_stale(b, s);
        t = q[b].until;
        if :: tick + 1 > t -> t = tick + 1 :: else fi;
        if
        :: t + WIN <= NT && q[b].owner != 1 -> send(b, 1, s, t, t + WIN); pend = reqs
        :: else
        fi;
        b = 0; s = 0; t = 0
    }
    /* a write of mine is, or was, in the register: the answer came, or a read shows it */
    :: atomic {
        if
        :: landed[q[1].slot] & 2 -> b = 1
        :: landed[q[2].slot] & 4 -> b = 2
        :: landed[q[3].slot] & 8 -> b = 3
        :: landed[q[4].slot] & 16 -> b = 4
        fi;
        if
        :: q[b].owner == 1 && b != conf ->
#ifdef BUG_OLD_UNTIL
            if :: q[b].until > until -> until = q[b].until :: else fi;
#else
            if
            :: conf != 0 && q[conf].slot == q[b].slot && q[conf].from == q[b].from ->
                if :: q[b].until > until -> until = q[b].until :: else fi
            :: else ->
                until = q[b].until
            fi;
#endif
            conf = b
        :: else
        fi;
        if :: pend == b -> pend = 0 :: else fi;
        b = 0
    }
    :: atomic { pend != 0 -> pend = 0 } /* given up: it may still land */
    od
}
