//! The simulation: the real controllers on tokio's paused clock against an API server, a kubelet and databases in
//! memory, with faults from a seed. Everything here is a model or an observation; nothing decides for the product.
//! `SIMULATION_SEEDS` sets how many seeds each test tries.

// Models are built for all tests of this target; each test uses its part.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// A model of somebody else's API follows that API's shape before our taste in signatures and units.
#![allow(
    clippy::struct_field_names,
    clippy::unused_self,
    clippy::duration_suboptimal_units,
    clippy::needless_pass_by_value,
    clippy::doc_markdown,
    clippy::format_push_string,
    clippy::format_collect,
    clippy::struct_excessive_bools,
    clippy::unnecessary_wraps,
    clippy::similar_names,
    clippy::match_bool,
    clippy::single_match,
    clippy::collapsible_match,
    clippy::ignored_unit_patterns,
    clippy::field_reassign_with_default,
    clippy::default_trait_access,
    dead_code
)]

mod api_server;
mod cluster;
mod conformance;
mod faults;
mod random;
mod record;
mod server_tests;
mod world;
mod world_tests;
