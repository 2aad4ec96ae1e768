//! Laws of the order, for any seed, any number of arms and of thread counts.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{Order, Seed, Visit, burn_in, load_seed, visits};

const THREADS: [u32; 5] = [2, 4, 8, 16, 32];

fn arms_by_block(visits: &[Visit]) -> Vec<Vec<usize>> {
    let mut blocks: BTreeMap<u32, Vec<(u32, usize)>> = BTreeMap::new();
    for visit in visits {
        blocks
            .entry(visit.block)
            .or_default()
            .push((visit.position, visit.arm));
    }
    blocks
        .into_values()
        .map(|mut block| {
            block.sort_unstable();
            block.into_iter().map(|(_, arm)| arm).collect()
        })
        .collect()
}

fn thread_orders(visits: &[Visit]) -> Vec<Vec<u32>> {
    visits
        .iter()
        .filter(|visit| visit.position == 0)
        .map(|visit| visit.threads.clone())
        .collect()
}

#[test]
fn two_arms_alternate_and_the_seed_chooses_the_start() {
    let mut starts = BTreeSet::new();
    for seed in 0..32 {
        let blocks = arms_by_block(&visits(2, &[4], 6, Order::Balanced, Seed(seed)));
        starts.insert(blocks[0].clone());
        for pair in blocks.windows(2) {
            assert_eq!(
                pair[0],
                pair[1].iter().rev().copied().collect::<Vec<_>>(),
                "seed {seed}"
            );
        }
    }
    assert_eq!(starts.len(), 2, "both starts occur");
}

#[test]
fn a_seed_keeps_its_order_for_ever() {
    // Changing these values would change what a campaign with a stated seed runs.
    let order = visits(3, &[2, 4, 8], 6, Order::Balanced, Seed(7));
    let text: Vec<String> = arms_by_block(&order)
        .iter()
        .zip(thread_orders(&order))
        .map(|(arms, threads)| format!("{arms:?} {threads:?}"))
        .collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    [0, 2, 1] [8, 2, 4]
    [1, 2, 0] [2, 8, 4]
    [2, 1, 0] [2, 4, 8]
    [0, 1, 2] [8, 4, 2]
    [1, 0, 2] [4, 8, 2]
    [2, 0, 1] [4, 2, 8]
    ");
    insta::assert_snapshot!(format!("{} {}", load_seed(Seed(7), 0), load_seed(Seed(7), 1)), @"1802980527 1802980528");
    insta::assert_snapshot!(Seed(7).derive("audit").0, @"7364985018727202034");
}

#[test]
fn three_thread_counts_in_six_blocks_use_all_six_permutations() {
    for seed in 0..50 {
        let orders = thread_orders(&visits(2, &[2, 4, 8], 6, Order::Balanced, Seed(seed)));
        assert_eq!(
            orders.iter().collect::<BTreeSet<_>>().len(),
            6,
            "seed {seed}: {orders:?}"
        );
    }
}

#[test]
fn each_order_of_two_arms_meets_every_thread_count_at_every_place() {
    for seed in 0..50 {
        let order = visits(2, &[2, 4, 8], 6, Order::Balanced, Seed(seed));
        for parity in [0, 1] {
            for place in 0..3 {
                let met: BTreeSet<u32> = thread_orders(&order)
                    .iter()
                    .enumerate()
                    .filter(|(block, _)| block % 2 == parity)
                    .map(|(_, threads)| threads[place])
                    .collect();
                assert_eq!(met.len(), 3, "seed {seed}");
            }
        }
    }
}

#[test]
fn two_thread_counts_do_not_follow_the_order_of_two_arms() {
    for seed in 0..50 {
        let order = visits(2, &[2, 4], 8, Order::Balanced, Seed(seed));
        let first_of_even_blocks: Vec<u32> = thread_orders(&order)
            .iter()
            .step_by(2)
            .map(|threads| threads[0])
            .collect();
        assert_eq!(
            first_of_even_blocks
                .iter()
                .filter(|&&threads| threads == 2)
                .count(),
            2,
            "seed {seed}"
        );
    }
}

#[test]
fn grouped_is_a_for_loop() {
    let order = visits(2, &[8, 4], 3, Order::Grouped, Seed(1));
    assert_eq!(
        order.iter().map(|visit| visit.arm).collect::<Vec<_>>(),
        [0, 0, 0, 1, 1, 1]
    );
    assert!(order.iter().all(|visit| visit.threads == [8, 4]), "as declared");
    assert!(burn_in(2, &[8, 4], Order::Grouped, Seed(1)).is_empty());
}

