//! Computes the constants of `campaign::inference::Looks` by a seeded simulation, and the family error that they
//! keep. Run it with `cargo run --release -p campaign --example look_constants`; it takes about a minute.

use campaign::inference::Looks;
use campaign::order::Seed;
use statrs::distribution::{ContinuousCDF, StudentsT};

const CAMPAIGNS: u32 = 1_000_000;
const FAMILY_LEVEL: f64 = 0.05;

/// For each campaign with one effect that is truly zero, the smallest two-sided p-value over its looks.
fn smallest_p_values(sizes: &[u32]) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let mut draw = Seed(1).draw("look constants");
    let mut smallest = Vec::with_capacity(CAMPAIGNS as usize);
    let distributions: Vec<StudentsT> = sizes
        .iter()
        .map(|blocks| StudentsT::new(0.0, 1.0, f64::from(*blocks) - 1.0))
        .collect::<Result<_, _>>()?;
    for _ in 0..CAMPAIGNS {
        let (mut sum, mut squares, mut blocks, mut least) = (0.0, 0.0, 0, 1.0_f64);
        for (&size, distribution) in sizes.iter().zip(&distributions) {
            while blocks < size {
                let ratio = draw.normal();
                sum += ratio;
                squares += ratio * ratio;
                blocks += 1;
            }
            let count = f64::from(blocks);
            let variance = (squares - sum * sum / count) / (count - 1.0);
            let t = (sum / count) / (variance / count).sqrt();
            least = least.min(2.0 * distribution.cdf(-t.abs()));
        }
        smallest.push(least);
    }
    smallest.sort_by(f64::total_cmp);
    Ok(smallest)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{CAMPAIGNS} campaigns without any effect; the standard error of an error rate is about 0.0002");
    for sizes in [&[6, 8, 10][..], &[6, 8, 12, 16, 20]] {
        let looks = Looks::planned(sizes)?;
        let p_values = smallest_p_values(sizes)?;
        let quantile = p_values[(FAMILY_LEVEL * f64::from(CAMPAIGNS)) as usize];
        println!(
            "looks {sizes:?}: nominal level {:.4}; the simulation gives {quantile:.4}",
            looks.nominal()
        );
        for effects in [1_u16, 2, 4, 8, 16, 32] {
            let level = looks.level(usize::from(effects));
            let claimed = p_values.partition_point(|p| *p < level) as f64 / f64::from(CAMPAIGNS);
            let family = 1.0 - (1.0 - claimed).powi(i32::from(effects));
            println!("  {effects:2} effects: level of each {level:.5}, error of the family {family:.4}");
        }
    }
    Ok(())
}
