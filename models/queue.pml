/*
 * An election or a lock: one register holds the line of candidates, each with the token that it
 * drew on joining, and the head leads (src/coord/queue.c). A candidate stands in line with a
 * membership: a register that it renews, valid for a time by its own clock, and freed by other
 * processes only when that time is over for sure.
 *
 * Claims: at most one candidate believes to lead; tokens rise from leader to leader, so that none
 * leads twice with one.
 *
 * The environment: reads of the line and of memberships may be old; writes land late, again, or
 * never; answers are lost; memberships run out at any time, are renewed if no process freed them,
 * or begin again with another epoch. That a membership is freed only after its holder counts it as
 * over is assumed here: it is the one place where time comes in.
 *
 * Each switch removes one rule, and spin must then find a violation:
 *   BUG_NO_CAS         the line is written whatever it holds
 *   BUG_EVICT_UNASKED  the one before is taken out without a look at its membership
 *   BUG_EARLY_STRIKE   a membership is freed while its holder counts on it
 *   BUG_STRIKE_BLIND   a membership is freed although it was renewed since it was looked at
 *   BUG_LEADS_ON       a leader whose membership ran out goes on leading
 *   BUG_OLD_PLACE      a place that was left is taken up again from an old read
 *   BUG_LEAVE_FIRST    a leader leaves the line before its work has stopped
 *   BUG_SAME_TOKEN     joining does not count the tokens up
 */
#ifndef MAXQ
#define MAXQ 4 /* writes of the line in all, at most 6 */
#endif
#ifndef MAXE
#define MAXE 2 /* epochs of a membership */
#endif
#ifndef MAXR
#define MAXR 1 /* renewals of each membership after it had run out */
#endif
#define NC 2   /* candidates */
#define LINE 3 /* places: a candidate may stand in it with an old epoch and a new one */

typedef record { byte exp; byte next; byte who[LINE]; byte epoch[LINE]; byte token[LINE] }; /* token 0: empty */
record q[MAXQ + 1];
byte line, reqs;
byte landed = 1;
typedef membership { byte epoch; bool free; byte version; bool valid; byte renewed };
membership m[NC];
byte strike[NC];   /* a freeing of m[i] under way, for this version + 1; 0 none */
bool leads[NC];
byte highest;      /* token that any candidate led with */

#ifdef BUG_NO_CAS
#define MATCHES(r) (line != r)
#else
#define MATCHES(r) (line == q[r].exp)
#endif

#ifdef BUG_STRIKE_BLIND
#define UNCHANGED(i) true
#else
#define UNCHANGED(i) (m[i].version + 1 == strike[i])
#endif

#ifdef BUG_OLD_PLACE
#define NOT_LEFT(token) true
#else
#define NOT_LEFT(token) (token > led)
#endif

#ifdef BUG_EARLY_STRIKE
#define IS_OVER(i) true
#else
#define IS_OVER(i) (!m[i].valid)
#endif

inline land(r) {
    d_step { reqs >= r && MATCHES(r) -> line = r; landed = landed | (1 << r) }
}

inline fade(i) { /* its own clock says that the membership is over: a leader with it stops */
    d_step {
        m[i].valid ->
        m[i].valid = false;
#ifndef BUG_LEADS_ON
        leads[i] = false
#endif
    }
}

inline freed(i) {
    d_step {
        strike[i] != 0 && UNCHANGED(i) && !m[i].free -> m[i].free = true; strike[i] = 0
    }
}

active proctype World() {
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
    :: fade(0)
    :: fade(1)
    :: freed(0)
    :: freed(1)
    od
}

inline read_line(stale) {
    if
    :: base = line
    :: stale -> base = 0
    :: stale && (landed & 2) -> base = 1
    :: stale && (landed & 4) -> base = 2
    :: stale && (landed & 8) -> base = 3
    fi
}

/* Where (who, epoch) stands in q[base]; LINE: nowhere. */
inline find(w, e, out) {
    out = 0;
    do
    :: out < LINE && !(q[base].token[out] != 0 && q[base].who[out] == w && q[base].epoch[out] == e) -> out++
    :: else -> break
    od
}

/* The line of q[base] without places a and b, into q[reqs]. */
inline copy_without(a, b) {
    reqs++;
    q[reqs].exp = base;
    q[reqs].next = q[base].next;
    if :: q[reqs].next == 0 -> q[reqs].next = 1 :: else fi;
    k = 0; n = 0;
    do
    :: k < LINE ->
        if
        :: k != a && k != b && q[base].token[k] != 0 ->
            q[reqs].who[n] = q[base].who[k];
            q[reqs].epoch[n] = q[base].epoch[k];
            q[reqs].token[n] = q[base].token[k];
            n++
        :: else
        fi;
        k++
    :: else -> break
    od
}

inline tidy() { base = 0; at = 0; k = 0; n = 0 }

proctype Candidate(byte me) {
    byte epoch, led, base, at, k, n, before, seen;
    bool gone;

    /* A first membership. */
    atomic { m[me].epoch = 1; m[me].valid = true; epoch = 1 }
end:
    do
    /* The membership: renewed if no process freed it, or begun again. */
    :: atomic {
        !m[me].valid && !m[me].free && m[me].renewed < MAXR ->
        m[me].renewed++; m[me].version++; m[me].valid = true
    }
    :: atomic {
        !m[me].valid && m[me].free && m[me].epoch < MAXE ->
        m[me].epoch++; m[me].free = false; m[me].version++; m[me].valid = true; epoch = m[me].epoch
    }
    /* Read the line, and see. */
    :: atomic {
        m[me].valid && !leads[me] ->
        read_line(true);
        find(me, epoch, at);
        if
        :: at == 0 && NOT_LEFT(q[base].token[0]) -> /* head */
            assert(!leads[1 - me]);
            assert(q[base].token[0] > highest);
            highest = q[base].token[0];
            led = highest;
            leads[me] = true
        :: (at == LINE || q[base].token[at] <= led) && reqs < MAXQ -> /* not in line, or at a place that was left */
            if
            :: at < LINE || q[base].token[LINE - 1] == 0 ->
                copy_without(at, LINE);
                q[reqs].who[n] = me;
                q[reqs].epoch[n] = epoch;
                q[reqs].token[n] = q[reqs].next;
#ifndef BUG_SAME_TOKEN
                q[reqs].next++
#endif
            :: else
            fi
        :: at > 0 && at < LINE && q[base].token[at] > led -> /* look at the one before */
            before = q[base].who[at - 1];
            seen = q[base].epoch[at - 1];
            if
            :: before != me -> gone = m[before].free || m[before].epoch != seen
            :: before == me -> gone = true /* an older membership of my own */
            fi;
#ifdef BUG_EVICT_UNASKED
            gone = true;
#endif
            if
            :: gone && reqs < MAXQ -> copy_without(at - 1, LINE)
            :: !gone && IS_OVER(before) -> strike[before] = m[before].version + 1
            :: else
            fi;
            gone = false; before = 0; seen = 0
        :: else
        fi;
        tidy()
    }
    /* Leave: the work has stopped, then the place is given up. */
    :: atomic {
        leads[me] && reqs < MAXQ ->
        read_line(false);
        find(me, epoch, at);
#ifndef BUG_LEAVE_FIRST
        leads[me] = false;
#endif
        if :: at < LINE -> copy_without(at, LINE) :: else fi;
        tidy()
    }
    od
}

init {
    atomic { run Candidate(0); run Candidate(1) }
}