#[test]
fn burn_in_visits_every_arm_once_at_the_lowest_thread_count() {
    let visits = burn_in(4, &[16, 2, 8], Order::Balanced, Seed(3));
    assert_eq!(
        visits
            .iter()
            .map(|visit| visit.arm)
            .collect::<BTreeSet<_>>()
            .len(),
        4
    );
    assert!(visits.iter().all(|visit| visit.threads == [2]));
}

#[test]
fn nothing_to_visit_gives_nothing() {
    assert!(visits(0, &[4], 6, Order::Balanced, Seed(1)).is_empty());
    assert!(visits(2, &[4], 0, Order::Balanced, Seed(1)).is_empty());
    assert_eq!(visits(1, &[4], 3, Order::Balanced, Seed(1)).len(), 3);
    assert!(burn_in(2, &[], Order::Balanced, Seed(1)).is_empty());
}

proptest! {
    #[test]
    fn every_arm_once_a_block_with_one_thread_order(
        arms in 1_usize..8, levels in 1_usize..6, blocks in 1_u32..24, seed: u64, grouped: bool,
    ) {
        let order = if grouped { Order::Grouped } else { Order::Balanced };
        let list = visits(arms, &THREADS[..levels], blocks, order, Seed(seed));
        prop_assert_eq!(list.len(), arms * blocks as usize);
        for block in 0..blocks {
            let of_block: Vec<&Visit> = list.iter().filter(|visit| visit.block == block).collect();
            let arms_seen: BTreeSet<usize> = of_block.iter().map(|visit| visit.arm).collect();
            let places: BTreeSet<u32> = of_block.iter().map(|visit| visit.position).collect();
            prop_assert_eq!(arms_seen.len(), arms);
            prop_assert_eq!(places.len(), arms);
            for visit in of_block {
                prop_assert_eq!(&visit.threads, &list.iter().find(|other| other.block == block).unwrap().threads);
                let mut sorted = visit.threads.clone();
                sorted.sort_unstable();
                prop_assert_eq!(&sorted[..], &THREADS[..levels]);
            }
        }
        prop_assert_eq!(&list, &visits(arms, &THREADS[..levels], blocks, order, Seed(seed)));
    }

    #[test]
    fn after_an_even_number_of_blocks_every_pair_met_equally_often_in_both_orders(
        arms in 2_usize..8, half in 1_u32..8, seed: u64,
    ) {
        let blocks = arms_by_block(&visits(arms, &[4], half * 2, Order::Balanced, Seed(seed)));
        for first in 0..arms {
            for second in 0..arms {
                let before = blocks.iter().filter(|block| {
                    block.iter().position(|arm| *arm == first) < block.iter().position(|arm| *arm == second)
                });
                prop_assert!(first == second || before.count() == half as usize);
            }
        }
    }

    #[test]
    fn a_full_cycle_balances_places_and_first_order_carry_over(arms in 2_usize..8, seed: u64) {
        let cycle = if arms % 2 == 0 { arms } else { 2 * arms };
        let blocks = arms_by_block(&visits(arms, &[4], cycle as u32, Order::Balanced, Seed(seed)));
        let mut places: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut followers: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for block in &blocks {
            for (place, arm) in block.iter().enumerate() {
                *places.entry((place, *arm)).or_default() += 1;
            }
            for pair in block.windows(2) {
                *followers.entry((pair[0], pair[1])).or_default() += 1;
            }
        }
        prop_assert_eq!(places.len(), arms * arms);
        prop_assert!(places.values().all(|times| *times == cycle / arms));
        prop_assert_eq!(followers.len(), arms * (arms - 1));
        prop_assert!(followers.values().all(|times| *times == cycle / arms));
    }

    #[test]
    fn a_cycle_of_thread_orders_has_every_thread_count_at_every_place_equally_often(
        levels in 2_usize..6, seed: u64,
    ) {
        let cycle = if levels % 2 == 0 { levels } else { 2 * levels };
        let orders = thread_orders(&visits(2, &THREADS[..levels], cycle as u32, Order::Balanced, Seed(seed)));
        let mut places: BTreeMap<(usize, u32), usize> = BTreeMap::new();
        for order in &orders {
            for (place, threads) in order.iter().enumerate() {
                *places.entry((place, *threads)).or_default() += 1;
            }
        }
        prop_assert_eq!(places.len(), levels * levels);
        prop_assert!(places.values().all(|times| *times == cycle / levels));
    }

    #[test]
    fn load_seeds_differ_between_blocks_and_are_never_zero(seed: u64, first in 0_u32..5_000, apart in 1_u32..5_000) {
        let one = load_seed(Seed(seed), first);
        prop_assert!((1..=2_147_483_647).contains(&one));
        prop_assert_ne!(one, load_seed(Seed(seed), first + apart));
    }
}
