/*
 * The window lease, one slot: docs/protocol.md sections 3 and 5; the node is src/coord/slot.c.
 *
 * Claims, whatever the environment below does:
 *   U   no tick of the slot is stamped twice; with CLONE, none at or beyond the ticks that the
 *       snapshot held or had asked for
 *   I2  an ACQUIRE begins at or above the `until` it replaces, and `until` falls only by a RELEASE
 *   I4  nothing is stamped after Close
 *   no false alarm: TWIN needs CLONE, REGRESSED needs ROLLBACK
 *
 * The environment chooses at every step: the clock (so which tick is stamped, how far a window
 * reaches, and whether a slot counts as reclaimable), crashes that lose all memory, requests that are
 * lost, land late, out of order or again, answers that never arrive, reads from the past. Of a record
 * only its nonce is state, since a nonce is drawn once: the record of a nonce never changes. A request
 * that was sent may land at any later time and more than once; one that is lost just never does.
 *   CLONE     the memory of a node is copied once and resumed in a second process
 *   ROLLBACK  the store forgets its last write once; adapters see that (STORE_CHANGED) and refuse to write
 *             until FENCE; also FENCE without need
 *   STALE     also the reads that decide an outcome may come from the past: alarms may then be false, but
 *             no tick is stamped twice
 *   WIPE      the slot's register is deleted behind firn's back
 *
 * Each switch removes one rule, and spin must then find a violation:
 *   BUG_NO_CAS              a write lands whatever the register holds
 *   BUG_CLOCK_ONLY          ACQUIRE begins at the clock, not at `until`
 *   BUG_USE_BEFORE_ACK      ticks are used when the request is sent
 *   BUG_ADOPT_BY_OWNER      (STALE) "the owner is me" counts as success of the request at hand
 *   BUG_TICKS_OF_LATEST     a nonce of mine is found, but the ticks of the last request are taken
 *   BUG_STALE_OUTCOME       the read that decides an outcome may come from the past, and alarms are believed
 *   BUG_EMIT_AFTER_RELEASE  stamping goes on while a RELEASE is under way
 *   BUG_RELEASE_AT_LAST     RELEASE gives back `last` too
 *   BUG_RELEASE_REOPENS     a RELEASE without answer is taken for not done, the generator opens again
 *   BUG_TWIN_GOES_ON        (CLONE) another process writes as me, and I stay
 *   BUG_NO_FENCE            (ROLLBACK) the store is used on as it came back
 *   BUG_LOW_FENCE           (ROLLBACK) FENCE frees the slot but does not lift `until`
 *   BUG_ABSENT_IS_FREE      (WIPE) a missing register is taken for a free slot
 */
#ifndef NT
#define NT 6 /* ticks 0..NT-1 */
#endif
#ifndef MAXI
#define MAXI 3 /* incarnations in all */
#endif
#ifndef MAXQ
#define MAXQ 3 /* requests in all, at most 6 */
#endif
#ifndef WIN
#define WIN 2 /* ticks of an ACQUIRE */
#endif
#define FENCE_REQ 7 /* the nonce of FENCE's record */
#define ABSENT 8    /* a register that is not there */
#define KINDS 9

mtype = { ACQUIRE, EXTEND, RELEASE };

typedef request { byte exp; byte owner; byte epoch; byte from; byte until; mtype kind };
request q[KINDS];  /* q[0] is the record that INIT made */
byte slot;         /* nonce of the record in the register */
short landed = 1;  /* bit r: q[r] was in the register at some time; all of these may be read */
byte reqs, incs;
byte watched;      /* one tick, chosen at the start, stands for all */
bool stamped;      /* it was stamped */
byte excused;      /* CLONE: ticks below may repeat */
#ifdef CLONE
byte c_inc, c_base, c_conf, c_pend, c_last, c_until;
short c_mine;
bool c_taken;
#endif
#ifdef ROLLBACK
bool lost, fenced;
#endif

#if defined(ROLLBACK) && !defined(BUG_NO_FENCE)
#define REFUSES (lost && !fenced)
#else
#define REFUSES false
#endif

#ifdef BUG_NO_CAS
#define MATCHES(r) (slot != r)
#else
#define MATCHES(r) (slot == q[r].exp)
#endif

#define GRANTS(r) (q[r].kind == ACQUIRE || q[r].kind == EXTEND)

