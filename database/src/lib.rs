//! Talking to databases: connect, catalogue, read back, audit mechanisms, settle measures, marker schema.
//! It knows no Kubernetes and decides nothing about campaigns.

pub mod access;
pub mod after;
pub mod agent;
pub mod audit;
pub mod cache;
mod calls;
pub mod catalogue;
pub mod configuration;
mod databases;
pub mod engine;
pub mod environment;
pub mod establish;
mod exclusive;
pub mod identity;
#[cfg(test)]
mod live;
pub mod marker;
pub mod original;
pub mod parameters;
mod server;
pub mod settle;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use access::{
    DatabaseAccess, DatabaseError, EstablishOrder, Established, Login, ParameterProblem, Proof,
    ServerIdentity,
};
pub use after::{AfterRun, Counters};
pub use agent::Agent;
pub use databases::Databases;
pub use engine::ManagedServer;
pub use establish::read_only;
pub use marker::{Claim, dataset_hash};
pub use original::{Captured, Left};
