//! The plan of faults of one simulation, drawn from its seed. Only requests of the operator under test meet them.

use std::time::Duration;

use crate::{
    api_server::{
        failure::Failure,
        request::{Actor, Verb},
    },
    random::Dice,
};

/// How often each fault happens, in 1,000 requests (or batches of watch events).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rates {
    /// 500 before anything is applied.
    pub(crate) internal_error: u32,
    /// 429 with Retry-After.
    pub(crate) too_many_requests: u32,
    /// 503.
    pub(crate) unavailable: u32,
    /// The connection breaks before the request is applied.
    pub(crate) lost_request: u32,
    /// The connection breaks after the request is applied.
    pub(crate) lost_response: u32,
    /// 409 on an update or patch, as if someone had been faster.
    pub(crate) conflict: u32,
    /// A request that takes up to 10 s.
    pub(crate) slow: u32,
    /// A watch connection that ends without a word.
    pub(crate) watch_dropped: u32,
    /// 410 in a watch.
    pub(crate) watch_gone: u32,
    /// Events that come twice.
    pub(crate) watch_duplicated: u32,
    /// Events that come up to 20 s late: a stale cache.
    pub(crate) watch_late: u32,
    /// A list that accepts any version gets one from the past.
    pub(crate) stale_list: u32,
}

impl Rates {
    /// Every fault, each in up to 5 % of requests, as the seed draws it.
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        // A seed has some faults and lacks others, so that each is also met alone.
        let mut rate = || {
            if dice.chance(500) {
                dice.between(1, 50) as u32
            } else {
                0
            }
        };
        Self {
            internal_error: rate(),
            too_many_requests: rate(),
            unavailable: rate(),
            lost_request: rate(),
            lost_response: rate(),
            conflict: rate(),
            slow: rate(),
            watch_dropped: rate(),
            watch_gone: rate(),
            watch_duplicated: rate(),
            watch_late: rate(),
            stale_list: rate(),
        }
    }
}

/// What becomes of a request.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It is served.
    Serve,
    /// It is refused before anything is applied.
    Refuse(&'static str, Failure),
    /// The connection breaks before it is applied.
    LoseRequest,
    /// It is applied and the answer is lost.
    LoseResponse,
    /// It conflicts, if it is an update.
    Conflict,
    /// A list may be answered from the past.
    Stale,
}

/// The fate of a request, and the time it takes.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    pub(crate) before: Duration,
    pub(crate) outcome: Outcome,
    pub(crate) after: Duration,
}

/// The fate of a batch of watch events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WatchFate {
    pub(crate) lag: Duration,
    pub(crate) dropped: bool,
    pub(crate) gone: bool,
    pub(crate) duplicated: bool,
}

/// The faults of one simulation.
#[derive(Clone, Debug)]
pub(crate) struct FaultPlan {
    dice: Dice,
    rates: Rates,
    /// The crash comes after this many successful writes of the operator.
    crash_after_write: Option<u64>,
    writes: u64,
}

impl FaultPlan {
    /// These rates, drawn by this seed.
    pub(crate) fn new(seed: u64, rates: Rates) -> Self {
        Self {
            dice: Dice::new(seed, 2),
            rates,
            crash_after_write: None,
            writes: 0,
        }
    }

    /// A network that works.
    pub(crate) fn none() -> Self {
        Self::new(0, Rates::default())
    }

    /// Rates drawn from the seed as well.
    pub(crate) fn from_seed(seed: u64) -> Self {
        let rates = Rates::draw(&mut Dice::new(seed, 1));
        Self::new(seed, rates)
    }

    /// How often each fault happens.
    pub(crate) fn rates(&self) -> Rates {
        self.rates
    }

    /// Crash after the n-th successful write from now, counted from 1.
    pub(crate) fn crash_after(mut self, writes: u64) -> Self {
        self.crash_after_write = Some(writes);
        self
    }

    /// Successful writes of the operator so far.
    pub(crate) fn writes(&self) -> u64 {
        self.writes
    }

    /// From now on, everything works.
    pub(crate) fn stop(&mut self) {
        self.rates = Rates::default();
        self.crash_after_write = None;
    }

    /// Counts a successful write; true if the operator crashes before it hears of it.
    pub(crate) fn count_write(&mut self, actor: &Actor) -> bool {
        if !actor.faults {
            return false;
        }
        self.writes += 1;
        self.crash_after_write == Some(self.writes)
    }

    /// The fate of a request.
    pub(crate) fn decide(&mut self, actor: &Actor, verb: Verb) -> Decision {
        let mut decision = Decision {
            before: self.dice.millis(1, 4),
            outcome: Outcome::Serve,
            after: self.dice.millis(0, 3),
        };
        if !actor.faults {
            return decision;
        }
        if self.dice.chance(self.rates.slow) {
            let late = self.dice.millis(100, 10_000);
            if self.dice.chance(500) {
                decision.before += late;
            } else {
                decision.after += late;
            }
        }
        decision.outcome = self.outcome(verb);
        decision
    }

    fn outcome(&mut self, verb: Verb) -> Outcome {
        let dice = &mut self.dice;
        let rates = self.rates;
        if dice.chance(rates.internal_error) {
            let failure = Failure::internal("etcdserver: request timed out");
            return Outcome::Refuse("500", failure);
        }
        if dice.chance(rates.too_many_requests) {
            let failure = Failure::too_many_requests(dice.between(1, 5) as u32);
            return Outcome::Refuse("429", failure);
        }
        if dice.chance(rates.unavailable) {
            return Outcome::Refuse("503", Failure::unavailable());
        }
        if dice.chance(rates.lost_request) {
            return Outcome::LoseRequest;
        }
        if verb.writes() && dice.chance(rates.lost_response) {
            return Outcome::LoseResponse;
        }
        if matches!(verb, Verb::Replace | Verb::Patch) && dice.chance(rates.conflict) {
            return Outcome::Conflict;
        }
        if verb == Verb::List && dice.chance(rates.stale_list) {
            return Outcome::Stale;
        }
        Outcome::Serve
    }

    /// The fate of the next batch of events of a watch.
    pub(crate) fn watch_fate(&mut self, actor: &Actor) -> WatchFate {
        if !actor.faults {
            return WatchFate::default();
        }
        let rates = self.rates;
        let lag = if self.dice.chance(rates.watch_late) {
            self.dice.millis(1_000, 20_000)
        } else {
            self.dice.millis(1, 20)
        };
        WatchFate {
            lag,
            dropped: self.dice.chance(rates.watch_dropped),
            gone: self.dice.chance(rates.watch_gone),
            duplicated: self.dice.chance(rates.watch_duplicated),
        }
    }
}