inline land(r) {
    d_step {
        reqs >= r && MATCHES(r) && !REFUSES ->
#ifndef BUG_NO_CAS
        assert(slot == ABSENT || q[r].kind != ACQUIRE || q[r].from >= q[slot].until);
        assert(slot == ABSENT || q[r].kind == RELEASE || q[r].until >= q[slot].until);
#endif
        slot = r;
        landed = landed | (1 << r)
    }
}

proctype Store() {
end:
    do
    :: land(1)
    :: land(2)
    :: land(3)
#if MAXQ > 3
    :: land(4)
#endif
#if MAXQ > 4
    :: land(5)
#endif
#ifdef ROLLBACK
    :: d_step { !lost && !fenced && slot != 0 -> lost = true; slot = q[slot].exp }
#ifndef BUG_NO_FENCE
    :: d_step {
        !fenced && reqs > 0 ->
        fenced = true;
        q[FENCE_REQ].exp = slot;
        q[FENCE_REQ].epoch = q[slot].epoch + 1;
        q[FENCE_REQ].until = q[slot].until;
#ifndef BUG_LOW_FENCE
        /* The floor lies above all that was ever asked for: window, drift and twice the skew above
         * the highest clock. */
        if :: reqs >= 1 && q[1].until > q[FENCE_REQ].until -> q[FENCE_REQ].until = q[1].until :: else fi;
        if :: reqs >= 2 && q[2].until > q[FENCE_REQ].until -> q[FENCE_REQ].until = q[2].until :: else fi;
        if :: reqs >= 3 && q[3].until > q[FENCE_REQ].until -> q[FENCE_REQ].until = q[3].until :: else fi;
#if MAXQ > 3
        if :: reqs >= 4 && q[4].until > q[FENCE_REQ].until -> q[FENCE_REQ].until = q[4].until :: else fi;
#endif
#if MAXQ > 4
        if :: reqs >= 5 && q[5].until > q[FENCE_REQ].until -> q[FENCE_REQ].until = q[5].until :: else fi;
#endif
#endif
        q[FENCE_REQ].from = q[FENCE_REQ].until;
        slot = FENCE_REQ;
        landed = landed | (1 << FENCE_REQ)
    }
#endif
#endif
#ifdef WIPE
    :: d_step { slot != ABSENT -> slot = ABSENT; landed = landed | (1 << ABSENT) }
#endif
    od
}

/* Anything that the register ever held. */
inline read_stale(x) {
    if
    :: x = slot
    :: landed & 1 -> x = 0
    :: landed & 2 -> x = 1
    :: landed & 4 -> x = 2
    :: landed & 8 -> x = 3
#if MAXQ > 3
    :: landed & 16 -> x = 4
#endif
#if MAXQ > 4
    :: landed & 32 -> x = 5
#endif
    fi
}

inline read_outcome(x) {
#if defined(STALE) || defined(BUG_STALE_OUTCOME)
    read_stale(x)
#else
    x = slot
#endif
}

/* Remembered before it leaves. */
inline send(x_kind, x_exp, x_owner, x_epoch, x_from, x_until) {
    reqs++;
    pend = reqs;
    q[pend].kind = x_kind;
    q[pend].exp = x_exp;
    q[pend].owner = x_owner;
    q[pend].epoch = x_epoch;
    q[pend].from = x_from;
    q[pend].until = x_until;
    mine = mine | (1 << pend)
}

/* This write of mine is, or was, in the register. `last` stays: a grant that turns up late begins above
 * what was stamped since. */
inline confirm(r) {
    if
    :: conf != 0 && q[conf].epoch == q[r].epoch ->
        if :: q[r].until > until -> until = q[r].until :: else fi
    :: else ->
        if :: q[r].from > next -> next = q[r].from :: else fi;
        until = q[r].until
    fi;
    conf = r;
    pend = 0;
    base = 0;
    b = 0
}

/* One ID at tick `next`, or time passes. Two IDs in one tick differ in their sequence number, so a tick
 * counts once. */
inline stamp() {
    atomic {
        next < until ->
        if
        :: next == watched ->
            assert(!stamped || watched < excused);
            stamped = true
        :: true /* the clock was elsewhere */
        fi;
        next++
    }
}

inline forget() {
    inc = 0; next = 0; until = 0; conf = 0; pend = 0; base = 0; mine = 0; b = 0
}

