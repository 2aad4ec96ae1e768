//! The order of visits: which arm comes when in which block, the order of thread counts inside a visit,
//! the burn-in and the load generator's seed. Everything follows from one 64-bit seed and is the same on
//! every machine and in every version; nothing here knows what an arm is.

mod draw;
mod squares;
#[cfg(test)]
mod tests;

pub use draw::{Draw, Seed};

/// How visits are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Blocks: every arm once, then the next block. Two arms alternate AB BA AB BA, more arms follow the
    /// rows of Williams squares, each row next to its reversal.
    #[default]
    Balanced,
    /// What a for-loop does: all repetitions of the first arm, then all of the second. It confounds the arms
    /// with time and exists to repeat published studies.
    Grouped,
}

/// One visit: one arm in one block, which is one boot of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Block, from 0. Under [`Order::Grouped`] the number of the repetition.
    pub block: u32,
    /// Place of the visit in its block, from 0. Under [`Order::Grouped`] the place of the arm in the list.
    pub position: u32,
    /// Index of the arm in the list given, from 0.
    pub arm: usize,
    /// Thread counts of the runs inside the visit, in the order in which they run.
    pub threads: Vec<u32>,
}

/// The visits of one group of blocks (one comparison, every other axis fixed), in the order in which they run.
///
/// `arms` counts the arms, the baseline and a repeated baseline included; `threads` are the thread counts as
/// declared. Every arm appears exactly once in every block, and all arms of a block run their thread counts in
/// the same order. Give each group its own seed ([`Seed::derive`]), so that groups do not share an order.
pub fn visits(arms: usize, threads: &[u32], blocks: u32, order: Order, seed: Seed) -> Vec<Visit> {
    match order {
        Order::Balanced => balanced(arms, threads, blocks, seed),
        Order::Grouped => grouped(arms, threads, blocks),
    }
}

/// The burn-in before the blocks: one visit per arm at the lowest thread count, in the order of the first
/// block, measured and never counted. A for-loop has none, so [`Order::Grouped`] gives an empty list.
pub fn burn_in(arms: usize, threads: &[u32], order: Order, seed: Seed) -> Vec<Visit> {
    let Some(lowest) = threads.iter().copied().min() else {
        return Vec::new();
    };
    match order {
        Order::Balanced => balanced(arms, &[lowest], 1, seed),
        Order::Grouped => Vec::new(),
    }
}

/// The load generator's random seed in a block: the same for all arms of the block, different between blocks.
/// From 1 to 2147483647, because sysbench takes 0 to mean "from the clock" and reads a signed 32-bit number.
pub fn load_seed(seed: Seed, block: u32) -> u32 {
    const HIGHEST: u64 = 2_147_483_647;
    // Consecutive numbers from a drawn start cannot repeat within a campaign, which independent draws could.
    let start = seed.draw("load").below(HIGHEST);
    let offset = (start + u64::from(block)) % HIGHEST;
    u32::try_from(offset + 1).unwrap_or(1)
}

fn balanced(arms: usize, threads: &[u32], blocks: u32, seed: Seed) -> Vec<Visit> {
    let sequences = arm_sequences(arms, seed);
    if sequences.is_empty() {
        return Vec::new();
    }
    let thread_orders = thread_orders(threads, blocks, seed);
    let mut visits = Vec::with_capacity(arms * blocks as usize);
    for (block, (sequence, threads)) in sequences.iter().cycle().zip(&thread_orders).enumerate() {
        for (position, &arm) in sequence.iter().enumerate() {
            visits.push(Visit {
                block: block as u32,
                position: position as u32,
                arm,
                threads: threads.clone(),
            });
        }
    }
    visits
}

fn grouped(arms: usize, threads: &[u32], blocks: u32) -> Vec<Visit> {
    (0..arms)
        .flat_map(|arm| {
            (0..blocks).map(move |block| Visit {
                block,
                position: arm as u32,
                arm,
                threads: threads.to_vec(),
            })
        })
        .collect()
}

/// One cycle of arm sequences: rows of a Williams square, each directly followed by its reversal, so that
/// after any even number of blocks every pair of arms has met equally often in both orders and a linear drift
/// cancels; after the full cycle each arm has also followed each other arm equally often.
fn arm_sequences(arms: usize, seed: Seed) -> Vec<Vec<usize>> {
    let mut draw = seed.draw("arms");
    let mut labels: Vec<usize> = (0..arms).collect();
    draw.shuffle(&mut labels);
    let mut pairs = squares::reversal_pairs(arms);
    draw.shuffle(&mut pairs);
    pairs
        .into_iter()
        .flatten()
        .map(|row| row.into_iter().map(|arm| labels[arm]).collect())
        .collect()
}

/// The order of thread counts for each block.
///
/// The two squares of an odd number of thread counts alternate, and every further cycle starts one row later:
/// otherwise the thread order would have the same period of two blocks as the order of two arms, and each
/// order of the arms would always meet the same orders of the threads.
fn thread_orders(threads: &[u32], blocks: u32, seed: Seed) -> Vec<Vec<u32>> {
    let mut draw = seed.draw("threads");
    let mut squares = squares::williams(threads.len());
    for square in &mut squares {
        draw.shuffle(square);
    }
    let rows = squares.first().map_or(0, Vec::len);
    let cycle: Vec<&Vec<usize>> = (0..rows)
        .flat_map(|row| squares.iter().map(move |square| &square[row]))
        .collect();
    (0..blocks as usize)
        .map(|block| {
            if cycle.is_empty() {
                return Vec::new();
            }
            let row = cycle[(block + block / cycle.len()) % cycle.len()];
            row.iter().map(|&place| threads[place]).collect()
        })
        .collect()
}
