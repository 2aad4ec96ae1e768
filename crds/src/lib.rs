//! The API of the benchmark campaign operator: four kinds, each creating the next.
//!
//! This crate holds types, their validation rules and the names that every other crate must spell alike.
//! It talks to nothing and decides nothing.

// Doc comments are the descriptions that `kubectl explain` prints as they are: no marks for the sake of a document.
#![allow(clippy::doc_markdown)]
// One attribute of the derive describes several columns of one type.
#![allow(clippy::duplicated_attributes)]
// The schema derive repeats each struct inside a function, where `pub` cannot be reached.
#![allow(unreachable_pub)]

pub mod audit;
pub mod campaign;
pub mod dataset;
pub mod environment;
pub mod load;
pub mod names;
pub mod parameter;
mod permissions;
pub mod placement;
pub mod quantity;
pub mod relative;
pub mod run;
pub mod runner;
pub mod schedule;
pub mod schema;
pub mod target;
pub mod together;
pub mod workload;

pub use campaign::{BenchmarkCampaign, BenchmarkCampaignSpec, BenchmarkCampaignStatus};
pub use run::{BenchmarkRun, BenchmarkRunSpec, BenchmarkRunStatus};
pub use schedule::{BenchmarkSchedule, BenchmarkScheduleSpec, BenchmarkScheduleStatus};
pub use target::{BenchmarkTarget, BenchmarkTargetSpec, BenchmarkTargetStatus};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;

/// The custom resource definitions of all kinds, ready for the API server, in the order of the layers.
pub fn all() -> Vec<CustomResourceDefinition> {
    [
        BenchmarkSchedule::crd(),
        BenchmarkCampaign::crd(),
        BenchmarkTarget::crd(),
        BenchmarkRun::crd(),
    ]
    .into_iter()
    .map(schema::finish)
    .collect()
}
