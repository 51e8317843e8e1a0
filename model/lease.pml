/* The TTL + transition protocol, small enough to be searched exhaustively.
 *
 * What is modelled, what is not, and the figures: docs/model.md. `script/check --model` runs it as it stands, where no
 * assertion may fail, and once for each guard left out (-DNO_GUARD and so on), where one must.
 *
 *   Contender  begins an attempt, asks, renews, gives up, releases; believes its own deadline
 *   Network    one per call under way: arrives, arrives again, arrives late, gets lost; the store decides
 *   Clock      true time, the store's clock and each contender's clock, which do not quite agree
 *
 * Durations count down, so that time has no end and the states have one. What is bounded is the number of attempts.
 */

#ifndef CONTENDERS
#define CONTENDERS 2
#endif
#ifndef ATTEMPTS /* of all contenders together */
#define ATTEMPTS 3
#endif
#ifndef TERMS /* that begin in the store, at most */
#define TERMS 3
#endif
#ifndef COPIES /* of one request that may arrive */
#define COPIES 2
#endif

#define TTL 1
#define TRANSITION 2
#define LEASE (TTL + TRANSITION)
#ifdef NO_GUARD
#define GUARD 0
#else
#define GUARD 1
#endif
#ifndef CLOCK_ERROR /* what the clocks may differ by within one lease */
#define CLOCK_ERROR 1
#endif

#define FIRST_ATTEMPT 1
#define NEVER 0

#define NOTHING 0
#define TAKE 1
#define RENEW 2
#define RELEASE 3

#define ENDED 0
#define TRYING 1
#define HOLDING 2

typedef Call {
  byte kind;
  byte id;     /* the wire id it names */
  byte term;   /* the term it was sent in; 0: in none yet */
  byte copies; /* of the request, still travelling */
  byte reply;  /* the term that the travelling answer grants; 0: there is none */
  byte age     /* since before it was sent, by the sender's clock */
};

/* The store. Terms are numbered in the order in which they began; their tokens are what the store gave them. */
byte owner;    /* wire id; 0: nobody */
byte term;     /* of the owner */
byte left;     /* of its lease, by the store's clock */
byte terms;    /* how many have begun */
byte counter;  /* the last token */
byte token[TERMS + 1];

/* The contenders. */
byte state[CONTENDERS];
byte id[CONTENDERS];    /* wire id of the attempt, also of one that has ended */
byte mine[CONTENDERS];  /* the term it holds or held */
byte rest[CONTENDERS];  /* until it revokes itself, by its own clock */
Call call[CONTENDERS * 2];
byte attempts = FIRST_ATTEMPT;
#ifdef MESSAGE_ASSERTS_OWNERSHIP
bool hint[CONTENDERS];
#endif

#ifdef RESOURCE /* and one write of each contender on its way to it */
byte newest; /* the term whose write was applied last */
byte write[CONTENDERS];
#endif

/* The promises. An error names the one that is broken. */
bool keeps_P1 = true, keeps_P1b = true, keeps_P2 = true, keeps_P3 = true, keeps_P5 = true;

byte error; /* what the clocks have differed by since the lease was granted */

/* --- what contenders believe, and the promises ------------------------------------------------------------------- */

#ifdef IS_OWNER_UNTIL_THE_NEXT_POLL
#define IS_OWNER(c) (state[c] == HOLDING)
#else
#define IS_OWNER(c) (state[c] == HOLDING && rest[c] > 0)
#endif
#define IS_IN_TTL(c) (IS_OWNER(c) && rest[c] > LEASE - GUARD - TTL)

#if CONTENDERS == 2
#define COUNT(is) (is(0) + is(1))
#define ANY(is) (is(0) || is(1))
#else
#define COUNT(is) (is(0) + is(1) + is(2))
#define ANY(is) (is(0) || is(1) || is(2))
#endif

inline check_owners() {
  keeps_P1 = COUNT(IS_IN_TTL) <= 1;
  assert(keeps_P1);
#ifndef ONLY_IN_TTL
  keeps_P1b = COUNT(IS_OWNER) <= 1;
  assert(keeps_P1b)
#endif
}

