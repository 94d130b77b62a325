//! The time since the provider was last sent the request, by a sane clock.
//!
//! A host hands over its own time with each call, and stamps its answers. Some stamp seconds, zero, or always the same, and
//! some give no times at all. So a stamp counts only if it lies between the request that it answers and now, and the host's
//! time only if it moves as fast as our own.

/// A stamp may lie this far outside of what is possible: a host rounds, or takes its time in another place.
const TOLERANCE_MS: i64 = 2_000;

/// A moment by both clocks, in milliseconds: the host's since the epoch, and our own since any start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// By the host's clock.
    pub host: i64,
    /// By our own.
    pub own: i64,
}

/// When requests were sent and answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct CacheClock {
    /// The request that is not answered yet.
    asked: Option<Moment>,
    /// The last one that was answered, with its time by the answer's stamp where that is possible.
    answered: Option<Moment>,
}

impl CacheClock {
    /// A request is sent.
    pub fn ask(&mut self, now: Moment) {
        self.asked = Some(now);
    }

    /// Its answer has come, with this stamp.
    pub fn answer(&mut self, stamp: Option<i64>, now: Moment) {
        let asked = self.asked.take();
        let is_possible = |stamp: &i64| {
            let from = asked.map_or(1, |asked| asked.host.saturating_sub(TOLERANCE_MS));
            (from..=now.host.saturating_add(TOLERANCE_MS)).contains(stamp)
        };
        self.answered = match (stamp.filter(is_possible), asked) {
            (Some(host), _) => Some(Moment { host, own: asked.map_or(now.own, |asked| asked.own) }),
            // An answer that comes together with an earlier one: its request's time is unknown, but it is not later than now.
            (None, asked) => Some(asked.unwrap_or(now)),
        };
    }

    /// An answer of an earlier process has come again, with this stamp.
    pub fn answer_again(&mut self, stamp: Option<i64>, now: Moment) {
        self.asked = None;
        self.answered = earlier(stamp, now);
    }

    /// An earlier process has sent the last request at this time. Its answer may be known already, or come with the next
    /// messages.
    pub fn ask_again(&mut self, stamp: Option<i64>, now: Moment) {
        self.asked = earlier(stamp, now);
        self.answered = self.asked;
    }

    /// Returns the milliseconds since the provider was last asked; `None` if that is unknown.
    pub fn idle(&self, now: Moment) -> Option<i64> {
        let last = self.answered?;
        let (host, own) = (now.host.saturating_sub(last.host), now.own.saturating_sub(last.own));
        let is_sane = host >= own.saturating_sub(TOLERANCE_MS) && host < TEN_YEARS_MS;
        Some(if is_sane { host } else { own })
    }

