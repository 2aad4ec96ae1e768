//! Every example is planned: what runs on a small node is accepted, and what is refused is refused for what this release
//! does not measure, never for a budget.

// A test may panic: clippy knows it of test functions, not of what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use campaign::blocks;
use campaign::budget::{self, Budget, Seen, time};
use campaign::matrix::{self, Problem};
use campaign::order::Seed;
use campaign::report::layout::{Choice, layouts};
use campaign::run_planner::job_deadline_seconds;
use crds::BenchmarkCampaign;
use crds::audit::AuditType;
use crds::load::RestartWhen;
use crds::target::TargetType;
use serde_json::{Value, json};

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
    assert_eq!(reduced, 7);
}

/// What a release cannot run must not hide a budget that does not hold: with the nearest that it can, every study is accepted.
#[test]
fn no_study_has_a_budget_that_does_not_hold() {
    for (name, mut campaign) in campaigns() {
        for database in &mut campaign.spec.databases {
            if let Some(expect) = &mut database.expect {
                expect.version = expect.version.take().filter(|version| version != "5.6");
            }
            if database.type_ == TargetType::External {
                let managed = json!({"image": "mysql:9", "storage": {"size": "100Gi"}});
                database.type_ = TargetType::Managed;
                database.external = None;
                database.managed = Some(serde_json::from_value(managed).unwrap());
            }
        }
        for audit in &mut campaign.spec.audit_settings {
            if audit.type_ == AuditType::TaurusSqlAudit {
                audit.type_ = AuditType::SlowLog;
                audit.taurus_sql_audit = None;
                audit.log.as_mut().unwrap().limit = Some(serde_json::from_value(json!("80Gi")).unwrap());
            }
        }
        assert_eq!(planned(&campaign).err(), None, "{name}");
    }
}

#[test]
fn every_study_says_its_tables_and_they_fit_its_axes() {
    for (name, campaign) in campaigns()
        .into_iter()
        .filter(|(name, _)| name.starts_with("study-"))
    {
        let tables = layouts(&campaign, &Choice::default()).unwrap_or_else(|why| panic!("{name}: {why}"));
        let said = campaign
            .metadata
            .annotations
            .as_ref()
            .map(std::collections::BTreeMap::len);
        assert!(!tables.is_empty() && said == Some(1), "{name}");
    }
}

/// Each reduced variant asks for the same tables as its study, but for the names of its levels.
#[test]
fn a_reduced_study_ends_with_the_tables_of_its_study() {
    let studies = campaigns();
    for (name, whole) in studies
        .iter()
        .filter(|(name, _)| name.starts_with("study-") && !name.contains("reduced"))
    {
        let reduced = campaign(&name.replace(".yaml", ".reduced.yaml"));
        let tables = |campaign: &BenchmarkCampaign| layouts(campaign, &Choice::default()).unwrap();
        assert_eq!(tables(whole), tables(&reduced), "{name}");
        assert!(
            reduced
                .metadata
                .name
                .unwrap()
                .starts_with(whole.metadata.name.as_deref().unwrap())
        );
    }
}

/// Study 1 with the oldest server that can be run: its method stays as it was.
fn study_1() -> BenchmarkCampaign {
    let mut campaign = campaign("study-1-percona-audit-log.yaml");
    campaign.spec.databases[0].expect.as_mut().unwrap().version = Some("8.0".into());
    campaign
}

#[test]
fn a_for_loop_with_a_restart_and_a_sleep_before_every_run_can_be_asked_for() {
    let campaign = study_1();
    let matrix = matrix::expand(&campaign.spec).unwrap();
    let plan = blocks::lay_out(&matrix, Seed(1)).unwrap();
    assert_eq!(plan.burn_in_runs(), 0, "a loop has none");
    assert!(
        plan.places
            .iter()
            .all(|place| time::boots(place, RestartWhen::BeforeEachRun))
    );
    for group in &plan.groups {
        assert_eq!(group.threads, [16, 32, 64, 128, 256], "as listed");
    }
    // All of one arm, then all of the next.
    let arms: Vec<u16> = plan
        .places
        .iter()
        .filter(|place| place.group == 0)
        .map(|place| place.arm)
        .collect();
    assert!(arms.is_sorted(), "{arms:?}");
    let estimated = |campaign: &BenchmarkCampaign| planned(campaign).unwrap().estimated_seconds;
    let mut awake = campaign.clone();
    awake.spec.restart.settle.fixed_sleep = None;
    assert_eq!(
        estimated(&campaign) - estimated(&awake),
        30 * plan.places.len() as i64
    );
    assert!(
        job_deadline_seconds(&campaign.spec.run) > 3600,
        "an hour has its time"
    );
}

