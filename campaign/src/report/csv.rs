//! Runs as comma-separated values, one line a run, every attempt, in the order of the plan: all data of a campaign.

use std::fmt::Write as _;

use crds::BenchmarkRun;
use crds::run::{RunResult, ValidityVerdict};

const HEADING: &str = "iteration,sequence,attempt,comparison,block,position,ordinal,arm,database,instance_size,\
parameter_template,audit_setting,workload,threads,step,valid,reasons,symptoms,qps,tps,transactions,latency_mean_ms,\
latency_p95_ms,latency_max_ms,errors,stalled_seconds,cpu_ns_per_statement,log_bytes_per_1000_statements,boot";

/// All runs with their figures; what is not known is empty.
pub fn runs<'a>(runs: impl IntoIterator<Item = &'a BenchmarkRun>) -> String {
    let mut runs: Vec<&BenchmarkRun> = runs.into_iter().collect();
    runs.sort_by_key(|run| {
        (
            run.spec.visit.iteration,
            run.spec.visit.sequence,
            run.spec.attempt,
        )
    });
    let mut text = format!("{HEADING}\n");
    for run in runs {
        let (visit, cell) = (&run.spec.visit, &run.spec.cell);
        let status = run.status.clone().unwrap_or_default();
        let valid = status
            .validity
            .as_ref()
            .map_or("", |validity| match validity.verdict {
                ValidityVerdict::Valid => "true",
                ValidityVerdict::Invalid => "false",
            });
        let words = |findings: &[crds::run::Finding]| {
            findings
                .iter()
                .map(|found| found.reason.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let reasons = status
            .validity
            .as_ref()
            .map(|validity| words(&validity.reasons))
            .unwrap_or_default();
        let boot = status
            .evidence
            .as_ref()
            .map(|evidence| evidence.boot_identity.clone())
            .unwrap_or_default();
        let result = status.result.clone().unwrap_or_default();
        let fields = [
            visit.iteration.to_string(),
            visit.sequence.to_string(),
            run.spec.attempt.to_string(),
            quoted(&visit.comparison),
            visit.block.to_string(),
            visit.position.to_string(),
            visit.ordinal.to_string(),
            quoted(&visit.arm),
            quoted(&cell.database),
            quoted(&cell.instance_size),
            quoted(&cell.parameter_template),
            quoted(&cell.audit_setting),
            quoted(&cell.workload),
            run.spec.threads.to_string(),
            format!("{:?}", status.step),
            valid.to_owned(),
            quoted(&reasons),
            quoted(&words(&status.symptoms)),
            figures(&result),
            quoted(&boot),
        ];
        let _ = writeln!(text, "{}", fields.join(","));
    }
    text
}

fn figures(result: &RunResult) -> String {
    let thousandths = |value: Option<i64>| {
        value.map_or_else(String::new, |value| {
            format!("{}.{:03}", value.div_euclid(1000), value.rem_euclid(1000))
        })
    };
    let whole = |value: Option<i64>| value.map_or_else(String::new, |value| value.to_string());
    [
        thousandths(result.qps_milli),
        thousandths(result.tps_milli),
        whole(result.transactions),
        thousandths(result.latency_mean_micros),
        thousandths(result.latency_p95_micros),
        thousandths(result.latency_max_micros),
        whole(result.errors),
        whole(result.stalled_seconds),
        whole(result.cpu_nanos_per_statement),
        whole(result.log_bytes_per_1000_statements),
    ]
    .join(",")
}

/// A field, in quotes where it needs them.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
