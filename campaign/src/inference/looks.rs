//! Planned looks at the data: at which numbers of blocks a campaign may decide, and at which level. Looking at
//! every block would give 11 to 18 % false positives; looking only at planned sizes at a lowered level keeps 5 %.

use std::fmt;

/// Family level of false claims, over all looks and all primary effects.
pub(super) const FAMILY_LEVEL: f64 = 0.05;

/// Nominal two-sided levels of one effect whose chance of a false claim over all looks is [`FAMILY_LEVEL`].
/// Computed by `examples/look_constants.rs`, which finds 5.06 % and 5.00 % for them.
const PLANNED: [(&[u32], f64); 2] = [(&[6, 8, 10], 0.0247), (&[6, 8, 12, 16, 20], 0.0156)];

/// How much a smaller level loses per doubling of the family, over several looks: the looks of one effect agree
/// less in the far tails, so that dividing the nominal level by the number of effects alone would give up to 6 %.
/// Checked by the same simulation.
const TAIL: f64 = 0.07;

/// The planned numbers of blocks, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looks {
    sizes: Vec<u32>,
}

/// One planned look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Number of the look, from 1.
    pub number: u32,
    /// Number of blocks at which it takes place.
    pub blocks: u32,
    /// Whether it is the last.
    pub last: bool,
}

/// Why a list of looks is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LooksError {
    /// No size given.
    Empty,
    /// Sizes do not rise.
    NotAscending {
        /// The size that is not above the one before it.
        found: u32,
    },
    /// A size is zero.
    Zero,
}

impl fmt::Display for LooksError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(
                formatter,
                "looks: empty; name at least one number of blocks, such as [6, 8, 10]"
            ),
            Self::NotAscending { found } => {
                write!(
                    formatter,
                    "looks: {found} is not above the number before it; write them in rising order"
                )
            }
            Self::Zero => write!(
                formatter,
                "looks: 0 blocks measure nothing; the smallest allowed number is 1"
            ),
        }
    }
}

impl std::error::Error for LooksError {}

impl Looks {
    /// A fixed design: one look after `blocks` blocks.
    pub fn fixed(blocks: u32) -> Self {
        Self {
            sizes: vec![blocks.max(1)],
        }
    }

    /// Looks at these numbers of blocks.
    ///
    /// # Errors
    /// When the list is empty, does not rise, or has a zero.
    pub fn planned(sizes: &[u32]) -> Result<Self, LooksError> {
        if sizes.is_empty() {
            return Err(LooksError::Empty);
        }
        if sizes.contains(&0) {
            return Err(LooksError::Zero);
        }
        match sizes.windows(2).find(|pair| pair[1] <= pair[0]) {
            Some(pair) => Err(LooksError::NotAscending { found: pair[1] }),
            None => Ok(Self {
                sizes: sizes.to_vec(),
            }),
        }
    }

    /// The planned numbers of blocks, ascending.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// The most blocks that may be measured.
    pub fn last(&self) -> u32 {
        self.sizes.last().copied().unwrap_or(1)
    }

    /// The latest look reached after `finished` blocks (measured or lost).
    pub fn reached(&self, finished: u32) -> Option<Look> {
        let number = self.sizes.iter().filter(|size| **size <= finished).count();
        let blocks = *self.sizes.get(number.checked_sub(1)?)?;
        Some(Look {
            number: number as u32,
            blocks,
            last: number == self.sizes.len(),
        })
    }

    /// The number of blocks of the next look.
    pub fn after(&self, finished: u32) -> Option<u32> {
        self.sizes.iter().copied().find(|size| *size > finished)
    }

    /// The nominal level of one effect at each look. Sizes other than the two simulated lists use an equal share
    /// per look (Bonferroni), which is valid for any list and needs more blocks.
    pub fn nominal(&self) -> f64 {
        PLANNED
            .iter()
            .find(|(sizes, _)| *sizes == self.sizes)
            .map_or(FAMILY_LEVEL / self.sizes.len() as f64, |(_, level)| *level)
    }

    /// The level for each of `effects` effects still standing in Holm's procedure.
    pub fn level(&self, effects: usize) -> f64 {
        let effects = effects.max(1) as f64;
        let simulated = PLANNED.iter().any(|(sizes, _)| *sizes == self.sizes);
        let tail = if simulated {
            1.0 + TAIL * effects.log2()
        } else {
            1.0
        };
        self.nominal() / (effects * tail)
    }
}

#[cfg(test)]
mod tests {
    use super::{Look, Looks, LooksError};

    #[test]
    fn levels_are_those_of_the_plan() {
        assert!((Looks::fixed(6).nominal() - 0.05).abs() < 1e-12);
        assert!((Looks::planned(&[6, 8, 10]).unwrap().nominal() - 0.0247).abs() < 1e-12);
        assert!((Looks::planned(&[6, 8, 12, 16, 20]).unwrap().nominal() - 0.0156).abs() < 1e-12);
        assert!((Looks::planned(&[6, 9]).unwrap().nominal() - 0.025).abs() < 1e-12);
        assert!((Looks::fixed(6).level(4) - 0.0125).abs() < 1e-12);
        assert!((Looks::planned(&[6, 8, 10]).unwrap().level(1) - 0.0247).abs() < 1e-12);
        assert!(Looks::planned(&[6, 8, 10]).unwrap().level(4) < 0.0247 / 4.0);
    }

    #[test]
    fn a_look_is_reached_only_at_its_size() {
        let looks = Looks::planned(&[6, 8, 10]).unwrap();
        assert_eq!(looks.reached(5), None);
        assert_eq!(
            looks.reached(6),
            Some(Look {
                number: 1,
                blocks: 6,
                last: false
            })
        );
        assert_eq!(
            looks.reached(7),
            Some(Look {
                number: 1,
                blocks: 6,
                last: false
            })
        );
        assert_eq!(
            looks.reached(11),
            Some(Look {
                number: 3,
                blocks: 10,
                last: true
            })
        );
        assert_eq!(
            (looks.after(5), looks.after(6), looks.after(10)),
            (Some(6), Some(8), None)
        );
        assert_eq!(looks.last(), 10);
    }

    #[test]
    fn refuses_lists_that_mean_nothing() {
        assert_eq!(Looks::planned(&[]), Err(LooksError::Empty));
        assert_eq!(
            Looks::planned(&[6, 6]),
            Err(LooksError::NotAscending { found: 6 })
        );
        assert_eq!(Looks::planned(&[0, 6]), Err(LooksError::Zero));
        let message = Looks::planned(&[8, 6]).unwrap_err().to_string();
        assert!(message.contains("looks") && message.contains('6') && message.contains("rising"));
    }
}