#ifdef CLONE
/* Everything granted or asked for at the snapshot may be used by both. */
inline excuse(r) {
    if :: (mine & (1 << r)) && GRANTS(r) && q[r].until > excused -> excused = q[r].until :: else fi
}
inline snapshot() {
    atomic {
        !c_taken && inc != 0 ->
        c_taken = true;
        c_inc = inc; c_base = base; c_conf = conf; c_pend = pend; c_mine = mine;
        c_last = next; c_until = until;
        excuse(1); excuse(2); excuse(3);
#if MAXQ > 3
        excuse(4);
#endif
        if :: until > excused -> excused = until :: else fi
    }
}
#endif

proctype Node(byte before) {
    byte inc;         /* this incarnation; 0 none */
    byte next, until; /* ticks confirmed and not stamped; until 0 is closed */
    byte conf;        /* confirmed_: my last confirmed record; 0 when not holding */
    byte base;        /* the record that an ACQUIRE replaces */
    byte pend;        /* the write that is waited for */
    short mine;       /* every nonce that this incarnation drew */
    byte b;

START:
    atomic {
        forget();
        if
        :: incs < MAXI && incs >= before -> incs++; inc = incs; goto TRY
#ifdef CLONE
        :: c_taken && c_inc != 0 -> /* the copy resumes */
            inc = c_inc; base = c_base; conf = c_conf; pend = c_pend; mine = c_mine;
            next = c_last; until = c_until;
            c_inc = 0; c_base = 0; c_conf = 0; c_pend = 0; c_mine = 0; c_last = 0; c_until = 0;
            if
            :: pend == 0 && conf == 0 -> goto LOOK
            :: pend == 0 && conf != 0 -> goto RUN
            :: pend != 0 && q[pend].kind == ACQUIRE -> goto ASKED
            :: pend != 0 && q[pend].kind != ACQUIRE -> goto EXTENDED
            fi
#endif
        :: incs == MAXI -> goto DONE
        fi
    }

LOOK: /* for another slot, which the model takes for this one again */
    do
    :: atomic { goto TRY }
    :: stamp() /* what a fenced node still has */
#ifdef CLONE
    :: snapshot()
#endif
    :: atomic { goto START }
    od;

TRY: /* the scan and the first read, both perhaps old, and the write that is built on them */
    atomic {
        read_stale(base);
#ifdef BUG_ABSENT_IS_FREE
        if :: base == ABSENT -> goto ASK :: else fi;
#else
        if :: base == ABSENT -> base = 0; goto HALTED :: else fi;
#endif
        if
        :: (mine & (1 << base)) && GRANTS(base) -> confirm(base); goto RUN /* one given up has landed */
        :: else -> goto ASK
        fi
    }

ASK:
    atomic {
        b = q[base].until;
#ifdef BUG_CLOCK_ONLY
        b = 0;
#endif
        if :: next > b -> b = next :: else fi; /* from = max(until, F, last + 1) */
        if :: b + WIN + 1 < NT -> b++ :: true fi;
        if
        :: reqs < MAXQ && b + WIN < NT ->
            send(ACQUIRE, base, inc, q[base].epoch + 1, b, b + WIN);
            b = 0
        :: else -> base = 0; b = 0; goto HALTED
        fi;
#ifdef BUG_USE_BEFORE_ACK
        next = q[pend].from; until = q[pend].until
#endif
    }

ASKED:
    do
    :: atomic { landed & (1 << pend) -> confirm(pend); goto RUN }
    :: atomic {
        read_outcome(b);
        if
        :: b == ABSENT -> base = 0; pend = 0; b = 0; goto HALTED
#ifdef BUG_ADOPT_BY_OWNER
        :: b != ABSENT && q[b].owner == inc ->
            next = q[pend].from; until = q[b].until; conf = b; pend = 0; base = 0; b = 0; goto RUN
#endif
#ifdef BUG_TICKS_OF_LATEST
        :: b != ABSENT && (mine & (1 << b)) && GRANTS(b) -> confirm(pend); goto RUN
#else
        :: b != ABSENT && (mine & (1 << b)) && GRANTS(b) -> confirm(b); goto RUN
#endif
        :: else ->
            pend = 0;
            if
            :: b == base -> b = 0; goto ASK /* not applied yet */
            :: b != base && q[b].owner == inc -> goto TWIN
            :: else -> base = 0; b = 0; goto LOOK
            fi
        fi
    }
    :: stamp()
#ifdef CLONE
    :: snapshot()
#endif
    :: atomic { goto START }
    od;

RUN:
    do
    :: stamp()
    :: atomic {
        reqs < MAXQ && q[conf].until + 1 < NT -> /* until = max(F, last) + window */
        send(EXTEND, conf, inc, q[conf].epoch, q[conf].from, q[conf].until + 1);
#ifdef BUG_USE_BEFORE_ACK
        until = q[pend].until;
#endif
        goto EXTENDED
    }
    :: atomic { goto FREE }
#ifdef CLONE
    :: snapshot()
#endif
    :: atomic { goto START }
    od;

EXTENDED:
    do
    :: atomic { landed & (1 << pend) -> confirm(pend); goto RUN }
    :: atomic {
        read_outcome(b);
        if
        :: b == ABSENT -> conf = 0; pend = 0; b = 0; goto HALTED
#ifdef BUG_TICKS_OF_LATEST
        :: b != ABSENT && (mine & (1 << b)) && b > conf -> confirm(pend); goto RUN
#else
        :: b != ABSENT && (mine & (1 << b)) && b > conf -> confirm(b); goto RUN
#endif
        :: b == conf -> pend = 0; b = 0; goto RUN /* not applied yet */
        :: else ->
            pend = 0;
            if
            :: (mine & (1 << b)) || q[b].epoch < q[conf].epoch ||
               (q[b].epoch == q[conf].epoch && q[b].owner != inc) -> goto REGRESSED
            :: !(mine & (1 << b)) && q[b].epoch >= q[conf].epoch && q[b].owner == inc -> goto TWIN
            :: else -> conf = 0; b = 0; goto LOOK /* FENCED */
            fi
        fi
    }
    :: stamp()
    :: atomic { goto FREE } /* with an EXTEND still open */
#ifdef CLONE
    :: snapshot()
#endif
    :: atomic { goto START }
    od;

FREE: /* Close, then RELEASE; with and without give_back */
    atomic {
        if
        :: reqs < MAXQ ->
            b = q[conf].from;
            if :: next > b -> b = next :: else fi;
#ifdef BUG_RELEASE_AT_LAST
            if :: b > 0 -> b-- :: else fi;
#endif
            if
            :: send(RELEASE, conf, 0, q[conf].epoch + 1, q[conf].from, b)
            :: b < q[conf].until -> send(RELEASE, conf, 0, q[conf].epoch + 1, q[conf].from, q[conf].until)
            fi;
            b = 0;
#ifndef BUG_EMIT_AFTER_RELEASE
            until = 0; /* `next` stays: a second RELEASE needs it */
#endif
            goto RELEASED
        :: else -> goto START
        fi
    }

RELEASED:
    do
    :: atomic {
        read_outcome(b); /* also stands for the answer */
        pend = 0;
#ifdef BUG_RELEASE_REOPENS
        if :: b == conf -> until = q[conf].until; b = 0; goto RUN :: else fi;
#endif
        if
        :: b != ABSENT && (mine & (1 << b)) && GRANTS(b) -> conf = b; b = 0; goto FREE /* still mine */
        :: else -> goto START
        fi
    }
#ifdef BUG_EMIT_AFTER_RELEASE
    :: stamp()
#endif
    :: atomic { goto START }
    od;

TWIN:
    atomic {
#if !defined(CLONE) && !defined(STALE)
        assert(false);
#endif
#ifdef BUG_TWIN_GOES_ON
        conf = b; until = q[b].until; base = 0; b = 0; goto RUN;
#endif
        goto START /* closed; slot_reborn() */
    }

REGRESSED: /* what is confirmed stays usable; goes on as a new incarnation after FENCE */
    atomic {
#if !defined(ROLLBACK) && !defined(STALE)
        assert(false);
#endif
        conf = 0; base = 0; b = 0; mine = 0;
        if
        :: incs < MAXI -> incs++; inc = incs; goto LOOK
        :: else
        fi
    }

HALTED: /* an operator has to come, or the bound of the model is reached; finishes what is confirmed */
    do
    :: stamp()
    :: atomic { goto START }
    od;
DONE:
    skip
}

init {
    atomic {
        do
        :: watched + 1 < NT -> watched++
        :: break
        od;
        run Store();
        run Node(0);
        run Node(1) /* they are alike: the second starts second */
    }
}