/// The two questions share cells, and each is measured for itself: 30 cells make 60 runs. With one question it is the
/// study's own loop.
#[test]
fn a_cell_in_two_questions_is_measured_for_each() {
    let mut campaign = study_1();
    let runs = |campaign: &BenchmarkCampaign| {
        let matrix = matrix::expand(&campaign.spec).unwrap();
        (
            matrix.cells(),
            blocks::lay_out(&matrix, Seed(1)).unwrap().places.len(),
        )
    };
    assert_eq!(runs(&campaign), (30, 60));
    campaign.spec.comparisons.truncate(1);
    assert_eq!(runs(&campaign), (30, 30));
}

#[test]
fn single_runs_are_for_descriptive_numbers_only() {
    let mut campaign = study_1();
    assert_eq!(campaign.spec.repetitions.blocks, Some(1));
    campaign.spec.inference = crds::campaign::Inference::Comparative;
    let problems = planned(&campaign).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].field, "spec.repetitions.blocks");
}

#[test]
fn parameters_of_one_database_are_its_own() {
    let mut campaign = campaign("study-3-parameter-templates.yaml");
    campaign.spec.databases[0].expect = None;
    let matrix = matrix::expand(&campaign.spec).unwrap();
    let own: Vec<(&str, &str)> = matrix
        .rows
        .iter()
        .filter(|row| {
            matrix
                .parameters(row.levels)
                .parameters
                .contains_key("innodb_dedicated_server")
        })
        .map(|row| {
            (
                matrix.database(row.levels).name.as_str(),
                matrix.template(row.levels).name.as_str(),
            )
        })
        .collect();
    assert_eq!(own, [("mysql-8-0", "high-stability"); 3]);
}

#[test]
fn several_questions_have_baselines_of_their_own() {
    let mut campaign = campaign("study-3-parameter-templates.yaml");
    campaign.spec.databases[0].expect = None;
    let baselines = |campaign: &BenchmarkCampaign| -> std::collections::BTreeSet<(String, String)> {
        let matrix = matrix::expand(&campaign.spec).unwrap();
        let plan = blocks::lay_out(&matrix, Seed(1)).unwrap();
        let question =
            |group: &blocks::Group| campaign.spec.comparisons[group.comparison.unwrap()].name.clone();
        plan.groups
            .iter()
            .map(|group| (question(group), group.arms[0].name.clone()))
            .collect()
    };
    let of = |pairs: [(&str, &str); 2]| {
        pairs
            .map(|(name, level)| (name.to_owned(), level.to_owned()))
            .into()
    };
    assert_eq!(
        baselines(&campaign),
        of([("template", "default"), ("version", "mysql-5-7")])
    );
    // Two of one axis, as study 4 has them.
    let again = json!([
        {"name": "template", "axis": "ParameterTemplate", "baseline": "default"},
        {"name": "stability", "axis": "ParameterTemplate", "baseline": "high-stability"},
    ]);
    campaign.spec.comparisons = serde_json::from_value(again).unwrap();
    assert_eq!(
        baselines(&campaign),
        of([("template", "default"), ("stability", "high-stability")])
    );
}

/// Study 4's halves have baselines of their own, and are one campaign: no arm of one is measured for the other.
#[test]
fn two_questions_over_one_axis_have_their_own_baselines_and_levels() {
    let whole = campaign("study-4-both-halves.yaml");
    let halves = [
        "study-4-mcafee-and-slow-log.yaml",
        "study-4-oracle-audit-log.yaml",
    ]
    .map(campaign);
    let runs = |campaign: &BenchmarkCampaign| {
        let matrix = matrix::expand(&campaign.spec).unwrap();
        let plan = blocks::lay_out(&matrix, Seed(1)).unwrap();
        let arms: Vec<Vec<String>> = plan
            .groups
            .iter()
            .map(|group| group.arms.iter().map(|arm| arm.name.clone()).collect())
            .collect();
        (plan.places.len(), arms)
    };
    let (places, arms) = runs(&whole);
    assert_eq!(places, halves.iter().map(|half| runs(half).0).sum::<usize>());
    assert_eq!(
        arms,
        [vec!["base", "slow-log", "mcafee"], vec!["base-oracle", "oracle"]]
    );
    let budget = planned(&whole).unwrap();
    assert!(
        budget.instances.values().all(|given| given.buffer_pool.is_none()),
        "the manifest says it"
    );
}

#[test]
fn a_managed_mysql_before_5_7_is_refused() {
    for (version, refused) in [
        ("5.6", true),
        ("5.5.62", true),
        ("5.7", false),
        ("5", false),
        ("8.0", false),
        ("9", false),
    ] {
        let mut campaign = study_1();
        campaign.spec.databases[0].expect.as_mut().unwrap().version = Some(version.to_owned());
        let found = planned(&campaign).err().unwrap_or_default();
        assert_eq!(
            found
                .iter()
                .any(|problem| problem.field == "spec.databases[0].expect.version"),
            refused,
            "{version}"
        );
    }
}
