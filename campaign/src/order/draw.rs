//! Seeded draws whose values never change: `ChaCha8` keyed by SHA-256 of purpose and seed, so that two purposes
//! of one seed share nothing, and own shuffling, because a library may change how it shuffles.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};

/// A campaign's or a group's random seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seed(pub u64);

impl Seed {
    /// The seed of a part, named by `part` (a comparison and the axes fixed in it, say): the same name gives the
    /// same seed, another name an unrelated one.
    #[must_use]
    pub fn derive(self, part: &str) -> Self {
        Self(self.draw(part).bits())
    }

    /// A stream of draws for one purpose.
    pub fn draw(self, purpose: &str) -> Draw {
        let mut hash = Sha256::new();
        hash.update(self.0.to_le_bytes());
        hash.update(purpose.as_bytes());
        Draw {
            stream: ChaCha8Rng::from_seed(hash.finalize().into()),
        }
    }
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Draw {
    stream: ChaCha8Rng,
}

impl Draw {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.stream.next_u64()
    }

    /// A number from 0 to `limit` - 1, each equally likely; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        // Numbers above the last whole multiple of the limit would make the low remainders likelier.
        let excess = (u64::MAX % limit + 1) % limit;
        loop {
            let number = self.bits();
            if number <= u64::MAX - excess {
                return number % limit;
            }
        }
    }

    /// A number strictly between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A draw from the standard normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Puts the items into a random order, each order equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}
