//! Every example is planned: what runs on a small node is accepted, and what is refused is refused for what this release
//! does not measure, never for a budget.

// A test may panic: clippy knows it of test functions, not of what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use campaign::budget::{self, Budget, Seen};
use campaign::matrix::{self, Problem};
use campaign::order::Seed;
use campaign::{blocks, report};
use crds::BenchmarkCampaign;
use crds::campaign::{Inference, Order};
use crds::load::{CacheState, RestartWhen};
use serde_json::Value;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

fn campaigns() -> Vec<(String, BenchmarkCampaign)> {
    let studies = examples().join("studies");
    let mut files = vec![examples().join("quickstart.yaml")];
    files.extend(
        std::fs::read_dir(studies)
            .unwrap()
            .map(|entry| entry.unwrap().path()),
    );
    files.sort();
    files
        .into_iter()
        .map(|file| {
            let text = std::fs::read_to_string(&file).unwrap();
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let documents: Vec<Value> =
                serde_yaml::from_multiple(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let campaign = documents
                .into_iter()
                .find(|document| document["kind"] == "BenchmarkCampaign")
                .unwrap_or_else(|| panic!("{name}: no campaign"));
            (name, serde_json::from_value(campaign).unwrap())
        })
        .collect()
}

fn campaign(name: &str) -> BenchmarkCampaign {
    let found = campaigns().into_iter().find(|(file, _)| file == name);
    found.unwrap_or_else(|| panic!("no {name}")).1
}

fn planned(campaign: &BenchmarkCampaign) -> Result<Budget, Vec<Problem>> {
    let matrix = matrix::expand(&campaign.spec)?;
    let plan = blocks::lay_out(&matrix, Seed(1))?;
    let budget = budget::of(&matrix, &plan, &Seen::default());
    if budget.problems.is_empty() {
        Ok(budget)
    } else {
        Err(budget.problems)
    }
}

#[test]
fn every_example_is_accepted_or_refused_for_what_this_release_does_not_measure() {
    let mut reduced = 0;
    for (name, campaign) in campaigns() {
        match planned(&campaign) {
            Ok(budget) => assert!(budget.estimated_seconds > 0, "{name}"),
            Err(problems) => {
                assert!(!name.contains("reduced"), "{name}: {problems:?}");
                for problem in &problems {
                    assert!(problem.allowed.contains("this release"), "{name}: {problem}");
                }
            }
        }
        reduced += usize::from(name.contains("reduced"));
    }
    assert_eq!(reduced, 6);
}
