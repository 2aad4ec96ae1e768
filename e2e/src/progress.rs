//! What the person sees while something takes more than a moment: a line when it starts and one with its time when it ends.
//! On a terminal the line counts the seconds; elsewhere it is repeated twice a minute so that a log shows life.

use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a step and reports it on standard error.
pub fn step<T, E>(what: &str, body: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let start = Instant::now();
    let terminal = stderr().is_terminal();
    let every = if terminal {
        Duration::from_secs(1)
    } else {
        Duration::from_secs(30)
    };
    if !terminal {
        eprintln!("  {what} ...");
    }
    let (done, wait) = mpsc::channel::<()>();
    let outcome = thread::scope(|scope| {
        scope.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(every) {
                if terminal {
                    eprint!("\r\x1b[K  {what} ... {}", elapsed(start.elapsed()));
                    let _ = stderr().flush();
                } else {
                    eprintln!("  {what} ... still working, {}", elapsed(start.elapsed()));
                }
            }
        });
        let outcome = body();
        drop(done);
        outcome
    });
    let sign = if outcome.is_ok() { "done" } else { "FAILED" };
    let clear = if terminal { "\r\x1b[K" } else { "" };
    eprintln!("{clear}  {what}: {sign} in {}", elapsed(start.elapsed()));
    outcome
}

/// A duration as people say it: `0.4 s`, `12 s`, `3 min 05 s`, `1 h 02 min`.
pub fn elapsed(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..120 => format!("{seconds} s"),
        120..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_speech() {
        let of = |seconds: f64| elapsed(Duration::from_secs_f64(seconds));
        assert_eq!(of(0.42), "0.4 s");
        assert_eq!(of(119.0), "119 s");
        assert_eq!(of(185.0), "3 min 05 s");
        assert_eq!(of(3720.0), "1 h 02 min");
    }

    #[test]
    fn a_step_hands_on_what_its_body_returned() {
        assert_eq!(step("ok", || Ok::<_, ()>(7)), Ok(7));
        assert_eq!(step("bad", || Err::<(), _>("why")), Err("why"));
    }
}