    /// The conversation is rebuilt from what a host has kept.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

/// The longest possible pause of a host: after a longer one, its time is not in milliseconds.
const TEN_YEARS_MS: i64 = 315_360_000_000;

/// Returns the moment of an earlier process in a stamp, if it is possible.
fn earlier(stamp: Option<i64>, now: Moment) -> Option<Moment> {
    let is_possible = |stamp: &i64| {
        (1..=now.host.saturating_add(TOLERANCE_MS)).contains(stamp) && now.host - stamp < TEN_YEARS_MS
    };
    stamp.filter(is_possible).map(|host| Moment { host, own: now.own })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const START: i64 = 1_800_000_000_000;

    /// A request, its answer 5 seconds later with a stamp of the host, and an hour that passes by a clock.
    #[rstest]
    #[case::as_it_should_be(|ms| ms, |ms| Some(ms), 1)]
    #[case::seconds(|ms| ms, |ms| Some(ms / 1_000), 1)]
    #[case::zero(|ms| ms, |_| Some(0), 1)]
    #[case::a_constant(|ms| ms, |_| Some(START - 86_400_000), 1)]
    #[case::no_stamps(|ms| ms, |_| None, 1)]
    #[case::of_the_future(|ms| ms, |ms| Some(ms + 86_400_000), 1)]
    #[case::a_host_in_seconds(|ms| ms / 1_000, |ms| Some(ms / 1_000), 1)]
    #[case::a_host_without_a_clock(|_| 0, |_| None, 1)]
    #[case::a_host_that_stands_still(|_| START, |_| Some(START), 1)]
    #[case::a_replayed_session(|ms| ms, |ms| Some(ms), 0)]
    fn idle_time_is_found_however_a_host_counts(
        #[case] host: fn(i64) -> i64,
        #[case] stamp: fn(i64) -> Option<i64>,
        #[case] own: i64,
    ) {
        let at = |ms: i64| Moment { host: host(START + ms), own: own * ms };
        let mut clock = CacheClock::default();
        assert_eq!(clock.idle(at(0)), None);
        for call in 0..20 {
            clock.ask(at(call * 60_000));
            clock.answer(stamp(START + call * 60_000 + 5_000), at(call * 60_000 + 6_000));
            let soon = clock.idle(at(call * 60_000 + 60_000)).unwrap();
            assert!((53_000..=60_000).contains(&soon), "{soon} ms after a minute");
        }
        let idle = clock.idle(at(19 * 60_000 + 3_600_000)).unwrap();
        assert!((3_590_000..=3_600_000).contains(&idle), "{idle} ms after an hour");
    }

    #[rstest]
    #[case::an_hour_ago(Some(START - 3_600_000), Some(3_600_000))]
    #[case::seconds(Some(START / 1_000), None)]
    #[case::zero(Some(0), None)]
    #[case::none(None, None)]
    #[case::of_the_future(Some(START + 3_600_000), None)]
    #[case::nearly_ten_years_ago(Some(START - TEN_YEARS_MS + 1), Some(TEN_YEARS_MS - 1))]
    #[case::ten_years_ago(Some(START - TEN_YEARS_MS), None)]
    fn stamps_of_an_earlier_process(#[case] stamp: Option<i64>, #[case] idle: Option<i64>) {
        let now = Moment { host: START, own: 0 };
        let mut clock = CacheClock::default();
        // The answer to the request that an earlier process has sent comes only now, perhaps without a stamp.
        clock.ask_again(stamp, now);
        clock.answer(None, now);
        assert_eq!(clock.idle(now), Some(idle.unwrap_or(0)));
        clock.answer_again(stamp, now);
        assert_eq!(clock.idle(now), idle);
    }

    /// A clock that shows a request of ten years ago counts no milliseconds.
    #[rstest]
    #[case(TEN_YEARS_MS - 1, TEN_YEARS_MS - 1)]
    #[case(TEN_YEARS_MS, 5)]
    fn host_may_be_idle_for_years(#[case] host: i64, #[case] idle: i64) {
        let mut clock = CacheClock::default();
        clock.answer(Some(1), Moment { host: 1, own: 0 });
        assert_eq!(clock.idle(Moment { host: 1 + host, own: 5 }), Some(idle));
        clock.forget();
        assert_eq!(clock.idle(Moment { host: 1 + host, own: 5 }), None);
    }

    #[test]
    fn answer_that_comes_together_with_an_earlier_one_counts_from_then() {
        let at = |ms| Moment { host: START + ms, own: ms };
        let mut clock = CacheClock::default();
        clock.ask(at(0));
        clock.answer(None, at(60_000));
        clock.answer(None, at(60_000));
        assert_eq!(clock.idle(at(3_660_000)), Some(3_600_000));
    }

    #[test]
    fn request_asked_twice_counts_from_the_second_time_and_an_unanswered_one_not_at_all() {
        let at = |ms| Moment { host: START + ms, own: ms };
        let mut clock = CacheClock::default();
        clock.ask(at(0));
        clock.answer(None, at(1_000));
        clock.ask(at(3_600_000));
        assert_eq!(clock.idle(at(3_600_100)), Some(3_600_100), "its cache is warm once it is answered");
        clock.ask(at(3_600_200));
        clock.answer(None, at(3_601_000));
        assert_eq!(clock.idle(at(3_601_200)), Some(1_000));
    }
}
