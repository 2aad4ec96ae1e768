//! The machinery behind `cargo demo` and `cargo verify`: packages, programs, images, the local node, the stages of a check.
//! Needs few crates so that the commands start quickly; nothing here is part of the product.

pub mod answer_table;
pub mod binaries;
pub mod cache;
pub mod cluster;
pub mod command;
pub mod error;
pub mod images;
pub mod install;
pub mod live;
pub mod machine;
pub mod node;
pub mod packages;
pub mod progress;
pub mod speed;
pub mod verify;
pub mod view;
