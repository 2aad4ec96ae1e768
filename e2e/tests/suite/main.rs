//! The end-to-end suite: the operator as the chart installs it, on a real cluster, with real databases and a real
//! load generator. One namespace a test; what measures runs one at a time.

// A test may panic: clippy knows it of test functions, not of what they share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// As the simulation, whose scripts are part of this program too.
#![allow(clippy::format_push_string, clippy::module_inception)]

mod agreement;
mod bench;
mod conformance;
mod deletion;
mod external;
mod kills;
mod load;
mod manifest;
mod measuring;
mod refusal;
mod studies;
mod wrong_manifests;
