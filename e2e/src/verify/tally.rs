//! Counting what passed, failed and was skipped, from the output of `cargo test`.

use std::fmt;
use std::ops::Add;

/// Counts of checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// That hold.
    pub passed: u64,
    /// That do not.
    pub failed: u64,
    /// That were not tried.
    pub skipped: u64,
}

impl Tally {
    /// One check that holds.
    pub const PASSED: Self = Self {
        passed: 1,
        failed: 0,
        skipped: 0,
    };
    /// One check that does not.
    pub const FAILED: Self = Self {
        passed: 0,
        failed: 1,
        skipped: 0,
    };
    /// One check that was not tried.
    pub const SKIPPED: Self = Self {
        passed: 0,
        failed: 0,
        skipped: 1,
    };

    /// Nothing failed and something ran.
    pub fn good(self) -> bool {
        self.failed == 0 && self.passed > 0
    }

    /// The sum over all `test result:` lines of an output, judged together with how the program ended.
    ///
    /// A run that ends badly without a failed test (it did not compile, it was killed) is one failure,
    /// and so is one in which no test ran.
    pub fn of_tests(output: &str, success: bool) -> Self {
        let sum = output
            .lines()
            .filter_map(result_line)
            .fold(Self::default(), |sum, line| sum + line);
        if (!success && sum.failed == 0) || (success && sum.passed == 0) {
            sum + Self::FAILED
        } else {
            sum
        }
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// `test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s`
fn result_line(line: &str) -> Option<Tally> {
    let (_, counts) = line.trim().strip_prefix("test result: ")?.split_once(". ")?;
    let count = |word: &str| -> Option<u64> {
        counts
            .split("; ")
            .find_map(|part| part.strip_suffix(word)?.trim().parse().ok())
    };
    Some(Tally {
        passed: count("passed")?,
        failed: count("failed")?,
        skipped: count("ignored")?,
    })
}

/// The parts of the output that explain failures: what each failed test printed, and errors of the compiler.
pub fn failures(output: &str) -> String {
    let mut kept = Vec::new();
    let mut inside = false;
    for line in output.lines() {
        if line.trim() == "failures:" || line.starts_with("error") {
            inside = true;
        }
        if inside {
            kept.push(line);
        }
        if line.starts_with("test result:") {
            inside = false;
        }
    }
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
running 3 tests
test a ... ok
test b ... FAILED
test c ... ignored

failures:

---- b stdout ----
assertion failed

failures:
    b

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/other.rs
test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s
";

    #[test]
    fn results_of_all_test_programs_are_summed() {
        assert_eq!(
            Tally::of_tests(OUTPUT, false),
            Tally {
                passed: 13,
                failed: 1,
                skipped: 1
            }
        );
    }

    #[test]
    fn ending_badly_or_running_nothing_is_a_failure() {
        assert_eq!(
            Tally::of_tests("error[E0308]: mismatched types", false),
            Tally::FAILED
        );
        assert_eq!(Tally::of_tests("", true), Tally::FAILED);
        let nothing =
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s";
        assert!(!Tally::of_tests(nothing, true).good());
        let killed =
            "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(
            Tally::of_tests(killed, false),
            Tally {
                passed: 5,
                failed: 1,
                skipped: 0
            }
        );
    }

    #[test]
    fn a_test_that_prints_such_a_line_in_the_middle_is_not_counted() {
        assert_eq!(
            result_line("saw test result: ok. 5 passed; 0 failed; 0 ignored"),
            None
        );
        assert_eq!(
            result_line("test result: ok. five passed; 0 failed; 0 ignored"),
            None
        );
    }

    #[test]
    fn only_what_explains_a_failure_is_repeated() {
        let text = failures(OUTPUT);
        assert!(
            text.contains("assertion failed") && !text.contains("test a ... ok"),
            "{text}"
        );
        assert!(!text.contains("12 passed"));
    }
}