/* P5: what another term's renewal or release changes is held by nobody. */
#define IS_HELD_IN_THE_STORE(c) (IS_OWNER(c) && left > 0 && id[c] == owner && mine[c] == term)
inline check_write(k) {
  keeps_P5 = (call[k].id == owner && call[k].term == term) || !ANY(IS_HELD_IN_THE_STORE);
  assert(keeps_P5)
}

inline begin_term(new_owner, new_token) {
  terms++;
  token[terms] = new_token;
  keeps_P2 = terms == 1 || token[terms] > token[terms - 1];
#ifndef TOKENS_UNCHECKED /* by the store, so that the resource can show what comes of it */
  assert(keeps_P2);
#endif
  owner = new_owner;
  term = terms;
  left = LEASE;
  error = 0
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

/* Each contender has two: the one it waits for, and one of earlier that may still arrive. */
#define WAITED(c) (2 * (c))
#define STALE(c) (2 * (c) + 1)
#define IS_WAITED_FOR(k) ((k) % 2 == 0)
#define IS_FREE(k) (call[k].kind == NOTHING)

#if defined(NO_GENERATION) || defined(LATE_REPLY_ADOPTED) || defined(REVOKED_TERM_REVIVED)
#define IS_HEARD(k) (call[k].reply != 0)
#else
#define IS_HEARD(k) (call[k].reply != 0 && IS_WAITED_FOR(k))
#endif

inline forget(k) {
  call[k].kind = NOTHING;
  call[k].id = 0;
  call[k].term = 0;
  call[k].copies = 0;
  call[k].reply = 0;
  call[k].age = 0
}

/* What can make no difference any more is set to zero, so that states which differ by it alone are one. */
inline tidy(k) {
  if
  :: !IS_HEARD(k) -> call[k].reply = 0;
  :: else
  fi;
  if
  :: call[k].copies == 0 && call[k].reply == 0 -> forget(k);
  :: else
  fi
}

/* Where the place is taken, what was left of the call is lost: losing what stands there is a step of its own. */
inline stop_waiting(c) {
  if
  :: IS_FREE(STALE(c)) ->
     call[STALE(c)].kind = call[WAITED(c)].kind;
     call[STALE(c)].id = call[WAITED(c)].id;
     call[STALE(c)].term = call[WAITED(c)].term;
     call[STALE(c)].copies = call[WAITED(c)].copies;
#if defined(NO_GENERATION) || defined(LATE_REPLY_ADOPTED) || defined(REVOKED_TERM_REVIVED)
     call[STALE(c)].reply = call[WAITED(c)].reply;
     call[STALE(c)].age = call[WAITED(c)].age;
#endif
     tidy(STALE(c));
  :: else
  fi;
  forget(WAITED(c))
}

inline end_term(c) {
  state[c] = ENDED;
  rest[c] = 0;
  stop_waiting(c)
}

inline send(c, k, what, how_often) {
  call[k].kind = what;
  call[k].id = id[c];
  call[k].term = mine[c];
  call[k].copies = how_often
}

/* --- the store decides ------------------------------------------------------------------------------------------- */

#ifdef TRANSITION_IGNORED
#define MAY_ENTER (left <= TRANSITION)
#elif defined(UPSERT_WITHOUT_ITS_WHERE)
#define MAY_ENTER true
#else
#define MAY_ENTER (left == 0)
#endif

inline renew_lease(k, reply_to) {
  check_write(k);
  left = LEASE;
  error = 0;
  reply_to = term
}

inline arrive(k, reply_to) {
  if
  :: call[k].kind == TAKE && left > 0 && owner == call[k].id -> /* it asks again: the same term */
     left = LEASE;
     error = 0;
     reply_to = term;
  :: call[k].kind == TAKE && !(left > 0 && owner == call[k].id) && MAY_ENTER && terms < TERMS ->
     counter++;
     begin_term(call[k].id, counter);
     reply_to = term;
#ifdef ANOTHER_TERM_ADOPTED /* the store tells who owns, also who asked for a term that is over */
  :: call[k].kind == RENEW && left > 0 && !(owner == call[k].id && term == call[k].term) -> reply_to = term;
#endif
#ifdef BLIND_RENEW
  :: call[k].kind == RENEW && left > 0 -> renew_lease(k, reply_to);
#else
  :: call[k].kind == RENEW && left > 0 && owner == call[k].id && term == call[k].term -> renew_lease(k, reply_to);
#endif
#ifdef RENEW_MAY_TAKE
  :: call[k].kind == RENEW && left == 0 && terms < TERMS ->
     begin_term(call[k].id, token[call[k].term]);
     reply_to = term;
#endif
#ifdef UNCONDITIONAL_RELEASE
  :: call[k].kind == RELEASE && left > 0 ->
#else
  :: call[k].kind == RELEASE && left > 0 && owner == call[k].id ->
#endif
     check_write(k);
     owner = 0;
     term = 0;
     left = 0;
     error = 0;
#ifdef TOKEN_RESET
     counter = 0;
#endif
#ifdef MESSAGE_ASSERTS_OWNERSHIP
     hint[0] = true;
     hint[1] = true;
#endif
  :: else
  fi;
  call[k].copies--
}

/* --- a contender hears an answer --------------------------------------------------------------------------------- */

#ifdef EXPIRY_FROM_THE_REPLY
#define AGE(k) 0
#elif defined(NO_GENERATION) /* counted from whichever call it waits for */
#define AGE(k) (call[WAITED((k) / 2)].age)
#else
#define AGE(k) (call[k].age)
#endif

#ifdef LATE_REPLY_ADOPTED
#define WANTS_TERM(c, k) (state[c] != HOLDING && id[c] == call[k].id)
#elif defined(NO_GENERATION)
#define WANTS_TERM(c, k) (state[c] == TRYING)
#else
#define WANTS_TERM(c, k) (state[c] == TRYING && IS_WAITED_FOR(k))
#endif

#ifdef REVOKED_TERM_REVIVED
#define WANTS_RENEWAL(c, k) (state[c] != TRYING && id[c] == call[k].id)
#elif defined(BLIND_RENEW) || defined(ANOTHER_TERM_ADOPTED)
#define WANTS_RENEWAL(c, k) (state[c] == HOLDING && IS_WAITED_FOR(k))
#else
#define WANTS_RENEWAL(c, k) (state[c] == HOLDING && IS_WAITED_FOR(k) && mine[c] == call[k].reply)
#endif

/* Without these two the promises hold all the same: a term that comes so late is out of its ttl, or over. */
#ifdef GRANT_AFTER_ITS_TTL
#define IS_EARLY_GRANT(k) true
#else
#define IS_EARLY_GRANT(k) (AGE(k) < TTL)
#endif
#ifdef RENEWAL_AFTER_ITS_END
#define IS_EARLY_RENEWAL(k) true
#else
#define IS_EARLY_RENEWAL(k) (AGE(k) < LEASE - GUARD)
#endif

#define REST(k) (AGE(k) < LEASE - GUARD -> LEASE - GUARD - AGE(k) : 0)

inline hear(c, k) {
  if
  :: call[k].kind == TAKE && WANTS_TERM(c, k) && IS_EARLY_GRANT(k) ->
     state[c] = HOLDING;
     mine[c] = call[k].reply;
     rest[c] = REST(k);
  :: call[k].kind == RENEW && WANTS_RENEWAL(c, k) && IS_EARLY_RENEWAL(k) ->
     state[c] = HOLDING;
     rest[c] = (rest[c] > REST(k) -> rest[c] : REST(k));
  :: else
  fi;
  call[k].reply = 0;
  if
  :: IS_WAITED_FOR(k) -> stop_waiting(c);
  :: else -> tidy(k)
  fi;
  check_owners()
}

/* --- processes --------------------------------------------------------------------------------------------------- */

proctype Contender(byte me) {
  do
  :: d_step { state[me] == ENDED && attempts <= ATTEMPTS ->
#ifdef WIRE_ID_USED_TWICE
       id[me] = me + 1;
#else
       id[me] = attempts;
#endif
       attempts++;
       mine[me] = 0;
       state[me] = TRYING }
  :: d_step { state[me] == TRYING && IS_FREE(WAITED(me)) -> send(me, WAITED(me), TAKE, 1) }
  :: d_step { state[me] == TRYING && IS_FREE(WAITED(me)) && COPIES > 1 -> send(me, WAITED(me), TAKE, COPIES) }
  :: d_step { IS_OWNER(me) && IS_FREE(WAITED(me)) -> send(me, WAITED(me), RENEW, 1) }
  :: d_step { IS_OWNER(me) && IS_FREE(WAITED(me)) && COPIES > 1 -> send(me, WAITED(me), RENEW, COPIES) }
  :: d_step { state[me] == ENDED && id[me] != 0 && IS_FREE(WAITED(me)) -> send(me, WAITED(me), RELEASE, 1) }
  :: d_step { !IS_FREE(WAITED(me)) -> stop_waiting(me) } /* the deadline of the call */
  :: d_step { state[me] != ENDED -> end_term(me) } /* the work is done, it gives up, or it crashes */
#ifdef RESOURCE
  :: d_step { IS_OWNER(me) && write[me] == 0 -> write[me] = mine[me] }
  :: d_step { write[me] != 0 ->
       if
#ifdef RESOURCE_WITHOUT_FENCE
       :: true ->
#else
       :: newest == 0 || token[write[me]] >= token[newest] ->
#endif
          keeps_P3 = write[me] >= newest;
          assert(keeps_P3);
          newest = write[me];
       :: else
       fi;
       write[me] = 0 }
#endif
#ifdef AMBIGUOUS_IS_YES
  :: d_step { state[me] == TRYING && !IS_FREE(WAITED(me)) && call[WAITED(me)].age < TTL ->
       rest[me] = LEASE - GUARD - call[WAITED(me)].age;
       state[me] = HOLDING;
       stop_waiting(me);
       check_owners() }
#endif
#ifdef MESSAGE_ASSERTS_OWNERSHIP
  :: d_step { hint[me] ->
       hint[me] = false;
       if
       :: state[me] == TRYING ->
          state[me] = HOLDING;
          rest[me] = LEASE - GUARD;
       :: else
       fi;
       check_owners() }
#endif
  od
}

proctype Network(byte k) {
  byte unheard;
  do
  :: d_step { call[k].copies > 0 -> arrive(k, call[k].reply); tidy(k) }
  :: d_step { call[k].copies > 0 -> arrive(k, unheard); unheard = 0; tidy(k) } /* and the answer is lost */
  :: d_step { call[k].copies > 0 -> call[k].copies--; tidy(k) } /* lost */
  :: d_step { IS_HEARD(k) -> hear(k / 2, k) }
  :: d_step { call[k].reply != 0 -> call[k].reply = 0; tidy(k) } /* lost */
  od
}

#define STANDS_STILL(c) (still == (c) + 1)

inline advance(still) {
  c = 0;
  do
  :: c < CONTENDERS ->
     if
     :: !STANDS_STILL(c) ->
        if
        :: rest[c] > 0 ->
           rest[c]--;
           if
#ifdef IS_OWNER_UNTIL_THE_NEXT_POLL
           :: false
#else
           :: rest[c] == 0 -> end_term(c);
#endif
           :: else
           fi
        :: else
        fi;
        if
        :: call[WAITED(c)].kind != NOTHING && call[WAITED(c)].kind != RELEASE && call[WAITED(c)].age < LEASE ->
           call[WAITED(c)].age++;
        :: else
        fi;
        if
        :: IS_HEARD(STALE(c)) && call[STALE(c)].age < LEASE -> call[STALE(c)].age++;
        :: else
        fi
     :: else
     fi;
     c++
  :: else -> break
  od;
  c = 0
}

inline advance_store() {
  if
  :: left == 1 ->
     left = 0;
     owner = 0;
     term = 0;
     error = 0;
  :: left > 1 -> left--;
  :: else
  fi
}

proctype Clock() {
  byte c;
  do
  :: d_step { true -> advance(0); advance_store() }
  :: d_step { left > 0 && error < CLOCK_ERROR -> error++; advance_store() } /* a step forward, or a fast rate */
  :: d_step { error < CLOCK_ERROR -> error = error + (left > 0); advance(1); advance_store() } /* a slow contender */
  :: d_step { error < CLOCK_ERROR -> error = error + (left > 0); advance(2); advance_store() }
#if CONTENDERS > 2
  :: d_step { error < CLOCK_ERROR -> error = error + (left > 0); advance(3); advance_store() }
#endif
#ifdef SLOW_STORE
  :: d_step { true -> advance(0) } /* a step back, or a slow rate */
#endif
  od
}

init {
  byte n;
  atomic {
    for (n : 0 .. CONTENDERS - 1) { run Contender(n) }
    for (n : 0 .. CONTENDERS * 2 - 1) { run Network(n) }
    n = 0;
    run Clock()
  }
}
